/**
 * Claiming: moves due tasks from the queue to leases, and finds delayed tasks
 * that have become due.
 */
import type { LaterClaim } from "../claims-by-key.ts";
import type { DueCount } from "../queues.ts";
import type { Claimed, ClaimedTask, Storage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import {
  giveKeys,
  type Picked,
  type Picking,
  pickByKey,
  pickSuspectsByKey,
  TO_CLAIM,
  takeUnbegun,
} from "./keys.ts";
import { isLeaseOpen } from "./leases.ts";
import { readPayload } from "./payloads.ts";
import { readTask } from "./read.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { beginTimes, pickByTime } from "./times.ts";

/** Delayed tasks of one endpoint that one claim promotes; the next claim promotes more. */
export const MAX_PROMOTED_TASKS = 1_000;

/** The ready tasks that are suspects, and those that are not: what stands after `INDEXED BY`. */
const SUSPECTS = "tasks_suspect WHERE suspect = 1 AND";
const INNOCENTS = "tasks_ready WHERE suspect = 0 AND";

/**
 * Selects tasks and then updates them one by one. Within a transaction that is
 * the only writer, this equals `UPDATE … RETURNING` at less than two thirds of
 * its cost in SQLite.
 */
export function claimTasks(
  db: SqliteDatabase,
  { deploymentId, nowMs, claims, suspects = false }: Parameters<Storage["claimTasks"]>[0],
): Claimed {
  const later = new Map<string, LaterClaim>();
  const due: NonNullable<Claimed["due"]>[number][] = [];
  const endpoints = new Map(claims.map(({ endpoint, byKey }) => [endpoint, byKey]));
  if (isAnyDue(db, deploymentId, nowMs)) {
    for (const [endpoint, byKey] of endpoints) {
      const keys = promote(db, { deploymentId, endpoint, nowMs, byKey: byKey !== undefined });
      if (keys.length > 0) {
        due.push({ endpoint, keys });
      }
    }
  }
  for (const [endpoint, byKey] of endpoints) {
    if (byKey?.unkeyed) {
      giveKeys(db, deploymentId, endpoint);
    }
    if (byKey?.rate) {
      takeUnbegun(db, { deploymentId, endpoint });
    }
  }
  const of = { deploymentId, nowMs };
  const open = claims.filter(
    ({ endpoint, leaseId }) =>
      isLeaseOpen(db, leaseId) && !db.pausedEndpoints.has(deploymentId, endpoint),
  );
  const byTurns = suspects ? new Map<string, Picked>() : pickByTurns(db, of, { claims, open });
  const tasks = open.flatMap(({ endpoint, leaseId, limit, byKey }) => {
    const picking = { ...of, endpoint, limit, ...byKey };
    let picked = byTurns.get(endpoint);
    if (picked) {
      // All claims of the endpoint are dealt of the same tasks.
      byTurns.set(endpoint, { ...picked, rows: picked.rows.slice(limit) });
      picked = { ...picked, rows: picked.rows.slice(0, limit) };
    } else if (byKey === undefined) {
      picked = { rows: pickInOrder(db, picking, suspects ? SUSPECTS : INNOCENTS) };
    } else {
      picked = { rows: pickSuspects(db, picking) };
    }
    const { rows } = picked;
    if (picked.later) {
      later.set(endpoint, { endpoint, ...picked.later });
    }
    db.counts.add(deploymentId, endpoint, { queued: -rows.length, running: rows.length });
    return rows.map((row) => claim(db, row, { deploymentId, leaseId, nowMs }));
  });
  return { tasks, later: [...later.values()], ...(due.length > 0 && { due }) };
}

type Claims = Parameters<Storage["claimTasks"]>[0]["claims"];
type Claiming = Pick<Picking, "deploymentId" | "nowMs">;

/** What is picked of each endpoint that goes by keys, for all claims of it together. */
function pickByTurns(
  db: SqliteDatabase,
  of: Claiming,
  { claims, open }: { readonly claims: Claims; readonly open: Claims },
): Map<string, Picked> {
  const picked = new Map<string, Picked>();
  for (const { endpoint, byKey } of claims) {
    if (byKey && !picked.has(endpoint)) {
      const limit = open.reduce((sum, one) => sum + (one.endpoint === endpoint ? one.limit : 0), 0);
      const pick = byKey.fair === "seconds" ? pickByTime : pickByKey;
      picked.set(endpoint, pick(db, { ...of, endpoint, limit, ...byKey }));
    }
  }
  return picked;
}

function pickSuspects(db: SqliteDatabase, picking: Picking): SqliteRow[] {
  const rows = pickSuspectsByKey(db, picking);
  if (picking.fair === "seconds") {
    beginTimes(db, picking, rows);
  }
  return rows;
}

function pickInOrder(
  db: SqliteDatabase,
  { deploymentId, endpoint, nowMs, limit }: Omit<Picking, "concurrency" | "rate">,
  ready: typeof SUSPECTS | typeof INNOCENTS,
): SqliteRow[] {
  return db.all(
    `SELECT ${TO_CLAIM} FROM tasks INDEXED BY ${ready}
       deployment_id = ? AND endpoint = ? AND status = ${STATUS.ready}
       AND (start_by_ms IS NULL OR start_by_ms > ?)
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ?`,
    deploymentId,
    endpoint,
    nowMs,
    limit,
  );
}

/** Usually false: then delayed tasks cost a claim only one index lookup. */
function isAnyDue(db: SqliteDatabase, deploymentId: string, nowMs: number): boolean {
  const found = db.get(
    `SELECT 1 FROM tasks INDEXED BY tasks_scheduled
     WHERE deployment_id = ? AND status = ${STATUS.scheduled} AND run_at_ms <= ? LIMIT 1`,
    deploymentId,
    nowMs,
  );
  return found !== undefined;
}

/**
 * Promotes the due delayed tasks of one endpoint to ready, longest due first.
 * Skips tasks that can no longer start, because they would use up the bound. Returns their keys
 * where the endpoint goes by keys.
 */
function promote(
  db: SqliteDatabase,
  of: {
    readonly deploymentId: string;
    readonly endpoint: string;
    readonly nowMs: number;
    readonly byKey: boolean;
  },
): readonly string[] {
  const rows = db.all(
    `UPDATE tasks SET status = ${STATUS.ready}${of.byKey ? ", key = coalesce(key, '')" : ""}
     WHERE deployment_id = ?1 AND task_id IN (
       SELECT task_id FROM tasks INDEXED BY tasks_scheduled_by_endpoint
       WHERE deployment_id = ?1 AND endpoint = ?2 AND status = ${STATUS.scheduled}
         AND run_at_ms <= ?3 AND (start_by_ms IS NULL OR start_by_ms > ?3)
       ORDER BY run_at_ms LIMIT ${MAX_PROMOTED_TASKS})${of.byKey ? " RETURNING key" : ""}`,
    of.deploymentId,
    of.endpoint,
    of.nowMs,
  );
  return [...new Set(rows.map(({ key }) => String(key)))];
}

function claim(
  db: SqliteDatabase,
  row: SqliteRow,
  claimer: { readonly deploymentId: string; readonly leaseId: string; readonly nowMs: number },
): ClaimedTask {
  const { deploymentId, leaseId, nowMs } = claimer;
  const found = readTask(db, { deploymentId, taskId: String(row.task_id) });
  if (found === undefined) {
    throw new Error(`task ${row.task_id} was found and is not there`);
  }
  const task = {
    ...found,
    status: "running",
    attempt: found.attempt + 1,
    startedAtMs: nowMs,
    worker: leaseId,
    lastSequence: found.lastSequence + 1,
    progress: undefined,
  } as const;
  const payload = readPayload(db, { ...task, side: "arguments" }, row.arguments);
  if (payload === undefined) {
    throw new Error(`task ${task.taskId} has lost its arguments`);
  }
  db.run(
    `UPDATE tasks SET status = ${STATUS.running}, attempt = ?3, started_at_ms = ?4, lease_id = ?5,
       started_sequence = ?6, last_sequence = ?6, progress_fraction = NULL,
       progress_message = NULL, abort_requested = 0
     WHERE deployment_id = ?1 AND task_id = ?2`,
    deploymentId,
    task.taskId,
    task.attempt,
    nowMs,
    leaseId,
    task.lastSequence,
  );
  const [retentionMs, tokenId] = [Number(row.retention_ms), String(row.token_id ?? "")];
  db.live.remember({ task, retentionMs, tokenId });
  return { task, leaseId, arguments: payload };
}

export function countDue(
  db: SqliteDatabase,
  { deploymentId, nowMs, limit }: Parameters<Storage["countDue"]>[0],
): DueCount[] {
  const waiting = db.counts
    .list(deploymentId)
    .filter(
      ({ endpoint, queued }) => queued > 0 && !db.pausedEndpoints.has(deploymentId, endpoint),
    );
  const counted = waiting.map(({ endpoint }) => {
    const ready = db.get(
      `SELECT count(*) AS due FROM (
         SELECT 1 FROM tasks INDEXED BY tasks_ready
         WHERE deployment_id = ? AND endpoint = ? AND status = ${STATUS.ready}
           AND (start_by_ms IS NULL OR start_by_ms > ?) LIMIT ?)`,
      deploymentId,
      endpoint,
      nowMs,
      limit,
    );
    const scheduled = db.get(
      `SELECT count(*) AS due FROM (
         SELECT 1 FROM tasks INDEXED BY tasks_scheduled_by_endpoint
         WHERE deployment_id = ? AND status = ${STATUS.scheduled} AND run_at_ms <= ?
           AND endpoint = ? AND (start_by_ms IS NULL OR start_by_ms > ?) LIMIT ?)`,
      deploymentId,
      nowMs,
      endpoint,
      nowMs,
      limit,
    );
    return { endpoint, due: Math.min(Number(ready?.due) + Number(scheduled?.due), limit) };
  });
  return counted.filter(({ due }) => due > 0);
}

export function nextRunAt(
  db: SqliteDatabase,
  { deploymentId, nowMs }: Parameters<Storage["nextRunAt"]>[0],
): number | undefined {
  const row = db.get(
    `SELECT min(run_at_ms) AS next FROM tasks
     WHERE deployment_id = ? AND status = ${STATUS.scheduled} AND run_at_ms > ?`,
    deploymentId,
    nowMs,
  );
  return typeof row?.next === "number" ? row.next : undefined;
}
