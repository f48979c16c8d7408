/** The services of the platform, on its accounts. */
import type { FastifyBaseLogger } from "fastify";
import { AlertService } from "../../gen/tessera/v1/alert_pb.js";
import { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../gen/tessera/v1/deployment_pb.js";
import { FederationService } from "../../gen/tessera/v1/federation_pb.js";
import { LauncherService } from "../../gen/tessera/v1/launcher_pb.js";
import { LoginService } from "../../gen/tessera/v1/login_pb.js";
import { MachineService } from "../../gen/tessera/v1/machine_pb.js";
import { MetricsService } from "../../gen/tessera/v1/metrics_pb.js";
import { ModelService } from "../../gen/tessera/v1/model_pb.js";
import { OperatorService } from "../../gen/tessera/v1/operator_pb.js";
import { OrganizationService } from "../../gen/tessera/v1/organization_pb.js";
import { OrganizationTaskService } from "../../gen/tessera/v1/organization_task_pb.js";
import { ScheduleService } from "../../gen/tessera/v1/schedule_pb.js";
import { TokenService } from "../../gen/tessera/v1/token_pb.js";
import { UsageService } from "../../gen/tessera/v1/usage_pb.js";
import { WebhookService } from "../../gen/tessera/v1/webhook_pb.js";
import { WorkerService } from "../../gen/tessera/v1/worker_pb.js";
import { alertService } from "../api/alert/alert.ts";
import { authService } from "../api/auth/auth.ts";
import { type DeploymentServiceOptions, deploymentService } from "../api/deployment/deployment.ts";
import { federationService } from "../api/federation.ts";
import { launcherService } from "../api/launcher/launcher.ts";
import { loginService } from "../api/login/login.ts";
import { machineService } from "../api/machine/machine.ts";
import { metricsService } from "../api/metrics.ts";
import { modelService } from "../api/model/model.ts";
import { type OperatorServiceOptions, operatorService } from "../api/operator.ts";
import { organizationService } from "../api/organization/organization.ts";
import { scheduleService } from "../api/schedule/schedule.ts";
import { organizationTaskService } from "../api/task/organization-task.ts";
import { tokenService } from "../api/token/token.ts";
import { usageService } from "../api/usage/usage.ts";
import { webhookService } from "../api/webhook/webhook.ts";
import { type WorkerServiceOptions, workerService } from "../api/worker/worker.ts";
import { currentPlatform } from "../artifacts/platform.ts";
import type { ChangeFeed } from "../auth/change-feed.ts";
import { FailureLimiter } from "../auth/failures.ts";
import type { KeyRing } from "../auth/keys.ts";
import type { OrganizationCreators } from "../auth/organization-creators.ts";
import { SignInThrottle } from "../auth/sign-in-throttle.ts";
import type { Ceilings } from "../deployments/ceilings.ts";
import type { Directory } from "../deployments/directory.ts";
import type { ModelSource } from "../hosting/models/source.ts";
import type { Federation } from "../metrics/federation.ts";
import type { KeptHistory } from "../metrics/history/kept.ts";
import type { SandboxLevel } from "../pool/sandbox/sandbox.ts";
import type { Mailer } from "../server/mail/mailer.ts";
import { register, type ServiceRegistration } from "../server/rpc/engine/invoker.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { HostingStorage } from "../storage/hosting/hosting.ts";
import type { Storage } from "../storage/storage.ts";

/** What the services work on. */
interface PlatformServicesPorts {
  readonly accounts: Accounts;
  readonly hosting: HostingStorage;
  readonly tasks: Pick<
    Storage,
    | "searchTasks"
    | "searchKeys"
    | "countStates"
    | "queueStates"
    | "describeDatabase"
    | "adoptLease"
    | "closeLease"
  >;
  readonly directory: Pick<Directory, "find" | "workersHere" | "allWorkersHere" | "nodeId">;
  readonly changes: Pick<ChangeFeed, "listen">;
  readonly artifactOf: WorkerServiceOptions["artifactOf"];
  readonly blobs: BlobStore;
  readonly federation: Federation;
  readonly history: KeptHistory;
  readonly keys: KeyRing;
  /** Undefined where no mail is sent. */
  readonly mailer?: Mailer | undefined;
  /** Limits failed sign-ins and wrong codes, by address. */
  readonly failures: FailureLimiter;
  /** Limits device logins that are begun, which anyone may. */
  readonly deviceLogins: FailureLimiter;
  readonly log: FastifyBaseLogger;
  readonly now: () => number;
  readonly newId: () => string;
}

/** What the operator has set. */
interface PlatformServicesSettings {
  readonly sessionLifetimeMs: number;
  /** Where people reach the platform, without a slash at the end. */
  readonly publicUrl: string;
  readonly secureCookies: boolean;
  /** Where a deployment is called. */
  readonly urlOf: DeploymentServiceOptions["urlOf"];
  /** Whether deployments may bring native code. */
  readonly allowsNativeCode: boolean;
  /** What holds the workers of deployments. */
  readonly sandbox: SandboxLevel;
  /** What services in Python run with; undefined where they do not run. */
  readonly python?: DeploymentServiceOptions["python"];
  readonly ceilings: Ceilings;
  /** Where models are imported from. */
  readonly modelSources: readonly ModelSource[];
  /** Host rules of the operator: what webhooks reach although it is not public. */
  readonly allowedEgress: readonly string[];
  /** After this silence a worker on another machine is lost. */
  readonly silenceMs: number;
  /** Who may create organizations; undefined: as `checkCreator` says. */
  readonly organizationCreators?: OrganizationCreators | undefined;
  /** What operators are shown of all that is set where the node starts. Default: nothing. */
  readonly shown?: OperatorServiceOptions["shown"];
}

/**
 * Largest message of the calls that carry the index of an artifact, in base64 and with all
 * that is sent beside it.
 */
const MAX_INDEX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** Invitations that an organization, or a person in all of them, may send by mail at once. */
const MAX_INVITATION_MAIL_BURST = 50;
/** Time in which they may send one more: with the burst, at most 100 within an hour and node. */
const INVITATION_MAIL_REFILL_MS = 72_000;

export function platformServices(
  ports: PlatformServicesPorts,
  settings: PlatformServicesSettings,
): ServiceRegistration[] {
  const { failures: limiter, deviceLogins: startLimiter } = ports;
  const throttle = new SignInThrottle();
  const { mailer } = ports;
  const mailLimiter = new FailureLimiter({
    burst: MAX_INVITATION_MAIL_BURST,
    refillMs: INVITATION_MAIL_REFILL_MS,
    groupOf: (key) => key,
    refusal:
      "you or your organization had too many mails sent (invitations, tests of receivers of alerts): try later",
  });
  const { organizationCreators } = settings;
  const platform = currentPlatform();
  return [
    register(AuthService, authService({ ...ports, ...settings, mailer, limiter, throttle })),
    register(
      OrganizationService,
      organizationService({ ...ports, ...settings, organizationCreators, mailer, mailLimiter }),
    ),
    register(OrganizationTaskService, organizationTaskService(ports)),
    register(TokenService, tokenService({ ...ports, ...settings })),
    register(LoginService, loginService({ ...ports, ...settings, limiter, startLimiter })),
    register(FederationService, federationService(ports.federation)),
    register(MetricsService, metricsService(ports)),
    register(ModelService, modelService({ ...ports, ...settings }), {
      maxMessageBytes: MAX_INDEX_MESSAGE_BYTES,
    }),
    register(ScheduleService, scheduleService(ports)),
    register(WebhookService, webhookService({ ...ports, ...settings })),
    register(LauncherService, launcherService(ports)),
    register(AlertService, alertService({ ...ports, ...settings, mailer, mailLimiter })),
    register(MachineService, machineService(ports)),
    register(UsageService, usageService(ports)),
    register(OperatorService, operatorService({ ...ports, ...settings })),
    register(WorkerService, workerService({ ...ports, ...settings, storage: ports.tasks })),
    register(DeploymentService, deploymentService({ ...ports, ...settings, platform }), {
      maxMessageBytes: MAX_INDEX_MESSAGE_BYTES,
    }),
  ];
}
