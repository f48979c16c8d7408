/**
 * Stores, reads and fires schedules. A change locks the organization. A firing locks the row of its
 * schedule alone: it takes the time that it has read, which only one can. So a change never writes
 * back a time that it has read, which may have been fired since.
 */
import type { AuditAction } from "../../accounts/audit.ts";
import type { Deed } from "../../accounts/deed.ts";
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  CatchUp,
  DeclaredSchedule,
  FiringOutcome,
  NewSchedule,
  Overlap,
  ScheduleRecord,
  ScheduleStorage,
  TakenTime,
} from "../../hosting/schedules.ts";
import { record } from "../accounts/audit.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, query } from "../operation.ts";

interface ScheduleRow {
  readonly organization_id: string;
  readonly deployment_id: string;
  readonly name: string;
  readonly endpoint: string;
  readonly arguments: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly overlap: string;
  readonly catch_up: string;
  readonly paused: number;
  readonly declared: number;
  readonly version: number;
  readonly next_at_ms: number | null;
  readonly task_id: string | null;
  readonly task_at_ms: number | null;
  readonly outcome: string | null;
  readonly outcome_at_ms: number | null;
  readonly message: string | null;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly updated_at_ms: number;
  readonly updated_by: string;
}

const COLUMNS =
  "organization_id, deployment_id, name, endpoint, arguments, cron, time_zone, overlap, catch_up, " +
  "paused, declared, version, next_at_ms, task_id, task_at_ms, outcome, outcome_at_ms, message, " +
  "created_at_ms, created_by, updated_at_ms, updated_by";

const OF_DEPLOYMENT = "organization_id = ? AND deployment_id = ?";

function toSchedule(row: ScheduleRow): ScheduleRecord {
  const { task_id: taskId, outcome } = row;
  return {
    organizationId: row.organization_id,
    deploymentId: row.deployment_id,
    name: row.name,
    endpoint: row.endpoint,
    arguments: row.arguments,
    cron: row.cron,
    timeZone: row.time_zone,
    overlap: row.overlap as Overlap,
    catchUp: row.catch_up as CatchUp,
    paused: row.paused === 1,
    declared: row.declared === 1,
    version: row.version,
    nextAtMs: row.next_at_ms ?? undefined,
    lastTask: taskId === null ? undefined : { taskId, atMs: row.task_at_ms ?? 0 },
    last:
      outcome === null
        ? undefined
        : {
            atMs: row.outcome_at_ms ?? 0,
            outcome: outcome as FiringOutcome,
            message: row.message ?? "",
          },
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    updatedAtMs: row.updated_at_ms,
    updatedBy: row.updated_by,
  };
}

export function* listSchedules({
  organizationId,
  deploymentId,
}: DeploymentKey): Operation<ScheduleRecord[]> {
  const rows = yield* query<ScheduleRow>(
    `SELECT ${COLUMNS} FROM schedules WHERE ${OF_DEPLOYMENT} ORDER BY name`,
    organizationId,
    deploymentId,
  );
  return rows.map(toSchedule);
}

export function* getSchedule({
  organizationId,
  deploymentId,
  name,
}: Parameters<HostingStorage["getSchedule"]>[0]): Operation<ScheduleRecord | undefined> {
  const [row] = yield* query<ScheduleRow>(
    `SELECT ${COLUMNS} FROM schedules WHERE ${OF_DEPLOYMENT} AND name = ?`,
    organizationId,
    deploymentId,
    name,
  );
  return row && toSchedule(row);
}

export function* dueSchedules({
  deploymentId,
  nowMs,
  limit,
}: Parameters<HostingStorage["dueSchedules"]>[0]): Operation<ScheduleRecord[]> {
  const rows = yield* query<ScheduleRow>(
    `SELECT ${COLUMNS} FROM schedules
     WHERE deployment_id = ? AND next_at_ms IS NOT NULL AND next_at_ms <= ?
     ORDER BY next_at_ms, name LIMIT ?`,
    deploymentId,
    nowMs,
    limit,
  );
  return rows.map(toSchedule);
}

