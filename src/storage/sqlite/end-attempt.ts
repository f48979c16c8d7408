/**
 * How attempts end: for good, or back in the queue. Every write checks the
 * attempt's lease and number (fencing).
 */
import type { Payload } from "../../protocol/messages.ts";
import { returnedAttempt, withReturned } from "../../tasks/attempt.ts";
import { returnEvent } from "../../tasks/event.ts";
import { NODE_LOST, NODES_LOST, RESULT_GONE, workersLost } from "../../tasks/failure.ts";
import {
  countedDeaths,
  MAX_LOST_NODES,
  MAX_LOST_WORKERS,
  restartAfterLostNode,
} from "../../tasks/lost.ts";
import type { Task, TaskFailure } from "../../tasks/task.ts";
import type { AttemptUse } from "../hosting/usage.ts";
import type { Attempt, AttemptEnd, NewEvent, TaskKey } from "../storage.ts";
import { payloadBytes } from "../stored.ts";
import type { SqliteDatabase } from "./database.ts";
import { insertEvent, recordEvent } from "./events.ts";
import { keepUnbegun } from "./keys.ts";
import type { LiveTask } from "./live-tasks.ts";
import { hasBlobs, isInline, writePayload } from "./payloads.ts";
import { readTask } from "./read.ts";
import { TASK_COLUMNS, toReturned, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { countRun } from "./times.ts";
import { tellOfEnd } from "./webhooks.ts";

/** The fence: only the running attempt with this lease and this number may write. */
const CURRENT = `deployment_id = ?1 AND task_id = ?2 AND lease_id = ?3 AND attempt = ?4
  AND status = ${STATUS.running}`;

function isCurrent(
  db: SqliteDatabase,
  { deploymentId, taskId, leaseId, attempt }: Attempt,
): boolean {
  const sql = `SELECT 1 FROM tasks WHERE ${CURRENT}`;
  return db.get(sql, deploymentId, taskId, leaseId, attempt) !== undefined;
}

type FinalEnd = Extract<AttemptEnd, { status: "success" | "failure" | "cancelled" }>;

export function endAttempt(
  db: SqliteDatabase,
  parameters: {
    readonly nowMs: number;
    readonly attempt: Attempt;
    readonly end: AttemptEnd;
    readonly events?: readonly NewEvent[] | undefined;
    /** Undefined: it did not run. */
    readonly used?: AttemptUse | undefined;
    /** False: the seconds of its key do not count. */
    readonly isTimed?: boolean | undefined;
  },
): Task | undefined {
  const { nowMs, attempt, end, events, used, isTimed } = parameters;
  const facts = { attempt, nowMs, used, isTimed };
  if ("unbegun" in end && end.unbegun && isCurrent(db, attempt)) {
    keepUnbegun(db, attempt);
  }
  if (events) {
    for (const event of events) {
      recordEvent(db, { attempt, ...event });
    }
  }
  switch (end.status) {
    case "queued":
      return requeue(db, { ...facts, ...end });
    case "worker_lost":
      return loseWorker(db, { ...facts, failure: end.failure });
    case "node_lost":
      return loseNode(db, attempt, { ...facts, failure: end.failure });
    case "success":
      return isInline(end.result) || hasBlobs(db, end.result)
        ? finish(db, { ...facts, end })
        : requeue(db, { ...facts, runAtMs: nowMs, failure: RESULT_GONE });
    default:
      return finish(db, { ...facts, end });
  }
}

function finish(
  db: SqliteDatabase,
  parameters: {
    readonly attempt: Attempt;
    readonly nowMs: number;
    readonly end: FinalEnd;
    readonly used?: AttemptUse | undefined;
    readonly isTimed?: boolean | undefined;
  },
): Task | undefined {
  const { attempt, nowMs, end, used, isTimed } = parameters;
  const { deploymentId, taskId, leaseId } = attempt;
  const result = end.status === "cancelled" ? undefined : end.result;
  const inline = result !== undefined && isInline(result);
  const values = [
    STATUS[end.status],
    nowMs,
    inline ? result.json : null,
    end.status === "failure" ? JSON.stringify(end.failure) : null,
  ] as const;
  const changed = db.run(
    `UPDATE tasks SET status = ?5, finished_at_ms = ?6,
       expires_at_ms = max(expires_at_ms, ?6 + retention_ms),
       last_sequence = last_sequence + 1, result = ?7, failure = ?8, peak_memory_bytes = ?9
     WHERE ${CURRENT}`,
    deploymentId,
    taskId,
    leaseId,
    attempt.attempt,
    ...values,
    used?.peakMemoryBytes ?? null,
  );
  if (changed === 0) {
    return findRepeated(db, attempt, values);
  }
  if (result && !inline) {
    writePayload(db, { deploymentId, taskId, side: "result" }, result);
  }
  const known = db.live.take(attempt);
  const task = known ? asFinished(known, parameters) : readTask(db, attempt);
  if (task) {
    db.counts.add(deploymentId, task.endpoint, { running: -1 });
    countUse(db, { task, tokenId: known?.tokenId, nowMs, used, result });
    countRun(db, task, { nowMs, isTimed });
    tellOfEnd(db, attempt);
  }
  return task;
}

/** Counts what an attempt used that ran, for the token that submitted its task. */
function countUse(
  db: SqliteDatabase,
  parameters: {
    readonly task: Task;
    readonly tokenId: string | undefined;
    readonly nowMs: number;
    readonly used: AttemptUse | undefined;
    readonly result?: Payload | undefined;
  },
): void {
  const { task, nowMs, used, result } = parameters;
  if (used === undefined && result === undefined) {
    return;
  }
  const { deploymentId, taskId, endpoint, startedAtMs = nowMs } = task;
  const tokenId = parameters.tokenId ?? tokenOf(db, { deploymentId, taskId });
  const runMs = used ? Math.max(0, nowMs - startedAtMs) : 0;
  const bytesOut = result ? payloadBytes(result) : 0;
  db.usage.add({ deploymentId, endpoint, tokenId, nowMs, runMs, bytesOut, ...used });
}

function tokenOf(db: SqliteDatabase, { deploymentId, taskId }: TaskKey): string {
  const row = db.get(
    "SELECT token_id FROM tasks WHERE deployment_id = ? AND task_id = ?",
    deploymentId,
    taskId,
  );
  return String(row?.token_id ?? "");
}

/** Builds the ended task that a read would return. */
function asFinished(
  { task, retentionMs }: LiveTask,
  { end, nowMs, used }: Parameters<typeof finish>[1],
): Task {
  return {
    ...task,
    status: end.status,
    finishedAtMs: nowMs,
    expiresAtMs: Math.max(task.expiresAtMs, nowMs + retentionMs),
    failure: end.status === "failure" ? end.failure : undefined,
    peakMemoryBytes: used?.peakMemoryBytes,
    lastSequence: task.lastSequence + 1,
  };
}

/**
 * Returns the task when it ended with this very end: a repeated call whose
 * first answer was lost.
 */
function findRepeated(
  db: SqliteDatabase,
  { deploymentId, taskId, leaseId, attempt }: Attempt,
  values: readonly [status: number, ...(string | number | null)[]],
): Task | undefined {
  const row = db.get(
    `SELECT ${TASK_COLUMNS} FROM tasks
     WHERE deployment_id = ?1 AND task_id = ?2 AND lease_id = ?3 AND attempt = ?4
       AND status = ?5 AND finished_at_ms = ?6 AND result IS ?7 AND failure IS ?8`,
    deploymentId,
    taskId,
    leaseId,
    attempt,
    ...values,
  );
  return row && toTask(row);
}

/**
 * Requeues the task. Its columns hold only the current attempt, so the start of
 * this attempt and its return to the queue become stored events.
 */
function requeue(
  db: SqliteDatabase,
  parameters: {
    readonly attempt: Attempt;
    readonly nowMs: number;
    /** Absent: the task keeps its place in the queue. */
    readonly runAtMs?: number | undefined;
    /** The attempt failed, and the task is retried. */
    readonly failed?: boolean;
    /** Why the attempt ended. */
    readonly failure: TaskFailure;
    /** As in `AttemptEnd`. */
    readonly suspect?: true;
    /** Deaths of its worker, and of its node, that count from now on; absent: as before. */
    readonly lostWorkers?: number;
    readonly lostNodes?: number;
    readonly used?: AttemptUse | undefined;
    readonly isTimed?: boolean | undefined;
  },
): Task | undefined {
  const { attempt, nowMs, runAtMs, failed, failure, suspect, used, isTimed } = parameters;
  const { deploymentId, taskId, leaseId } = attempt;
  const before = db.get(
    `SELECT started_at_ms, started_sequence, last_sequence, returned FROM tasks WHERE ${CURRENT}`,
    deploymentId,
    taskId,
    leaseId,
    attempt.attempt,
  );
  if (before === undefined) {
    return undefined;
  }
  const tokenId = db.live.take(attempt)?.tokenId;
  const startedAtMs = Number(before.started_at_ms);
  const ended = returnedAttempt({
    number: attempt.attempt,
    worker: leaseId,
    nowMs,
    runAtMs,
    failure,
    peakMemoryBytes: used?.peakMemoryBytes,
  });
  insertEvent(db, {
    ...attempt,
    sequence: Number(before.started_sequence),
    timeMs: startedAtMs,
    body: { kind: "state", status: "running" },
  });
  insertEvent(db, {
    ...attempt,
    sequence: Number(before.last_sequence) + 1,
    timeMs: nowMs,
    body: returnEvent(failure, ended.retryAtMs),
  });
  const row = db.get(
    `UPDATE tasks SET status = ?5, run_at_ms = coalesce(?6, run_at_ms), lease_id = NULL,
       started_sequence = 0, last_sequence = last_sequence + 1,
       failed_attempts = failed_attempts + ?7, lost_workers = coalesce(?8, lost_workers),
       lost_nodes = coalesce(?9, lost_nodes), returned = ?10, suspect = coalesce(?11, suspect)
     WHERE ${CURRENT} RETURNING ${TASK_COLUMNS}`,
    deploymentId,
    taskId,
    leaseId,
    attempt.attempt,
    runAtMs !== undefined && runAtMs > nowMs ? STATUS.scheduled : STATUS.ready,
    runAtMs ?? null,
    failed ? 1 : 0,
    parameters.lostWorkers ?? null,
    parameters.lostNodes ?? null,
    JSON.stringify(withReturned(toReturned(before.returned), { ...ended, startedAtMs })),
    suspicion(suspect, failed),
  );
  const task = row && toTask(row);
  if (task) {
    db.counts.add(deploymentId, task.endpoint, { running: -1, queued: 1 });
    countUse(db, { task: { ...task, startedAtMs }, tokenId, nowMs, used });
    countRun(db, { ...task, startedAtMs }, { nowMs, isTimed });
  }
  return task;
}

/** What the column becomes: 1 or 0; null: what it was. */
function suspicion(suspect: true | undefined, failed = false): number | null {
  return suspect ? 1 : failed ? 0 : null;
}

function loseWorker(
  db: SqliteDatabase,
  parameters: {
    readonly attempt: Attempt;
    readonly nowMs: number;
    readonly failure: TaskFailure;
    readonly used: AttemptUse | undefined;
    readonly isTimed?: boolean | undefined;
  },
): Task | undefined {
  const { attempt, failure } = parameters;
  const lostWorkers = countedDeaths(lostBefore(db, attempt));
  if (lostWorkers <= MAX_LOST_WORKERS) {
    return requeue(db, { ...parameters, lostWorkers, suspect: true });
  }
  const end = { status: "failure", failure: workersLost(failure) } as const;
  return finish(db, { ...parameters, end });
}

/** Ends an attempt whose lease has ended, or whose worker is cut off. */
export function loseNode(
  db: SqliteDatabase,
  attempt: Attempt,
  {
    nowMs,
    failure = NODE_LOST,
    used,
    isTimed,
  }: {
    readonly nowMs: number;
    readonly failure?: TaskFailure;
    readonly used?: AttemptUse | undefined;
    readonly isTimed?: boolean | undefined;
  },
): Task | undefined {
  const facts = { attempt, nowMs, used, isTimed };
  const lostNodes = lostBefore(db, attempt).lostNodes + 1;
  if (lostNodes > MAX_LOST_NODES) {
    return finish(db, { ...facts, end: { status: "failure", failure: NODES_LOST } });
  }
  const runAtMs = restartAfterLostNode({ ...attempt, lostNodes, nowMs });
  return requeue(db, { ...facts, runAtMs, failure, lostNodes });
}

function lostBefore(
  db: SqliteDatabase,
  { deploymentId, taskId, leaseId, attempt }: Attempt,
): { readonly lostWorkers: number; readonly lostNodes: number; readonly isSuspect: boolean } {
  const row = db.get(
    `SELECT lost_workers, lost_nodes, suspect FROM tasks WHERE ${CURRENT}`,
    deploymentId,
    taskId,
    leaseId,
    attempt,
  );
  return {
    lostWorkers: Number(row?.lost_workers ?? 0),
    lostNodes: Number(row?.lost_nodes ?? 0),
    isSuspect: row?.suspect === 1,
  };
}
