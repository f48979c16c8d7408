/** DeploymentService: creation, settings and state of deployments. */
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Deployment,
  DeploymentSchema,
  type DeploymentService,
} from "../../../../gen/tessera/v1/deployment_pb.js";
import { openableBy } from "../../../auth/grants.ts";
import { faultOfName } from "../../../auth/names.ts";
import { problem } from "../../../errors.ts";
import type {
  DeploymentRecord,
  Organizations,
  SettingsUpdate,
} from "../../../storage/accounts/organizations.ts";
import type { HostingStorage } from "../../../storage/hosting/hosting.ts";
import { deed, type Member, memberOf, type Sources } from "../engine/caller.ts";
import { changedFields } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { type UploadFileOptions, uploadFile } from "../upload.ts";
import { invalidField, refuse, violationsOf } from "../violations.ts";
import { checkCeilings, checkEnvironment } from "./ceilings.ts";
import { type DeploymentLogsOptions, watchDeploymentLogs } from "./logs.ts";
import { toDeploymentMessage } from "./messages.ts";
import {
  deploymentNotFound,
  findDeployment,
  isName,
  noRevision,
  notOpenable,
  tooManyDeployments,
  workersContradict,
} from "./refusals.ts";
import { type RevisionOptions, revisionHandlers } from "./revision.ts";
import { settingsOf } from "./settings.ts";

const SETTINGS = ["min_workers", "max_workers", "memory_mib", "cpu", "env"] as const;
const CHANGEABLE = [
  "authorization",
  "settings",
  ...SETTINGS.map((name) => `settings.${name}` as const),
] as const;

export interface DeploymentServiceOptions
  extends Sources,
    UploadFileOptions,
    RevisionOptions,
    DeploymentLogsOptions {
  readonly accounts: Organizations;
  readonly hosting: HostingStorage;
  /** The URL of a deployment. */
  readonly urlOf: (deployment: DeploymentRecord) => string;
}

/** DeploymentService over the accounts and the hosting storage. */
export function deploymentService(
  options: DeploymentServiceOptions,
): Partial<ServiceImpl<typeof DeploymentService>> {
  const { accounts, hosting, newId, now, urlOf, ceilings } = options;

  const describe = async (member: Pick<Member, "organizationId">, records: DeploymentRecord[]) => {
    const { organizationId } = member;
    const states = await hosting.describeDeployments({
      organizationId,
      deployments: records,
      nowMs: now(),
    });
    return records.flatMap((record, index) => {
      const state = states[index];
      return state === undefined ? [] : [toDeploymentMessage(record, state, urlOf(record))];
    });
  };

  const describeOne = async (member: Pick<Member, "organizationId">, record: DeploymentRecord) => {
    const [message] = await describe(member, [record]);
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

    async getDeployment({ name }, ctx) {
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
        deployments: await describe({ organizationId }, page.items),
        nextPageToken: tokens.after(page.next),
      };
    },

    async updateDeployment({ deployment: message = missing(), updateMask: mask }, ctx) {
      const { principal, organizationId, by } = memberOf(ctx);
      const { name, authorization, version } = message;
      const changed = changedFields(DeploymentSchema, { message, mask }, CHANGEABLE);
      const settings = changedSettings(message, changed);
      checkCeilings(settings, ceilings);
      if (settings.env !== undefined) {
        const before = await findDeployment(accounts, { organizationId }, name);
        await checkEnvironment(hosting, before, { env: settings.env });
      }
      const updated = isName(name)
        ? await accounts.updateDeployment({
            ...deed(by, options),
            organizationId,
            name,
            ...(changed.has("authorization") && { authorization }),
            openable: openableBy(principal),
            settings,
            ...(version !== 0 && { version }),
          })
        : ({ outcome: "not_found" } as const);
      switch (updated.outcome) {
        case "updated":
          return describeOne({ organizationId }, updated.deployment);
        case "not_found":
          throw deploymentNotFound(name);
        case "version_conflict":
          throw problem(
            "VERSION_CONFLICT",
            `deployment ${name} is not at version ${version} any more: read it again`,
          );
        case "not_openable":
          throw notOpenable(name);
        case "workers_contradict":
          throw workersContradict();
      }
    },

    async deleteDeployment({ name, force }, ctx) {
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

    async stopDeployment({ name }, ctx) {
      return setDesiredState("stopped", name, memberOf(ctx));
    },

    async startDeployment({ name }, ctx) {
      return setDesiredState("running", name, memberOf(ctx));
    },

    ...revisionHandlers(options, describeOne),
    uploadFile: uploadFile(options),
    watchDeploymentLogs: watchDeploymentLogs(options),
  };

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

/** The settings that the mask names; if it names `settings` as a whole, all that are set. */
function changedSettings(
  { settings }: Deployment,
  changed: ReadonlySet<(typeof CHANGEABLE)[number]>,
): SettingsUpdate {
  const set = settingsOf(settings);
  if (changed.has("settings")) {
    return set;
  }
  const named = SETTINGS.filter((name) => changed.has(`settings.${name}`));
  const fields = named.map((name): readonly [string, unknown] => {
    const key = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    // Naming `settings.env` in the mask is the only way to empty the environment.
    const value = key === "env" ? (settings?.env ?? {}) : set[key as keyof SettingsUpdate];
    if (value === undefined) {
      throw invalidField("update_mask", `names settings.${name}, which is not set`);
    }
    return [key, value];
  });
  return Object.fromEntries(fields);
}

/** Never called for a validated request: the proto file requires the field. */
function missing(): never {
  throw new Error("the request was not validated");
}
