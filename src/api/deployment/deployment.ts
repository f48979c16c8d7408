/** DeploymentService: creation, settings and state of deployments, their workers, and what changes of them. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Deployment,
  DeploymentSchema,
  type DeploymentService,
  type DeploymentWorkerSchema,
  type WatchDeploymentsResponseSchema,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { faultOfName } from "../../auth/names.ts";
import type { Directory } from "../../deployments/directory.ts";
import { problem } from "../../errors.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { BlobStore } from "../../storage/blobs.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";
import type { NodeStorage, WorkerRecord } from "../../storage/hosting/nodes.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { type DeploymentLists, deploymentsOf } from "../deployments-of.ts";
import {
  Followers,
  type ShownById,
  shownById,
  type Telling,
  tellingDeployments,
} from "../follow.ts";
import { PageTokens } from "../page.ts";
import { type UploadFileOptions, uploadFile } from "../upload.ts";
import { refuse, violationsOf } from "../violations.ts";
import { compareRevisions } from "./compare.ts";
import { type DeploymentLogsOptions, watchDeploymentLogs } from "./logs.ts";
import { toDeploymentMessage } from "./messages.ts";
import {
  deploymentNotFound,
  findDeployment,
  isName,
  noRevision,
  tooManyDeployments,
} from "./refusals.ts";
import { type RevisionOptions, revisionHandlers } from "./revision.ts";
import { getRevisionFile, type RevisionFileOptions } from "./revision-file.ts";
import { confirmSecrets, type SecretsOptions, updateSecrets } from "./secrets.ts";
import { updateDeployment } from "./update.ts";

/** Paused endpoints of a deployment: more than a service has, and those that revisions have dropped. */
const MAX_PAUSED_ENDPOINTS = 1_000;

export interface DeploymentServiceOptions
  extends Sources,
    DescribeOptions,
    UploadFileOptions,
    RevisionOptions,
    SecretsOptions,
    RevisionFileOptions,
    ListWorkersOptions,
    DeploymentLogsOptions {
  readonly accounts: Organizations;
  readonly hosting: HostingStorage;
  readonly blobs: Pick<BlobStore, "read" | "write">;
}

