/** One operation of the API: closed, until it is opened or the address names it. */
import { useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Field, fieldsOf, type OpenApi, resolve, typeOf } from "../../api/openapi.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { inlineCode, Prose } from "../../ui/prose.tsx";
import { curlOf } from "./curl.ts";
import type { OperationPlace } from "./operations.ts";
import { FieldTree } from "./schema-tree.tsx";

interface OperationProps {
  readonly document: OpenApi;
  readonly place: OperationPlace;
  /** Whose calls the examples are. Default: a name to replace. */
  readonly organization?: string | undefined;
}

export function OperationDetails(props: OperationProps) {
  const { path, method, act, operation } = props.place;
  const { operationId, summary } = operation;
  const details = useRef<HTMLDetailsElement>(null);
  const isNamed = useLocation({ select: ({ hash }) => hash === operationId });
  const [wasNamed, setNamed] = useState(isNamed);
  const [isOpen, setOpen] = useState(isNamed);
  if (wasNamed !== isNamed) {
    setNamed(isNamed);
    setOpen(isOpen || isNamed);
  }
  useEffect(() => {
    if (isNamed) {
      details.current?.scrollIntoView();
    }
  }, [isNamed]);
  return (
    <details
      ref={details}
      className="operation"
      id={operationId}
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <span className={`method ${method}`}>{method.toUpperCase()}</span>{" "}
        <span className="operation-line">
          <span className="operation-name">{act}</span> <code>{path}</code>
        </span>
        <span className="secondary">{inlineCode(summary)}</span>
      </summary>
      {isOpen && <Content {...props} />}
    </details>
  );
}

function Content({ document, place, organization }: OperationProps) {
  const { operation } = place;
  const { operationId, description = "", parameters = [], responses } = operation;
  const { origin } = location;
  const curl = curlOf(place, { document, origin, organization });
  const body = operation.requestBody?.content["application/json"]?.schema;
  const answer = Object.values(resolve(document, responses["200"] ?? {}).content ?? {})[0]?.schema;
  return (
    <div className="operation-content">
      <div className="operation-about">
        {description !== "" && <Prose text={description} />}
        <p className="secondary">Who may call: {inlineCode(operation["x-callers"])}</p>
      </div>
      <div className="operation-call">
        <div className="operation-curl copied-from">
          <pre>
            <code>{curl}</code>
          </pre>
          <CopyButton text={curl} what={`the command of ${place.act}`} />
        </div>
        <CopyButton
          text={`${origin}/reference#${operationId}`}
          label="Copy link"
          what={place.act}
        />
      </div>
      <div className="operation-fields">
        <Part
          title="Parameters"
          document={document}
          fields={parameters.map(
            ({ name, in: where, required = false, description = "", schema }) => ({
              name: `${name} (${where})`,
              schema,
              isRequired: required,
              description,
            }),
          )}
        />
        {body && <Part title="Body" document={document} fields={fieldsOf(document, body)} />}
        {answer && (
          <Part
            title="Answer"
            note={answerNote(document, place)}
            document={document}
            fields={fieldsOf(document, answer)}
          />
        )}
        <section>
          <h3>Errors</h3>
          <dl>
            {Object.entries(responses)
              .filter(([status]) => status !== "200")
              .map(([status, response]) => (
                <div key={status}>
                  <dt>{status}</dt>
                  <dd>{inlineCode(resolve(document, response).description ?? "")}</dd>
                </div>
              ))}
          </dl>
        </section>
      </div>
    </div>
  );
}

/** What the answer is, where that is more than an object with fields. */
function answerNote(document: OpenApi, { operation: { responses } }: OperationPlace): string {
  const { description = "", content = {} } = resolve(document, responses["200"] ?? {});
  const [one] = Object.values(content);
  const isPlain = one !== undefined && fieldsOf(document, one.schema).length > 0;
  const type = one && !isPlain ? typeOf(document, one.schema) : "";
  return [description === "Done." ? "" : description, type].filter(Boolean).join(" ");
}

interface PartProps {
  readonly title: string;
  readonly note?: ReactNode;
  readonly document: OpenApi;
  readonly fields: readonly Field[];
}

function Part({ title, note = "", document, fields }: PartProps) {
  if (fields.length === 0 && note === "") {
    return null;
  }
  return (
    <section>
      <h3>{title}</h3>
      {note !== "" && <p className="secondary">{note}</p>}
      <FieldTree document={document} fields={fields} />
    </section>
  );
}