export function* createSchedule(
  parameters: Parameters<HostingStorage["createSchedule"]>[0],
): Operation<Awaited<ReturnType<ScheduleStorage["createSchedule"]>>> {
  const { organizationId, deploymentId, schedule, limit } = parameters;
  yield* lockOrganization(organizationId);
  const there = yield* query(
    `SELECT 1 AS there FROM deployments WHERE ${OF_DEPLOYMENT}`,
    organizationId,
    deploymentId,
  );
  if (there.length === 0) {
    return { outcome: "deployment_gone" };
  }
  const others = yield* listSchedules(parameters);
  if (others.some(({ name }) => name === schedule.name)) {
    return { outcome: "name_taken" };
  }
  if (others.length >= limit) {
    return { outcome: "limit" };
  }
  const created = yield* insert(parameters, schedule, false);
  yield* audit(parameters, "schedule.create", schedule);
  return { outcome: "created", schedule: created };
}

export function* updateSchedule(
  parameters: Parameters<HostingStorage["updateSchedule"]>[0],
): Operation<Awaited<ReturnType<ScheduleStorage["updateSchedule"]>>> {
  const { schedule, version } = parameters;
  yield* lockOrganization(parameters.organizationId);
  const before = yield* getSchedule({ ...parameters, name: schedule.name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  if (before.version !== version) {
    return { outcome: "version_conflict" };
  }
  if (!differs(before, schedule)) {
    return { outcome: "updated", schedule: before };
  }
  const updated = yield* replace(parameters, before, { schedule, declared: before.declared });
  yield* audit(parameters, "schedule.update", schedule);
  return { outcome: "updated", schedule: updated };
}

export function* deleteSchedule(
  parameters: Parameters<HostingStorage["deleteSchedule"]>[0],
): Operation<{ readonly outcome: "deleted" | "not_found" }> {
  yield* lockOrganization(parameters.organizationId);
  const found = yield* getSchedule(parameters);
  if (found === undefined) {
    return { outcome: "not_found" };
  }
  yield* remove(found);
  yield* audit(parameters, "schedule.delete", found);
  return { outcome: "deleted" };
}

/** Whether a deployment would have more schedules than this with those that a deploy declares. */
export function* tooManySchedules(
  deployment: DeploymentKey,
  declared: readonly DeclaredSchedule[],
  max: number,
): Operation<boolean> {
  const there = yield* listSchedules(deployment);
  const others = there.filter(
    (one) => !one.declared && !declared.some(({ name }) => name === one.name),
  );
  return others.length + declared.length > max;
}

/**
 * Makes the declared schedules of a deployment those that a deploy gives, and returns what to tell
 * the audit log. One that somebody made by hand under a name of these becomes declared; others made
 * by hand stay. The caller has locked the organization.
 */
export function* declareSchedules(
  parameters: Deed & DeploymentKey,
  declared: readonly DeclaredSchedule[],
): Operation<{ readonly schedules?: string; readonly removed_schedules?: string }> {
  const there = yield* listSchedules(parameters);
  const removed = there.filter(
    (one) => one.declared && !declared.some(({ name }) => name === one.name),
  );
  for (const one of removed) {
    yield* remove(one);
  }
  const set: string[] = [];
  for (const each of declared) {
    const before = there.find(({ name }) => name === each.name);
    const schedule = { ...each, paused: each.paused ?? before?.paused ?? false };
    if (before === undefined) {
      yield* insert(parameters, schedule, true);
      set.push(each.name);
    } else if (!before.declared || differs(before, schedule)) {
      yield* replace(parameters, before, { schedule, declared: true });
      set.push(each.name);
    }
  }
  return {
    ...(set.length > 0 && { schedules: set.join(" ") }),
    ...(removed.length > 0 && { removed_schedules: removed.map(({ name }) => name).join(" ") }),
  };
}

function* insert(
  { organizationId, deploymentId, nowMs, by }: Deed & DeploymentKey,
  schedule: NewSchedule,
  declared: boolean,
): Operation<ScheduleRecord> {
  const [row] = yield* query<ScheduleRow>(
    `INSERT INTO schedules (organization_id, deployment_id, name, endpoint, arguments, cron,
       time_zone, overlap, catch_up, paused, declared, version, next_at_ms, created_at_ms,
       created_by, updated_at_ms, updated_by)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?) RETURNING ${COLUMNS}`,
    organizationId,
    deploymentId,
    schedule.name,
    schedule.endpoint,
    schedule.arguments,
    schedule.cron,
    schedule.timeZone,
    schedule.overlap,
    schedule.catchUp,
    schedule.paused,
    declared,
    schedule.paused ? null : schedule.nextAtMs,
    nowMs,
    by.name,
    nowMs,
    by.name,
  );
  return toSchedule(row as ScheduleRow);
}

/** Whether the new text says anything else than the stored one. */
function differs(before: ScheduleRecord, after: NewSchedule): boolean {
  const texts = [
    "endpoint",
    "arguments",
    "cron",
    "timeZone",
    "overlap",
    "catchUp",
    "paused",
  ] as const;
  return texts.some((name) => before[name] !== after[name]);
}

function* replace(
  { nowMs, by }: Deed,
  before: ScheduleRecord,
  { schedule, declared }: { readonly schedule: NewSchedule; readonly declared: boolean },
): Operation<ScheduleRecord> {
  const sameTimes = before.cron === schedule.cron && before.timeZone === schedule.timeZone;
  const nextAt = sameTimes && !schedule.paused ? "coalesce(next_at_ms, ?)" : "?";
  const [row] = yield* query<ScheduleRow>(
    `UPDATE schedules SET endpoint = ?, arguments = ?, cron = ?, time_zone = ?, overlap = ?,
       catch_up = ?, paused = ?, declared = ?, version = version + 1, next_at_ms = ${nextAt},
       updated_at_ms = ?, updated_by = ?
     WHERE ${OF_DEPLOYMENT} AND name = ? RETURNING ${COLUMNS}`,
    schedule.endpoint,
    schedule.arguments,
    schedule.cron,
    schedule.timeZone,
    schedule.overlap,
    schedule.catchUp,
    schedule.paused,
    declared,
    schedule.paused ? null : schedule.nextAtMs,
    nowMs,
    by.name,
    before.organizationId,
    before.deploymentId,
    before.name,
  );
  return toSchedule(row as ScheduleRow);
}

function* remove({ organizationId, deploymentId, name }: ScheduleRecord): Operation<void> {
  yield* query(
    `DELETE FROM schedules WHERE ${OF_DEPLOYMENT} AND name = ?`,
    organizationId,
    deploymentId,
    name,
  );
}

/** Arguments are left out: they may hold what not everybody who reads the log may see. */
function* audit(
  parameters: Deed & DeploymentKey,
  action: AuditAction,
  schedule: Pick<NewSchedule, "name" | "endpoint" | "cron" | "timeZone" | "paused">,
): Operation<void> {
  const { name, endpoint, cron, timeZone, paused } = schedule;
  const [row] = yield* query<{ name: string }>(
    `SELECT name FROM deployments WHERE ${OF_DEPLOYMENT}`,
    parameters.organizationId,
    parameters.deploymentId,
  );
  yield* record(parameters, parameters.organizationId, {
    action,
    subjectId: parameters.deploymentId,
    subject: `${row?.name}/${name}`,
    details: { endpoint, cron, time_zone: timeZone, ...(paused && { paused: "true" }) },
  });
}

/**
 * Takes a time; false where another has, or the schedule has changed since it was read. One that
 * was deleted and created again has its first version again, but not its time of creation.
 */
export function* takeTime({
  schedule,
  atMs,
  nextAtMs,
  outcome,
  message,
  taskId,
}: TakenTime): Operation<boolean> {
  const rows = yield* query(
    `UPDATE schedules SET next_at_ms = ?, outcome = ?, outcome_at_ms = ?, message = ?,
       task_id = coalesce(?, task_id), task_at_ms = CASE WHEN ? = 1 THEN ? ELSE task_at_ms END
     WHERE ${OF_DEPLOYMENT} AND name = ? AND created_at_ms = ? AND version = ? AND next_at_ms = ?
     RETURNING name`,
    nextAtMs,
    outcome,
    atMs,
    message,
    taskId,
    taskId !== undefined,
    atMs,
    schedule.organizationId,
    schedule.deploymentId,
    schedule.name,
    schedule.createdAtMs,
    schedule.version,
    atMs,
  );
  return rows.length > 0;
}

/** Corrects what `takeTime` has written, in its transaction: the time may be given back, too. */
export function* correctTime({
  schedule,
  nextAtMs,
  atMs,
  outcome,
  message,
  taskId,
}: TakenTime): Operation<void> {
  const { lastTask } = schedule;
  yield* query(
    `UPDATE schedules SET next_at_ms = ?, outcome = ?, message = ?, task_id = ?, task_at_ms = ?
     WHERE ${OF_DEPLOYMENT} AND name = ?`,
    nextAtMs,
    outcome,
    message,
    taskId ?? lastTask?.taskId,
    taskId === undefined ? lastTask?.atMs : atMs,
    schedule.organizationId,
    schedule.deploymentId,
    schedule.name,
  );
}