/** DeploymentService over the accounts and the hosting storage. */
export function deploymentService(
  options: DeploymentServiceOptions,
): Partial<ServiceImpl<typeof DeploymentService>> {
  const { accounts, hosting, newId, ceilings } = options;

  const describe = describer(options);
  const describeOne = async (
    { organizationId }: Pick<Member, "organizationId">,
    record: DeploymentRecord,
  ) => {
    const [message] = await describe(organizationId, [record]);
    return message ?? {};
  };

  return {
    async createDeployment({ name, authorization }, ctx) {
      const { organizationId, organization, by } = memberOf(ctx);
      refuse(violationsOf({ name: faultOfName(name) }));
      const created = await accounts.createDeployment({
        ...deed(by, options),
        organizationId,
        deploymentId: newId(),
        name,
        authorization,
        limit: ceilings.deployments,
      });
      switch (created.outcome) {
        case "created":
          return describeOne({ organizationId }, created.deployment);
        case "name_taken":
          throw problem(
            "DEPLOYMENT_EXISTS",
            `organization ${organization} has a deployment ${name} already: choose another name`,
          );
        case "limit":
          throw tooManyDeployments(organization, ceilings.deployments);
      }
    },

    async getDeployment({ deployment: name }, ctx) {
      const member = memberOf(ctx);
      return describeOne(member, await findDeployment(accounts, member, name));
    },

    async listDeployments(req, ctx) {
      const { organizationId } = memberOf(ctx);
      const tokens = new PageTokens({
        method: "ListDeployments",
        filter: [organizationId],
        isEnd: isName,
      });
      const page = await accounts.listDeployments({ ...tokens.query(req), organizationId });
      return {
        deployments: await describe(organizationId, page.items),
        nextPageToken: tokens.after(page.next),
      };
    },

    async updateDeployment(req, ctx) {
      const { organizationId } = memberOf(ctx);
      return describeOne({ organizationId }, await updateDeployment(req, ctx, options));
    },

    async deleteDeployment({ deployment: name, force }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const deleted = isName(name)
        ? await accounts.deleteDeployment({ ...deed(by, options), organizationId, name, force })
        : ({ outcome: "not_found" } as const);
      switch (deleted.outcome) {
        case "deleted":
          return {};
        case "not_found":
          throw deploymentNotFound(name);
        case "has_tasks": {
          const { queued, running } = deleted;
          throw problem(
            "TASKS_QUEUED",
            `deployment ${name} has ${queued} queued and ${running} running tasks, which would be lost: wait for them, or set force to delete it all the same`,
            { metadata: { queued: String(queued), running: String(running) } },
          );
        }
      }
    },

    async listSecrets({ deployment: name }, ctx) {
      const secrets = await hosting.listSecrets(
        await findDeployment(accounts, memberOf(ctx), name),
      );
      return {
        secrets: secrets.map(({ setAtMs, ...it }) => ({ ...it, setAt: timestampFromMs(setAtMs) })),
      };
    },

    async updateSecrets(req, ctx) {
      const member = memberOf(ctx);
      return describeOne(member, await updateSecrets(req, member, options));
    },

    async confirmSecrets(req, ctx) {
      const member = memberOf(ctx);
      return describeOne(member, await confirmSecrets(req, member, options));
    },

    async stopDeployment({ deployment: name }, ctx) {
      return setDesiredState("stopped", name, memberOf(ctx));
    },

    async startDeployment({ deployment: name }, ctx) {
      return setDesiredState("running", name, memberOf(ctx));
    },

    async pauseEndpoint({ deployment: name, endpoint }, ctx) {
      const member = memberOf(ctx);
      const record = await findDeployment(accounts, member, name);
      const paused = record.pausedEndpoints.some((one) => one.endpoint === endpoint);
      if (!paused) {
        await mustBeTask(record, endpoint);
      }
      const { organizationId, by } = member;
      const limit = MAX_PAUSED_ENDPOINTS;
      const wanted = { ...deed(by, options), organizationId, name, endpoint, limit };
      const set = await hosting.pauseEndpoint(wanted);
      switch (set.outcome) {
        case "changed":
          return describeOne(member, set.deployment);
        case "not_found":
          throw deploymentNotFound(name);
        case "limit":
          throw problem(
            "LIMIT_REACHED",
            `deployment ${name} has ${limit} paused endpoints: resume some first`,
          );
      }
    },

    async resumeEndpoint({ deployment: name, endpoint }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const set = isName(name)
        ? await hosting.resumeEndpoint({ ...deed(by, options), organizationId, name, endpoint })
        : ({ outcome: "not_found" } as const);
      if (set.outcome === "not_found") {
        throw deploymentNotFound(name);
      }
      return describeOne({ organizationId }, set.deployment);
    },

    ...revisionHandlers(options, describeOne),
    uploadFile: uploadFile(options),
    watchDeployments: watchDeployments(accounts, describe),
    watchDeploymentLogs: watchDeploymentLogs(options),
    compareRevisions: compareRevisions(options),
    getRevisionFile: getRevisionFile(options),
    listWorkers: listWorkers(options),
  };

  /** Throws ENDPOINT_NOT_FOUND or ENDPOINT_NOT_A_TASK for what takes no tasks in the newest revision. */
  async function mustBeTask(record: DeploymentRecord, endpoint: string): Promise<void> {
    const { organizationId, name } = record;
    const asked = { organizationId, deployments: [record], nowMs: options.now() };
    const [state] = await hosting.describeDeployments(asked);
    const { endpoints = [] } = state ?? {};
    const found = endpoints.find((one) => one.name === endpoint);
    if (found === undefined) {
      const names = endpoints.map((one) => one.name).join(", ");
      throw problem(
        "ENDPOINT_NOT_FOUND",
        `deployment ${name} has no endpoint ${JSON.stringify(endpoint)}; it has: ${names}`,
      );
    }
    if (found.kind === "api") {
      throw problem(
        "ENDPOINT_NOT_A_TASK",
        `endpoint ${endpoint} is an api, which has no queue to pause: stop the deployment to refuse its calls`,
      );
    }
  }

  async function setDesiredState(
    desiredState: DeploymentRecord["desiredState"],
    name: string,
    { organizationId, by }: Member,
  ) {
    const set = isName(name)
      ? await hosting.setDesiredState({
          ...deed(by, options),
          organizationId,
          name,
          desiredState,
        })
      : ({ outcome: "not_found" } as const);
    switch (set.outcome) {
      case "changed":
        return describeOne({ organizationId }, set.deployment);
      case "not_found":
        throw deploymentNotFound(name);
      case "no_revision":
        throw noRevision(name);
    }
  }
}

// WatchDeployments: the deployments of an organization, or one, and what changes of them. All are
// read once a second while anybody follows any, once for all followers: two queries.

