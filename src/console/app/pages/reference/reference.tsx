/** The reference of the platform's API: every operation of its OpenAPI document, by service. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import {
  type ApiOperation,
  type OpenApi,
  reference,
  resolve,
  type Schema,
  typeOf,
} from "../../api/reference.ts";
import { visitor } from "../../api/sign-in.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { Command } from "../../ui/command.tsx";
import { inlineCode, Prose } from "../../ui/prose.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import "./reference.css";

const route = getRouteApi("/reference");

export function Reference() {
  const { data: document } = useSuspenseQuery(reference);
  const { data: person } = useSuspenseQuery(visitor);
  const { search = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const places = placesOf(document).filter((place) => hasText(place, search));
  const services = document.tags.filter(({ name }) => placesOfService(places, name).length > 0);
  const current = useCurrentSection(services.map(({ name }) => name));
  return (
    <SinglePage
      title="API reference"
      description={
        <>
          Version {document.info.version}. For programs, the same is at{" "}
          <a href="/docs.json">/docs.json</a> (OpenAPI 3.1). Guides are in{" "}
          <a href="/docs/">the documentation</a>.
        </>
      }
      person={person ?? undefined}
      width="full"
    >
      <div className="reference">
        <div className="reference-index">
          <SearchField
            label="Search operations"
            placeholder="Such as cancel task"
            value={search}
            onChange={(text) => void navigate({ search: text === "" ? {} : { search: text } })}
          />
          {services.length > 1 && (
            <>
              <nav aria-label="Services">
                {services.map(({ name }) => (
                  <a
                    key={name}
                    href={`#${name}`}
                    aria-current={name === current ? "location" : undefined}
                  >
                    {nounOf(name)}
                  </a>
                ))}
              </nav>
              <select
                aria-label="Service"
                value={current}
                onChange={({ target }) => location.assign(`#${target.value}`)}
              >
                {services.map(({ name }) => (
                  <option key={name} value={name}>
                    {nounOf(name)}
                  </option>
                ))}
              </select>
            </>
          )}
        </div>
        <div className="reference-services">
          {search === "" && <Begin />}
          {services.length === 0 && <p className="secondary">No operation has this text.</p>}
          {services.map(({ name, description = "" }) => (
            <section key={name} className="card">
              <header>
                <h2 id={name}>{nounOf(name)}</h2>
                <code className="secondary">{name}</code>
              </header>
              <Prose text={description} />
              {placesOfService(places, name).map((place) => (
                <OperationDetails
                  key={place.operation.operationId}
                  document={document}
                  place={place}
                />
              ))}
            </section>
          ))}
        </div>
      </div>
    </SinglePage>
  );
}

/** Where the API is, and a call of it. */
function Begin() {
  const base = `${location.origin}/api/v1`;
  return (
    <section className="card" aria-labelledby="begin">
      <h2 id="begin">Base URL</h2>
      <Command text={base} />
      <p className="secondary">
        Calls need a <a href="/docs/tokens.html">token</a>:
      </p>
      <Command text={`curl '${base}/deployments' -H "authorization: Bearer $TESSERA_TOKEN"`} />
    </section>
  );
}

/** The section at the top of the view, of those with these ids. */
function useCurrentSection(ids: readonly string[]): string | undefined {
  const [current, setCurrent] = useState(ids[0]);
  const all = ids.join(" ");
  useEffect(() => {
    const seen = new Set<string>();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const id = target.querySelector("h2")?.id ?? "";
          isIntersecting ? seen.add(id) : seen.delete(id);
        }
        setCurrent((before) => all.split(" ").find((id) => seen.has(id)) ?? before);
      },
      { rootMargin: "0px 0px -70% 0px" },
    );
    for (const id of all.split(" ")) {
      const section = globalThis.document.getElementById(id)?.closest("section");
      if (section) {
        observer.observe(section);
      }
    }
    return () => observer.disconnect();
  }, [all]);
  return current;
}

/** What services are about; one that is not here has its own name. */
const NOUNS: Readonly<Record<string, string>> = {
  TaskService: "Tasks",
  EndpointService: "Endpoints",
  AuthService: "Accounts",
  OrganizationService: "Organizations",
  OrganizationTaskService: "Tasks of an organization",
  TokenService: "Tokens",
  LoginService: "Logins",
  FederationService: "Federation",
  MachineService: "Machines",
  MetricsService: "Metrics",
  ModelService: "Models",
  OperatorService: "Platform",
  DeploymentService: "Deployments",
  WebhookService: "Webhooks",
  AlertService: "Alerts",
  LauncherService: "Launchers",
  ScheduleService: "Schedules",
  UsageService: "Usage",
};

const nounOf = (service: string): string => NOUNS[service] ?? service.replace(/Service$/, "");

/** The name of an operation as people say it: `Submit task` of `TaskService.SubmitTask`. */
function actOf({ operationId }: ApiOperation): string {
  const words = operationId.replace(/^.*\./, "").replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ");
  return words.charAt(0) + words.slice(1).toLowerCase();
}

function placesOf({ paths }: OpenApi): Place[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

const placesOfService = (places: readonly Place[], name: string): Place[] =>
  places.filter(({ operation }) => operation.tags[0] === name);

/** Whether each word is in the name, path or summary of the operation, in any case. */
function hasText({ path, method, operation }: Place, search: string): boolean {
  const text = `${method} ${path} ${operation.operationId} ${operation.summary}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

// One operation of the API: closed, until it is opened or the address names it.

/** An operation with where it is called. */
interface Place {
  readonly path: string;
  readonly method: string;
  readonly operation: ApiOperation;
}

interface OperationProps {
  readonly document: OpenApi;
  readonly place: Place;
}

function OperationDetails({ document, place }: OperationProps) {
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
        <span className="operation-name">{actOf(operation)}</span>
        <span className="operation-place">
          <span className={`method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code>
        </span>
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
