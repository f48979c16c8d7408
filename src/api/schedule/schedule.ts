/** ScheduleService: schedules of deployments, and their tasks that are asked for now. */
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type CreateScheduleRequest,
  type Schedule,
  ScheduleSchema,
  type ScheduleService,
  type UpdateScheduleRequest,
} from "../../../gen/tessera/v1/schedule_pb.js";
import { verifyIndex } from "../../artifacts/index-file.ts";
import type { Directory } from "../../deployments/directory.ts";
import { type Problem, problem } from "../../errors.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import {
  deed,
  type Member,
  memberOf,
  originOf,
  type Sources,
} from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { Revisions } from "../../storage/hosting/revisions.ts";
import type {
  NewSchedule,
  ScheduleRecord,
  ScheduleStorage,
} from "../../storage/hosting/schedules.ts";
import { scheduleKey } from "../../tasks/task.ts";
import { findDeployment, noRevision } from "../deployment/refusals.ts";
import {
  MAX_SCHEDULES,
  type ScheduledDeployment,
  tooManySchedules,
  toSchedule,
  toScheduleMessage,
} from "../deployment/schedules.ts";
import { changedFields, changedMeanwhile } from "../mask.ts";
import { toTaskMessage } from "../task/messages.ts";
import { missing } from "../violations.ts";

interface ScheduleServiceOptions extends Sources {
  readonly accounts: Pick<Organizations, "findDeployment" | "recordAuditEvent">;
  readonly hosting: ScheduleStorage & Pick<Revisions, "getHosted" | "getIndex">;
  readonly directory: Pick<Directory, "find">;
}

/** What an update may change. */
const CHANGEABLE = [
  ...["endpoint", "arguments", "cron", "time_zone", "overlap", "catch_up", "paused"],
] as const;

