/** The platform client: the services of `tessera.v1` over Connect, with generated types. */
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { AlertService } from "../../gen/tessera/v1/alert_pb.js";
import { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { LauncherService } from "../../gen/tessera/v1/launcher_pb.js";
import { LoginService } from "../../gen/tessera/v1/login_pb.js";
import { MachineService } from "../../gen/tessera/v1/machine_pb.js";
import { MetricsService } from "../../gen/tessera/v1/metrics_pb.js";
import { ModelService } from "../../gen/tessera/v1/model_pb.js";
import { OrganizationService } from "../../gen/tessera/v1/organization_pb.js";
import { OrganizationTaskService } from "../../gen/tessera/v1/organization_task_pb.js";
import { ScheduleService } from "../../gen/tessera/v1/schedule_pb.js";
import { TaskService } from "../../gen/tessera/v1/task_pb.js";
import { TokenService } from "../../gen/tessera/v1/token_pb.js";
import { UsageService } from "../../gen/tessera/v1/usage_pb.js";
import { WebhookService } from "../../gen/tessera/v1/webhook_pb.js";

export * from "../../gen/tessera/v1/alert_pb.js";
export * from "../../gen/tessera/v1/auth_pb.js";
export * from "../../gen/tessera/v1/deployment_pb.js";
export * from "../../gen/tessera/v1/endpoint_pb.js";
export * from "../../gen/tessera/v1/error_pb.js";
export * from "../../gen/tessera/v1/launcher_pb.js";
export * from "../../gen/tessera/v1/login_pb.js";
export * from "../../gen/tessera/v1/machine_pb.js";
export * from "../../gen/tessera/v1/metrics_pb.js";
export * from "../../gen/tessera/v1/model_pb.js";
export * from "../../gen/tessera/v1/organization_pb.js";
export * from "../../gen/tessera/v1/organization_task_pb.js";
export * from "../../gen/tessera/v1/schedule_pb.js";
export * from "../../gen/tessera/v1/task_pb.js";
export * from "../../gen/tessera/v1/token_pb.js";
export * from "../../gen/tessera/v1/usage_pb.js";
export * from "../../gen/tessera/v1/webhook_pb.js";
export { type ErrorFacts, errorFacts } from "./error.ts";

export interface TesseraClientOptions {
  /** The server's URL, such as `http://localhost:3000`. */
  readonly url: string;
  /** Sent as a bearer token with every call. */
  readonly token?: string;
  /**
   * Timeout of one call in milliseconds; it then fails with
   * `deadline_exceeded`. Default: no limit.
   */
  readonly timeoutMs?: number;
}

export interface TesseraClient {
  readonly tasks: Client<typeof TaskService>;
  readonly endpoints: Client<typeof EndpointService>;
  readonly tokens: Client<typeof TokenService>;
  readonly organizations: Client<typeof OrganizationService>;
  /** The tasks of an organization, over all of its deployments. */
  readonly organizationTasks: Client<typeof OrganizationTaskService>;
  readonly deployments: Client<typeof DeploymentService>;
  /** Calls at the times of cron expressions. */
  readonly schedules: Client<typeof ScheduleService>;
  /** What launchers do: they start machines for deployments. */
  readonly launchers: Client<typeof LauncherService>;
  /** Nodes, and machines that have joined. */
  readonly machines: Client<typeof MachineService>;
  readonly metrics: Client<typeof MetricsService>;
  /** Weights by name, in versions. */
  readonly models: Client<typeof ModelService>;
  /** Addresses that are told how tasks end. */
  readonly webhooks: Client<typeof WebhookService>;
  /** Rules that tell receivers when something is wrong. */
  readonly alerts: Client<typeof AlertService>;
  /** Who used what. */
  readonly usage: Client<typeof UsageService>;
  readonly auth: Client<typeof AuthService>;
  readonly login: Client<typeof LoginService>;
}

/** Creates the clients of all services on a transport. */
export function platformClient(transport: Transport): TesseraClient {
  return {
    tasks: createClient(TaskService, transport),
    endpoints: createClient(EndpointService, transport),
    tokens: createClient(TokenService, transport),
    organizations: createClient(OrganizationService, transport),
    organizationTasks: createClient(OrganizationTaskService, transport),
    deployments: createClient(DeploymentService, transport),
    schedules: createClient(ScheduleService, transport),
    launchers: createClient(LauncherService, transport),
    machines: createClient(MachineService, transport),
    metrics: createClient(MetricsService, transport),
    models: createClient(ModelService, transport),
    webhooks: createClient(WebhookService, transport),
    alerts: createClient(AlertService, transport),
    usage: createClient(UsageService, transport),
    auth: createClient(AuthService, transport),
    login: createClient(LoginService, transport),
  };
}

/** Returns the interceptors that send the token. */
export function bearers(token: string | undefined): Interceptor[] {
  return token === undefined ? [] : [bearer(token)];
}

function bearer(token: string): Interceptor {
  // The error that Headers throws for an invalid value contains the value.
  if (!/^[!-~]+$/.test(token)) {
    throw new TypeError("the token has characters that cannot be sent in a header");
  }
  return (next) => (req) => {
    req.header.set("authorization", `Bearer ${token}`);
    return next(req);
  };
}
