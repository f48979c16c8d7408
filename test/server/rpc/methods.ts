/** A request for every method of the platform, such that a caller with every right succeeds. */
import { createHash } from "node:crypto";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { LauncherService } from "../../../gen/tessera/v1/launcher_pb.js";
import { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import { MetricsService } from "../../../gen/tessera/v1/metrics_pb.js";
import { ModelService } from "../../../gen/tessera/v1/model_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { OrganizationTaskService } from "../../../gen/tessera/v1/organization_task_pb.js";
import { ScheduleService } from "../../../gen/tessera/v1/schedule_pb.js";
import { WebhookService } from "../../../gen/tessera/v1/webhook_pb.js";
import { createModelIndex } from "../../../src/artifacts/model-index.ts";
import { ALERT_ROWS } from "./alert-methods.ts";
import type { Cast } from "./callers.ts";
import { MACHINE_ROWS } from "./machine-methods.ts";
import type { TestPlatform } from "./platform.ts";
import { FOREIGN, named, type Row } from "./row.ts";
import { TOKEN_ROWS } from "./token-methods.ts";
import { USAGE_ROWS } from "./usage-methods.ts";
import { newDeployment, newMember, newName } from "./world.ts";

/** What does not say which organization it is about. */
const NAMELESS = {
  "an admin of another organization": "ok",
  "a token of another organization": "ok",
} as const;

/** A session's own, whatever organization its person is in. */
const OWN_SESSION = { "an admin of another organization": "ok" } as const;

const CODE = "0".repeat(43);
const NOBODYS_ID = "019aa51c-0000-7000-8000-000000000000";
const DIGEST = "d".repeat(64);

async function memberOf(platform: TestPlatform, cast: Cast) {
  return { ...named(cast), userId: (await newMember(platform, cast.company)).userId };
}

async function deploymentOf(platform: TestPlatform, cast: Cast) {
  return { ...named(cast), deployment: await newDeployment(platform, cast.company) };
}

async function openDeploymentOf(platform: TestPlatform, cast: Cast) {
  return { ...named(cast), deployment: await newDeployment(platform, cast.company, false) };
}

async function modelOf(platform: TestPlatform, cast: Cast) {
  const { organizationId } = cast.company;
  const name = newName("weights");
  const blobId = platform.newId();
  const { sha256, sizeBytes, keptUntilMs } = {
    sha256: createHash("sha256").update("").digest("hex"),
    sizeBytes: 0,
    keptUntilMs: platform.now() + 60_000,
  };
  const file = { organizationId, blobId, keptUntilMs };
  const { hosting } = platform.storage;
  await hosting.registerFile({ ...file, sha256, sizeBytes, maxBytes: 1 });
  await hosting.finishFile(file);
  const index = createModelIndex([{ path: "empty", size: 0, sha256, executable: false }]);
  await hosting.pushModel({
    ...platform.deed(),
    ...{ organizationId, model: name, files: 1, warnings: [], maxModels: 1_000, maxVersions: 1 },
    artifact: {
      ...{ digest: index.digest, index: index.text, endpoints: [] },
      files: [{ sha256, sizeBytes }],
    },
  });
  return { ...named(cast), model: name };
}

async function userCode(platform: TestPlatform) {
  const { body } = await platform.call(LoginService.method.startDeviceLogin, {});
  return { userCode: body.userCode };
}

/** Tokens let nobody in. */
const NO_PEOPLE: Row["except"] = { "an admin's personal token": "ACCESS_DENIED" };

const organization = OrganizationService.method;
const auth = AuthService.method;
const login = LoginService.method;
const launcher = LauncherService.method;
const deployment = DeploymentService.method;
const model = ModelService.method;
const schedule = ScheduleService.method;
const webhook = WebhookService.method;

/** A deployment with a webhook, and a delivery of it. */
async function webhookOf(platform: TestPlatform, cast: Cast) {
  const request = await deploymentOf(platform, cast);
  const { organizationId } = cast.company;
  const { accounts, hosting } = platform.storage;
  const found = await accounts.findDeployment({ organizationId, name: request.deployment });
  const key = { organizationId, deploymentId: found?.deploymentId ?? "", name: "app" };
  const webhookId = platform.newId();
  const deliveryId = "test-1";
  await hosting.createWebhook({
    ...platform.deed(),
    ...{ ...key, webhookId, url: "https://example.com", ends: ["success"], limit: 1 },
    ...{ endpoint: "", namedOnly: false },
    sealed: platform.keys.seal("[]", `webhook/${organizationId}/${key.deploymentId}/${webhookId}`),
  });
  await hosting.addTestDelivery({ ...platform.deed(), ...key, deliveryId, body: "{}" });
  return request;
}

/** Tokens with developer operations that may not call the deployment. */
const NO_READS = {
  "an organization token": "ACCESS_DENIED",
  "a member's personal token": "ACCESS_DENIED",
  "an admin's personal token": "ACCESS_DENIED",
} as const;

/** Tokens without protected endpoint access. */
const NO_CALLS = {
  "a monitoring token": "ACCESS_DENIED",
  "a launch token": "ACCESS_DENIED",
  ...NO_READS,
} as const;

export const ROWS: readonly Row[] = [
  {
    method: organization.createOrganization,
    request: () => ({ name: newName() }),
    except: OWN_SESSION,
  },
  { method: organization.getOrganization, request: (_, cast) => named(cast) },
  { method: organization.listOrganizations, request: () => ({}), except: NAMELESS },
  {
    method: organization.updateOrganization,
    request: (_, { company: { name } }) => ({ organization: { name, displayName: "Acme" } }),
    except: { [FOREIGN]: "ORGANIZATION_NOT_FOUND" },
  },
  { method: organization.getStorageUse, request: (_, cast) => named(cast) },
  { method: organization.askForMonitoring, request: (_, cast) => named(cast) },
  {
    method: OrganizationTaskService.method.listOrganizationTasks,
    request: (_, cast) => named(cast),
    except: NO_CALLS,
  },
  {
    method: OrganizationTaskService.method.watchTasks,
    request: (_, cast) => ({ ...named(cast), followFor: "0.001s" }),
    except: NO_CALLS,
  },
  {
    method: OrganizationTaskService.method.getTaskStats,
    request: (_, cast) => named(cast),
    except: NO_CALLS,
  },
  {
    method: OrganizationTaskService.method.cancelTasks,
    request: (_, cast) => ({ ...named(cast), filter: { all: true } }),
    except: NO_CALLS,
  },
  {
    method: OrganizationTaskService.method.deleteTasks,
    request: (_, cast) => ({ ...named(cast), filter: { all: true } }),
    except: NO_CALLS,
  },
  {
    method: OrganizationTaskService.method.retryTasks,
    request: (_, cast) => ({ ...named(cast), filter: { all: true } }),
    except: NO_CALLS,
  },
  { method: launcher.listLaunches, request: (_, cast) => named(cast), except: { [FOREIGN]: "ok" } },
  {
    method: launcher.watchWorkersWanted,
    request: () => ({ followFor: "0s" }),
  },
  {
    method: launcher.reportLaunches,
    request: () => ({ launcher: NOBODYS_ID, on: "exec", hostname: "here", reports: [] }),
  },
  { method: launcher.endLaunches, request: () => ({ launcher: NOBODYS_ID }) },
  {
    method: launcher.createMachineToken,
    request: () => ({ launcher: NOBODYS_ID, deploymentId: NOBODYS_ID, machine: NOBODYS_ID }),
    outcome: "LAUNCHER_REPLACED",
  },
  ...MACHINE_ROWS,
  { method: organization.listMembers, request: (_, cast) => named(cast) },
  {
    method: organization.inviteMember,
    request: (_, cast) => ({ ...named(cast), email: `${newName("new")}@people.example` }),
    except: NO_PEOPLE,
  },
  { method: organization.listInvitations, request: (_, cast) => named(cast) },
  {
    method: organization.deleteInvitation,
    async request(platform, cast) {
      const { organizationId } = cast.company;
      const invitationId = platform.newId();
      await platform.accounts.invite({
        ...platform.deed(),
        organizationId,
        invitationId,
        digest: platform.newId(),
        email: `${newName("new")}@people.example`,
        role: "member",
        expiresAtMs: platform.now() + 60_000,
        limit: 1_000,
      });
      return { ...named(cast), invitationId };
    },
    except: { [FOREIGN]: "INVITATION_NOT_FOUND" },
  },
  {
    method: organization.updateMember,
    request: async (platform, cast) => ({
      ...(await memberOf(platform, cast)),
      role: "ROLE_ADMIN",
    }),
    except: { ...NO_PEOPLE, [FOREIGN]: "MEMBER_NOT_FOUND" },
  },
  {
    method: organization.removeMember,
    request: memberOf,
    except: { [FOREIGN]: "MEMBER_NOT_FOUND" },
  },
  {
    method: organization.leaveOrganization,
    request: (_, cast) => named(cast),
    except: { "an admin": "LAST_ADMIN", [FOREIGN]: "LAST_ADMIN" },
  },
  { method: organization.listAuditEvents, request: (_, cast) => named(cast) },
  ...TOKEN_ROWS,
  ...ALERT_ROWS,
  {
    method: auth.setUp,
    request: () => ({
      setupCode: CODE,
      organization: newName(),
      email: "first@people.example",
      password: "a long password",
    }),
    outcome: "SETUP_INVALID",
  },
  {
    method: auth.signIn,
    request: () => ({ email: `${newName("who")}@people.example`, password: "a long password" }),
    outcome: "SIGN_IN_FAILED",
  },
  { method: auth.signOut, request: () => ({}), except: OWN_SESSION },
  {
    method: auth.changeDisplayName,
    request: () => ({ displayName: "Ada" }),
    except: OWN_SESSION,
  },
  { method: auth.listSessions, request: () => ({}), except: OWN_SESSION },
  {
    method: auth.endSession,
    request: () => ({ sessionId: NOBODYS_ID }),
    outcome: "SESSION_NOT_FOUND",
    except: { "an admin of another organization": "SESSION_NOT_FOUND" },
  },
  {
    method: auth.endOtherSessions,
    request: () => ({}),
    // The other one is the same person, whose call before has ended this session.
    except: { ...OWN_SESSION, [FOREIGN]: "TOKEN_INVALID" },
  },
  {
    method: auth.confirmPassword,
    request: () => ({ password: "not the password" }),
    outcome: "SIGN_IN_FAILED",
    except: { "an admin of another organization": "SIGN_IN_FAILED" },
  },
  {
    method: auth.changePassword,
    request: () => ({ currentPassword: "not the password", newPassword: "another password" }),
    outcome: "SIGN_IN_FAILED",
    except: { "an admin of another organization": "SIGN_IN_FAILED" },
  },
  {
    method: auth.getInvitation,
    request: () => ({ invitationCode: CODE }),
    outcome: "INVITATION_NOT_FOUND",
  },
  {
    method: auth.acceptInvitation,
    request: () => ({ invitationCode: CODE, password: "a long password" }),
    outcome: "INVITATION_NOT_FOUND",
  },
  { method: auth.getCurrentPrincipal, request: () => ({}), except: NAMELESS },
  {
    method: login.authorizeLogin,
    request: (_, cast) => ({
      ...named(cast),
      redirectUri: "http://127.0.0.1:50000/callback",
      codeChallenge: "a".repeat(43),
      codeChallengeMethod: "S256",
      state: "s".repeat(16),
    }),
  },
  {
    method: login.redeemLogin,
    request: () => ({ code: CODE, codeVerifier: "v".repeat(43), redirectUri: "http://x" }),
    outcome: "LOGIN_INVALID",
  },
  { method: login.startDeviceLogin, request: () => ({ hostName: "laptop" }) },
  { method: login.getDeviceLogin, request: userCode, except: OWN_SESSION },
  {
    method: login.answerDeviceLogin,
    request: async (platform, cast) => ({
      ...named(cast),
      ...(await userCode(platform)),
      approve: true,
    }),
  },
  {
    method: login.redeemDeviceLogin,
    request: () => ({ deviceCode: CODE }),
    outcome: "LOGIN_INVALID",
  },
  {
    method: deployment.createDeployment,
    request: (_, cast) => ({ ...named(cast), name: newName("app") }),
  },
  {
    method: deployment.getDeployment,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  { method: MetricsService.method.queryMetrics, request: (_, cast) => named(cast) },
  {
    method: MetricsService.method.listMetrics,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  { method: deployment.listDeployments, request: (_, cast) => named(cast) },
  {
    method: deployment.watchDeployments,
    request: (_, cast) => ({ ...named(cast), followFor: "0.001s" }),
  },
  {
    method: deployment.updateDeployment,
    async request(platform, cast) {
      const { deployment: name, ...rest } = await deploymentOf(platform, cast);
      return { ...rest, deployment: { name, authorization: true } };
    },
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.deleteDeployment,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.findMissingFiles,
    request: (_, cast) => ({ ...named(cast), sha256: [DIGEST] }),
  },
  {
    method: deployment.lockSystemPackages,
    request: (_, cast) => ({ ...named(cast), packages: ["ffmpeg"] }),
    outcome: "SANDBOX_UNAVAILABLE",
  },
  {
    method: deployment.lockImage,
    request: (_, cast) => ({ ...named(cast), image: "debian:12" }),
    outcome: "SANDBOX_UNAVAILABLE",
  },
  {
    method: deployment.uploadFile,
    request: (_, cast) => ({ ...named(cast), header: { sha256: DIGEST, sizeBytes: "1" } }),
    outcome: "ARTIFACT_INVALID",
  },
  {
    method: deployment.createRevision,
    request: (_, cast) => ({ ...named(cast), deployment: newName("app"), index: "e30=" }),
    outcome: "ARTIFACT_INVALID",
  },
  {
    method: deployment.listRevisions,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.compareRevisions,
    request: async (platform, cast) => ({ ...(await deploymentOf(platform, cast)), revision: 1 }),
    outcome: "REVISION_NOT_FOUND",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.listWorkers,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.getRevisionFile,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      revision: 1,
      path: "service.js",
    }),
    outcome: "REVISION_NOT_FOUND",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.rollBackDeployment,
    request: deploymentOf,
    outcome: "REVISION_NOT_FOUND",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.listSecrets,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.updateSecrets,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      removeSecrets: ["KEY"],
    }),
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  ...USAGE_ROWS,
  {
    method: schedule.listSchedules,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  ...[schedule.getSchedule, schedule.deleteSchedule, schedule.runSchedule].map((method) => ({
    method,
    request: async (platform: TestPlatform, cast: Cast) => ({
      ...(await deploymentOf(platform, cast)),
      schedule: "nightly",
    }),
    outcome: "SCHEDULE_NOT_FOUND" as const,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" } as const,
  })),
  {
    method: schedule.createSchedule,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      schedule: { name: "nightly", endpoint: "report", cron: "0 3 * * *" },
    }),
    outcome: "NO_REVISION",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: schedule.updateSchedule,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      schedule: { name: "nightly", paused: true },
    }),
    outcome: "SCHEDULE_NOT_FOUND",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.confirmSecrets,
    request: async (platform, cast) => ({ ...(await deploymentOf(platform, cast)), version: 1 }),
    outcome: "NO_REVISION",
    except: {
      "a member": "ACCESS_DENIED",
      "a member's personal token": "ACCESS_DENIED",
      [FOREIGN]: "DEPLOYMENT_NOT_FOUND",
    },
  },
  {
    method: deployment.stopDeployment,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.startDeployment,
    request: deploymentOf,
    outcome: "NO_REVISION",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.pauseEndpoint,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      endpoint: "summarize",
    }),
    outcome: "ENDPOINT_NOT_FOUND",
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.resumeEndpoint,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      endpoint: "summarize",
    }),
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: deployment.watchDeploymentLogs,
    request: deploymentOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  { method: model.listModels, request: (_, cast) => named(cast) },
  {
    method: model.pushModel,
    request: (_, cast) => ({ ...named(cast), model: newName("weights"), index: "e30=" }),
    outcome: "ARTIFACT_INVALID",
  },
  {
    method: model.importModel,
    request: (_, cast) => ({ ...named(cast), source: "hf://acme/reader" }),
    outcome: "SOURCE_REFUSED",
  },
  ...[model.getModel, model.watchModel, model.readModel, model.deleteModel].map((method) => ({
    method,
    request: async (platform: TestPlatform, cast: Cast) => ({
      ...(await modelOf(platform, cast)),
      ...(method !== model.getModel && { version: 1 }),
    }),
    except: { [FOREIGN]: "MODEL_NOT_FOUND" } as const,
  })),
  {
    method: webhook.createWebhook,
    request: async (platform, cast) => ({
      ...(await deploymentOf(platform, cast)),
      webhook: { name: "app", url: "https://example.com/told" },
    }),
    except: { ...NO_READS, [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: webhook.updateWebhook,
    request: async (platform, cast) => ({
      ...(await webhookOf(platform, cast)),
      webhook: { name: "app", url: "https://example.com/other" },
    }),
    except: { ...NO_READS, [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: webhook.updateWebhook,
    variant: "to disable it",
    request: async (platform, cast) => ({
      ...(await webhookOf(platform, cast)),
      webhook: { name: "app", disabled: true },
    }),
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: webhook.createWebhook,
    variant: "of an open deployment",
    request: async (platform, cast) => ({
      ...(await openDeploymentOf(platform, cast)),
      webhook: { name: "app", url: "https://example.com/told" },
    }),
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  {
    method: webhook.listWebhooks,
    request: webhookOf,
    except: { [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  { method: webhook.listFailingWebhooks, request: (_, cast) => named(cast) },
  {
    method: webhook.listWebhookDeliveries,
    request: webhookOf,
    except: { ...NO_READS, [FOREIGN]: "DEPLOYMENT_NOT_FOUND" },
  },
  ...[webhook.deleteWebhook, webhook.rotateWebhookSecret, webhook.testWebhook].map((method) => ({
    method,
    request: async (platform: TestPlatform, cast: Cast) => ({
      ...(await webhookOf(platform, cast)),
      name: "app",
    }),
    except: {
      ...(method !== webhook.deleteWebhook && NO_READS),
      [FOREIGN]: "DEPLOYMENT_NOT_FOUND",
    } as const,
  })),
  ...[webhook.getWebhookDelivery, webhook.redeliverWebhook].map((method) => ({
    method,
    request: async (platform: TestPlatform, cast: Cast) => ({
      ...(await webhookOf(platform, cast)),
      deliveryId: "test-1",
    }),
    except: { ...NO_READS, [FOREIGN]: "DEPLOYMENT_NOT_FOUND" } as const,
  })),
];