/** ScheduleService over the hosting storage and the deployments of this node. */
export function scheduleService(
  options: ScheduleServiceOptions,
): Partial<ServiceImpl<typeof ScheduleService>> {
  const { accounts, hosting, directory, now, newId } = options;

  return {
    async listSchedules({ deployment: name }, ctx) {
      const member = memberOf(ctx);
      const found = await findDeployment(accounts, member, name);
      const schedules = await hosting.listSchedules(found);
      const deployment = await scheduled(member, found);
      return { schedules: schedules.map((one) => toScheduleMessage(one, deployment, now())) };
    },

    async getSchedule({ deployment, schedule: name }, ctx) {
      const member = memberOf(ctx);
      const { found, schedule } = await find(member, deployment, name);
      return toScheduleMessage(schedule, await scheduled(member, found), now());
    },

    async createSchedule(req, ctx) {
      return createSchedule(req, memberOf(ctx));
    },

    async updateSchedule(req, ctx) {
      return updateSchedule(req, memberOf(ctx));
    },

    async deleteSchedule({ deployment, schedule: name }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const { deploymentId } = await findDeployment(accounts, { organizationId }, deployment);
      const key = { organizationId, deploymentId, name };
      const { outcome } = await hosting.deleteSchedule({ ...deed(by, options), ...key });
      if (outcome === "not_found") {
        throw scheduleNotFound(deployment, name);
      }
      return {};
    },

    async runSchedule({ deployment: named, schedule: name }, ctx) {
      const member = memberOf(ctx);
      const { organizationId, organization, principal, by } = member;
      const { schedule } = await find(member, named, name);
      const target = { named: `${organization}/${named}`, header: "", host: "" };
      const located = await directory.find(target, principal);
      await located.wake?.();
      const deployment = located.deployment();
      const origin = originOf(ctx);
      deployment.admit("task", origin.tokenId);
      const { manifest } = deployment.taskEndpoint(schedule.endpoint);
      const key = scheduleKey(name, now(), newId());
      const { task } = await deployment.queue.submit(
        manifest,
        { json: schedule.arguments, files: [] },
        { idempotency: { key, digest: `schedule ${name}` }, origin },
      );
      await accounts.recordAuditEvent({
        ...deed(by, options),
        organizationId,
        action: "schedule.run",
        subjectId: schedule.deploymentId,
        subject: `${named}/${name}`,
        details: { task: task.taskId },
      });
      return toTaskMessage(task, deployment.name);
    },
  };

  async function createSchedule(
    { deployment: name, schedule: message = missing(), validateOnly }: CreateScheduleRequest,
    member: Member,
  ): Promise<Schedule> {
    const found = await findDeployment(accounts, member, name);
    const deployment = await deployed(member, found);
    const { service } = deployment;
    const schedule = toSchedule(message, { service, nowMs: now(), field: "schedule" });
    const { organizationId, by } = member;
    const { deploymentId } = found;
    if (validateOnly) {
      const made = unstored({ organizationId, deploymentId, by: by.name, nowMs: now() });
      const nextAtMs = schedule.paused ? undefined : schedule.nextAtMs;
      return toScheduleMessage({ ...made, ...schedule, nextAtMs }, deployment, now());
    }
    const created = await hosting.createSchedule({
      ...deed(by, options),
      ...{ organizationId, deploymentId, schedule, limit: MAX_SCHEDULES },
    });
    switch (created.outcome) {
      case "created":
        return toScheduleMessage(created.schedule, deployment, now());
      case "name_taken":
        throw problem(
          "SCHEDULE_EXISTS",
          `deployment ${name} has a schedule ${schedule.name} already: choose another name, or change that one`,
        );
      case "limit":
        throw tooManySchedules(name);
      case "deployment_gone":
        throw problem("DEPLOYMENT_NOT_FOUND", `deployment ${name} was deleted meanwhile`);
    }
  }

  async function updateSchedule(
    {
      deployment: named,
      schedule: change = missing(),
      updateMask: mask,
      validateOnly,
    }: UpdateScheduleRequest,
    member: Member,
  ): Promise<Schedule> {
    const { found, schedule: before } = await find(member, named, change.name);
    const fields = changedFields(ScheduleSchema, { message: change, mask }, CHANGEABLE);
    if (change.version !== 0 && change.version !== before.version) {
      throw changedMeanwhile(`schedule ${change.name}`);
    }
    const deployment = await deployed(member, found);
    const stored = toScheduleMessage(before, deployment, now());
    const wanted: Schedule = {
      ...stored,
      ...(fields.has("endpoint") && { endpoint: change.endpoint }),
      ...(fields.has("arguments") && { arguments: change.arguments ?? {} }),
      ...(fields.has("cron") && { cron: change.cron }),
      ...(fields.has("time_zone") && { timeZone: change.timeZone }),
      ...(fields.has("overlap") && { overlap: change.overlap }),
      ...(fields.has("catch_up") && { catchUp: change.catchUp }),
      ...(fields.has("paused") && { paused: change.paused ?? false }),
    };
    const nowMs = now();
    // One that its newest revision would refuse can still be paused.
    const onlyPauses = fields.size === 1 && wanted.paused === true;
    const { service } = deployment;
    const schedule = onlyPauses
      ? { ...before, paused: true, nextAtMs: before.nextAtMs ?? nowMs }
      : toSchedule(wanted, { service, nowMs, field: "schedule" });
    if (validateOnly) {
      const nextAtMs = schedule.paused ? undefined : schedule.nextAtMs;
      return toScheduleMessage({ ...before, ...schedule, nextAtMs }, deployment, nowMs);
    }
    const { organizationId, by } = member;
    const updated = await hosting.updateSchedule({
      ...deed(by, options),
      ...{ organizationId, deploymentId: found.deploymentId, schedule, version: before.version },
    });
    switch (updated.outcome) {
      case "updated":
        return toScheduleMessage(updated.schedule, deployment, now());
      case "not_found":
        throw scheduleNotFound(named, change.name);
      case "version_conflict":
        throw changedMeanwhile(`schedule ${change.name}`);
    }
  }

  async function find(member: Member, deployment: string, name: string) {
    const { organizationId } = member;
    const found = await findDeployment(accounts, member, deployment);
    const { deploymentId } = found;
    const schedule = await hosting.getSchedule({ organizationId, deploymentId, name });
    if (schedule === undefined) {
      throw scheduleNotFound(deployment, name);
    }
    return { found, schedule };
  }

  /** What is said of a deployment with its schedules. */
  async function scheduled(
    { organizationId, organization }: Member,
    { deploymentId, name, desiredState }: DeploymentRecord,
  ): Promise<ScheduledDeployment> {
    const { digest } = (await hosting.getHosted({ deploymentId })) ?? {};
    const index = digest && (await hosting.getIndex({ organizationId, digest }));
    return {
      name: `${organization}/${name}`,
      isStopped: desiredState === "stopped",
      service: index ? verifyIndex(index).service : undefined,
    };
  }

  /** The same. Throws NO_REVISION where nothing was deployed. */
  async function deployed(
    member: Member,
    found: DeploymentRecord,
  ): Promise<ScheduledDeployment & { readonly service: ServiceManifest }> {
    const deployment = await scheduled(member, found);
    const { service } = deployment;
    if (service === undefined) {
      throw noRevision(found.name);
    }
    return { ...deployment, service };
  }
}

function scheduleNotFound(deployment: string, name: string): Problem {
  return problem(
    "SCHEDULE_NOT_FOUND",
    `deployment ${deployment} has no schedule ${JSON.stringify(name)}`,
  );
}

/** What a schedule has that is not stored. */
function unstored({
  organizationId,
  deploymentId,
  by,
  nowMs,
}: {
  readonly organizationId: string;
  readonly deploymentId: string;
  readonly by: string;
  readonly nowMs: number;
}): Omit<ScheduleRecord, keyof NewSchedule> {
  return {
    ...{ organizationId, deploymentId, declared: false, version: 0 },
    ...{ lastTask: undefined, last: undefined },
    ...{ createdAtMs: nowMs, createdBy: by, updatedAtMs: nowMs, updatedBy: by },
  };
}