type WatchDeployments = ServiceImpl<typeof DeploymentService>["watchDeployments"];
type State = ShownById<Deployment>;
type DeploymentTelling = Telling<State, MessageInitShape<typeof WatchDeploymentsResponseSchema>>;

/** The implementation of WatchDeployments. */
function watchDeployments(accounts: DeploymentLists, describe: Describe): WatchDeployments {
  const followers = new Followers<State>("deployments");
  return async function* ({ deployment, followFor }, { values, signal }) {
    const { organizationId } = memberOf({ values });
    const read = async (before?: State) => {
      const described = await describe(
        organizationId,
        await deploymentsOf(accounts, organizationId),
      );
      const messages = described.map((init) => create(DeploymentSchema, init));
      return shownById(
        DeploymentSchema,
        messages.map((one) => [one.deploymentId, one] as const),
        before,
      );
    };
    const forMs = followFor && durationMs(followFor);
    const telling = deployment === "" ? tellingDeployments : tellingOf(deployment);
    yield* followers.follow({ organizationId, key: organizationId, read, forMs, signal }, telling);
  };
}

/** Tells of the deployment that has this name at first, until it is deleted. */
function tellingOf(name: string): DeploymentTelling {
  let id: string | undefined;
  const only = (state: State): State => {
    id ??= [...state.values()].find(({ message }) => message.name === name)?.message.deploymentId;
    if (id === undefined) {
      throw deploymentNotFound(name);
    }
    const one = state.get(id);
    return new Map(one && [[id, one]]);
  };
  return {
    changeOf: (sent, next) => tellingDeployments.changeOf(sent && only(sent), only(next)),
    unchanged: tellingDeployments.unchanged,
    isOver: (state) => only(state).size === 0,
  };
}

// Deployments with their state on all nodes, as messages.

interface DescribeOptions {
  readonly hosting: Pick<NodeStorage, "describeDeployments">;
  readonly now: () => number;
  /** The URL of a deployment. */
  readonly urlOf: (deployment: DeploymentRecord) => string;
}

/** Describes deployments of one organization, in their order. */
type Describe = (
  organizationId: string,
  records: readonly DeploymentRecord[],
) => Promise<MessageInitShape<typeof DeploymentSchema>[]>;

function describer({ hosting, now, urlOf }: DescribeOptions): Describe {
  return async (organizationId, deployments) => {
    const nowMs = now();
    const states = await hosting.describeDeployments({ organizationId, deployments, nowMs });
    return deployments.flatMap((record, index) => {
      const state = states[index];
      return state === undefined ? [] : [toDeploymentMessage(record, state, urlOf(record))];
    });
  };
}

// ListWorkers: the workers of a deployment, on this node as they are, on others as reported.

interface ListWorkersOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<NodeStorage, "listWorkers">;
  readonly now: () => number;
  readonly directory: Pick<Directory, "workersHere">;
}

/** The implementation of ListWorkers. */
function listWorkers({
  accounts,
  hosting,
  now,
  directory,
}: ListWorkersOptions): ServiceImpl<typeof DeploymentService>["listWorkers"] {
  return async ({ deployment: name }, ctx) => {
    const { organizationId, deploymentId } = await findDeployment(accounts, memberOf(ctx), name);
    const reported = await hosting.listWorkers({ organizationId, deploymentId, nowMs: now() });
    const here = directory.workersHere?.(deploymentId);
    const nodes = here
      ? [...reported.filter(({ nodeId }) => nodeId !== here.nodeId), here]
      : reported;
    const sorted = nodes.toSorted((one, other) => (one.nodeId < other.nodeId ? -1 : 1));
    return {
      workers: sorted.flatMap(({ nodeId, workers }) =>
        workers.map((one) => ({ ...toWorker(nodeId, one), deployment: name })),
      ),
      omitted: nodes.reduce((sum, { omitted }) => sum + omitted, 0),
    };
  };
}

function machineMessage(machine: NonNullable<WorkerRecord["machine"]>) {
  const { hostname, platform, version, labels, isDrained = false } = machine;
  return { hostname, platform, version, labels: { ...labels }, drained: isDrained };
}

function toWorker(
  node: string,
  { workerId, revision, machine, startedAtMs, calls, ready, fault = "", gpus = [] }: WorkerRecord,
): MessageInitShape<typeof DeploymentWorkerSchema> {
  return {
    workerId,
    node,
    revision,
    ...(machine && { machine: machineMessage(machine) }),
    startedAt: timestampFromMs(startedAtMs),
    calls,
    ready,
    fault,
    gpus: [...gpus],
  };
}
