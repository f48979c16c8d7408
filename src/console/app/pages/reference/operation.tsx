/** One operation of the API: closed, until it is opened or the address names it. */
import { useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import {
  type ApiOperation,
  type OpenApi,
  resolve,
  type Schema,
  typeOf,
} from "../../api/reference.ts";
import { inlineCode, Prose } from "../../ui/prose.tsx";

/** An operation with where it is called. */
export interface Place {
  readonly path: string;
  readonly method: string;
  readonly operation: ApiOperation;
}

interface OperationProps {
  readonly document: OpenApi;
  readonly place: Place;
}

export function OperationDetails({ document, place }: OperationProps) {
  const { path, method, operation } = place;
  const { operationId, summary, description = "", parameters = [], responses } = operation;
  const details = useRef<HTMLDetailsElement>(null);
  const isNamed = useLocation({ select: ({ hash }) => hash === operationId });
  useEffect(() => {
    if (isNamed && details.current !== null) {
      details.current.open = true;
      details.current.scrollIntoView();
    }
  }, [isNamed]);
  const body = operation.requestBody?.content["application/json"]?.schema;
  return (
    <details ref={details} className="operation" id={operationId}>
      <summary>
        <span className={`method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code>
        <span className="secondary">{inlineCode(summary)}</span>
      </summary>
      {description !== "" && <Prose text={description} />}
      <p className="secondary">Who may call: {inlineCode(operation["x-callers"])}</p>
      <Fields
        title="Parameters"
        document={document}
        fields={parameters.map(({ name, in: where, ...one }) => [`${name} (${where})`, one])}
      />
      {body && <Fields title="Body" document={document} fields={fieldsOf(document, body)} />}
      <Entries
        title="Answers"
        entries={Object.entries(responses).map(([status, response]) => {
          const { description: meaning, content = {} } = resolve(document, response);
          const [answer] = Object.values(content);
          const type = Number(status) < 400 && answer ? ` ${typeOf(document, answer.schema)}.` : "";
          return [status, `${meaning}${type}`];
        })}
      />
    </details>
  );
}

interface Field {
  readonly schema: Schema;
  readonly required?: boolean;
  readonly description?: string;
}

function fieldsOf(document: OpenApi, body: Schema): [string, Field][] {
  const { properties = {}, required = [] } = resolve(document, body);
  return Object.entries(properties).map(([name, schema]) => [
    name,
    {
      schema,
      required: required.includes(name),
      ...(schema.description !== undefined && { description: schema.description }),
    },
  ]);
}

interface FieldsProps {
  readonly title: string;
  readonly document: OpenApi;
  readonly fields: readonly (readonly [string, Field])[];
}

/** Names with their types and what they mean. */
function Fields({ title, document, fields }: FieldsProps) {
  return (
    <Entries
      title={title}
      entries={fields.map(([name, { schema, required, description }]) => [
        <>
          <code>{name}</code>
          {required && " required"}
        </>,
        `${typeOf(document, schema)}${description ? `. ${description}` : ""}`,
      ])}
    />
  );
}

interface EntriesProps {
  readonly title: string;
  readonly entries: readonly (readonly [ReactNode, string])[];
}

function Entries({ title, entries }: EntriesProps) {
  if (entries.length === 0) {
    return null;
  }
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {entries.map(([name, value], index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the document does not change
          <div key={index}>
            <dt>{name}</dt>
            <dd>{inlineCode(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
