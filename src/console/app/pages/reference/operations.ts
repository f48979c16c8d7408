/** The operations of the API, by the resources that they are of, as the reference lists them. */
import type { ApiOperation, OpenApi } from "../../api/openapi.ts";

/** An operation with where it is called. */
export interface OperationPlace {
  readonly path: string;
  readonly method: string;
  readonly operation: ApiOperation;
  /** Its name as people say it: `Submit task` of `TaskService.SubmitTask`. */
  readonly act: string;
}

/** The operations of a service. */
export interface OperationGroup {
  /** The name of the service. */
  readonly service: string;
  /** What it is about. */
  readonly noun: string;
  readonly description: string;
  readonly places: readonly OperationPlace[];
}

/** What services are about, what most call first. One that is not here has its own name, at the end. */
const NOUNS: Readonly<Record<string, string>> = {
  TaskService: "Tasks",
  OrganizationTaskService: "Tasks of an organization",
  EndpointService: "Endpoints",
  DeploymentService: "Deployments",
  ScheduleService: "Schedules",
  WebhookService: "Webhooks",
  ModelService: "Models",
  MetricsService: "Metrics",
  UsageService: "Usage",
  AlertService: "Alerts",
  TokenService: "Tokens",
  OrganizationService: "Organizations",
  AuthService: "Accounts",
  LoginService: "Logins",
  MachineService: "Machines",
  LauncherService: "Launchers",
  FederationService: "Federation",
  OperatorService: "Platform",
};

const ORDER = Object.keys(NOUNS);

function order({ name }: { readonly name: string }): number {
  const at = ORDER.indexOf(name);
  return at < 0 ? ORDER.length : at;
}

/** The groups with the operations that a search finds. */
export function groupsOf({ tags, paths }: OpenApi, search: string): readonly OperationGroup[] {
  const places = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method,
      operation,
      act: actOf(operation),
    })),
  );
  const words = search.trim().toLowerCase().split(/\s+/);
  return tags
    .toSorted((one, other) => order(one) - order(other))
    .map(({ name, description = "" }) => {
      const noun = NOUNS[name] ?? name.replace(/Service$/, "");
      const found = places.filter(
        (place) => place.operation.tags[0] === name && hasWords(place, noun, words),
      );
      return { service: name, noun, description, places: found };
    })
    .filter((group) => group.places.length > 0);
}

function actOf({ operationId }: ApiOperation): string {
  const words = operationId.replace(/^.*\./, "").replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ");
  return words.charAt(0) + words.slice(1).toLowerCase();
}

/** Whether each word is in what the list, or the head of the operation, shows of it. */
function hasWords(place: OperationPlace, noun: string, words: readonly string[]): boolean {
  const { path, method, act, operation } = place;
  const { operationId, summary } = operation;
  const text = [method, path, act, operationId, summary, noun].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}
