/** The reference of the platform's API: every operation of its OpenAPI document, by service. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type OpenApi, reference } from "../../api/reference.ts";
import { visitor } from "../../api/sign-in.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { Prose } from "../../ui/prose.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import { OperationDetails, type Place } from "./operation.tsx";
import "./reference.css";

const route = getRouteApi("/reference");

export function Reference() {
  const { data: document } = useSuspenseQuery(reference);
  const { data: person } = useSuspenseQuery(visitor);
  const { search = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const places = placesOf(document).filter((place) => hasText(place, search));
  const services = document.tags.filter(({ name }) => placesOfService(places, name).length > 0);
  return (
    <SinglePage
      title="The platform's API"
      description={
        <>
          Version {document.info.version}. Calls need a token: <code>Authorization: Bearer …</code>{" "}
          For programs, the same is at <a href="/docs.json">/docs.json</a> (OpenAPI 3.1). Guides and
          references are in <a href="/docs/">the documentation</a>.
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
            <nav aria-label="Services">
              {services.map(({ name }) => (
                <a key={name} href={`#${name}`}>
                  {NOUNS[name] ?? name.replace(/Service$/, "")}
                </a>
              ))}
            </nav>
          )}
        </div>
        <div className="reference-services">
          {services.length === 0 && <p className="secondary">No operation has this text.</p>}
          {services.map(({ name, description = "" }) => (
            <section key={name} className="card">
              <header>
                <h2 id={name}>{NOUNS[name] ?? name}</h2>
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
