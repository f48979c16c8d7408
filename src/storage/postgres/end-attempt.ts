/**
 * How attempts end: for good, or back in the queue. Each is one statement for a
 * whole batch, which checks every attempt's lease and number as it writes
 * (fencing). What attempts reported last is appended in the same round trip,
 * before them.
 */

import type { Payload } from "../../protocol/messages.ts";
import { MAX_FIRST_ATTEMPTS, MAX_LAST_ATTEMPTS, returnedAttempt } from "../../tasks/attempt.ts";
import { returnEvent } from "../../tasks/event.ts";
import { NODES_LOST, workersLost } from "../../tasks/failure.ts";
import { MAX_LOST_NODES, MAX_LOST_WORKERS, restartAfterLostNode } from "../../tasks/lost.ts";
import type { Task, TaskFailure, TaskProgress } from "../../tasks/task.ts";
import type { AttemptUse } from "../hosting/usage.ts";
import type { Attempt, AttemptEnd, NewEvent } from "../storage.ts";
import { fromJson, optionalNumber, payloadBytes, statusOf } from "../stored.ts";
import { countedOf, ENDED_USE } from "./counts.ts";
import { type AttemptEvent, recordingOf } from "./events.ts";
import { KEEP_UNBEGUN } from "./keys.ts";
import { inlineText, isInline, writePayload } from "./payloads.ts";
import { column, columnsOf, LIVE_COLUMNS, nameOf, TASK_COLUMNS, toKeys, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import {
  type BoundStatement,
  type PostgresRow,
  prepared,
  type Session,
  type Statement,
} from "./session.ts";
import { countedRuns } from "./times.ts";
import { toldOf } from "./webhooks.ts";

/** An attempt, how it ended, and when. */
export interface Ending {
  readonly attempt: Attempt;
  readonly end: AttemptEnd;
  /** What it reported last. */
  readonly events?: readonly NewEvent[] | undefined;
  /** The task as it was claimed, which need not be read again then. */
  readonly task?: Task | undefined;
  /** Undefined: it did not run. */
  readonly used?: AttemptUse | undefined;
  /** The seconds of its key count; only read with `task`. */
  readonly isTimed?: boolean | undefined;
  readonly nowMs: number;
}

type FinalEnd = Extract<AttemptEnd, { status: "success" | "failure" | "cancelled" }>;

/** Ends that are rare, as JSON. */
const GIVEN = `WITH given AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS given (n integer, deployment_id text, task_id text,
    lease_id text, attempt integer, status smallint, now_ms bigint, run_at_ms bigint,
    failed integer, lost integer, lost_node integer, suspect boolean, result text, failure text, record text,
    event text, gpu_ms double precision, bytes_out bigint, units text))`;

/** The fence: only the attempt with this lease and this number may write. */
const CURRENT = `live_tasks.deployment_id = given.deployment_id
  AND live_tasks.task_id = given.task_id AND live_tasks.lease_id = given.lease_id
  AND live_tasks.attempt = given.attempt`;

/** What an ended task keeps as it was. */
const KEPT_COLUMNS =
  "deployment_id, task_id, endpoint, created_at_ms, started_at_ms, attempt, failed_attempts, " +
  "lease_id, started_sequence, progress, retry_of, idempotency_key, arguments, priority, " +
  "run_at_ms, start_by_ms, trace, returned, arguments_preview, webhook, key, tags";

/** Counts the seconds of keys that go by them. */
const TIMED = `, timed AS (${countedRuns("gone")})`;

/**
 * Moves tasks from `live_tasks` to `finished_tasks`; tasks of lost workers only
 * when that happened too often. Each parameter is a column of the ends (see `submit.ts` for the
 * first one).
 */
const finishOf = (name: string, answered: string, timed: string) =>
  prepared(
    name,
    `WITH gone AS (
     DELETE FROM live_tasks USING unnest((SELECT $1::integer[]), $2::text[], $3::text[], $4::text[],
       $5::integer[], $6::smallint[], $7::bigint[], $8::text[], $9::text[], $10::integer[],
       $11::double precision[], $12::bigint[], $13::text[], $14::bigint[])
       AS given (n, deployment_id, task_id, lease_id, attempt, final, now_ms, result, failure, lost,
         gpu_ms, bytes_out, units, peak_memory_bytes)
     WHERE ${CURRENT} AND (given.lost IS NULL OR live_tasks.lost_workers >= ${MAX_LOST_WORKERS})
     RETURNING given.n, given.final, given.now_ms, given.result, given.failure,
       greatest(expires_at_ms, given.now_ms + retention_ms) AS expires_at_ms,
       last_sequence + 1 AS last_sequence, live_tasks.status, given.gpu_ms, given.bytes_out,
       given.units, given.peak_memory_bytes, live_tasks.token_id, ${columnsOf("live_tasks", KEPT_COLUMNS)}
   ), finished AS (
     INSERT INTO finished_tasks (status, finished_at_ms, result, failure, expires_at_ms,
       last_sequence, peak_memory_bytes, ${KEPT_COLUMNS})
     SELECT final, now_ms, result, failure, expires_at_ms, last_sequence, peak_memory_bytes,
       ${KEPT_COLUMNS}
     FROM gone
   ), told AS (${toldOf({ status: "gone.final", finishedAt: "gone.now_ms" })}
   ), counted AS (
     ${countedOf("gone", { queued: "0", running: "-count(*)", used: ENDED_USE })}
   )${timed}
   SELECT n, final AS status, now_ms AS finished_at_ms, failure, expires_at_ms, last_sequence,
     peak_memory_bytes, progress${answered} FROM gone`,
  );

const FINISH = finishOf(
  "finish_attempts",
  `, ${TASK_COLUMNS.split(", ")
    .filter((column) => KEPT_COLUMNS.includes(column) && column !== "progress")
    .join(", ")}`,
  TIMED,
);

/** Answers only what is not known of a task that its node has in memory. */
const FINISH_KNOWN = finishOf("finish_known_attempts", "", "");
const FINISH_KNOWN_TIMED = finishOf("finish_known_timed_attempts", "", TIMED);

/** Finds ends that the same call has recorded before: its first answer was lost. */
const REPEATED = prepared(
  "repeated_ends",
  `${GIVEN}
   SELECT given.n, ${columnsOf("finished_tasks", TASK_COLUMNS)} FROM given
   JOIN finished_tasks USING (deployment_id, task_id)
   WHERE finished_tasks.lease_id = given.lease_id AND finished_tasks.attempt = given.attempt
     AND finished_tasks.status = given.status AND finished_at_ms = now_ms
     AND finished_tasks.result IS NOT DISTINCT FROM given.result
     AND finished_tasks.failure IS NOT DISTINCT FROM given.failure`,
);

/** The record of this attempt, appended; beyond the bound, the middle is dropped. */
const RETURNED = `(CASE WHEN cardinality(live_tasks.returned) < ${MAX_FIRST_ATTEMPTS + MAX_LAST_ATTEMPTS}
    THEN live_tasks.returned
    ELSE live_tasks.returned[1:${MAX_FIRST_ATTEMPTS}] || live_tasks.returned[${MAX_FIRST_ATTEMPTS + 2}:]
  END) || ('{"startedAtMs":' || live_tasks.started_at_ms || ',' || given.record)`;

/** `countedDeaths`, of which one may count twice; it never ends a task, for it is the first. */
const COUNTED = `CASE WHEN given.lost = 1 AND live_tasks.suspect AND lost_workers = 0 THEN 2
    ELSE given.lost END`;

/**
 * Requeues tasks. Their columns hold only the current attempt, so the start of
 * this attempt and its return to the queue become stored events.
 */
const REQUEUE = prepared(
  "requeue_attempts",
  `${GIVEN}, queued AS (
     UPDATE live_tasks SET
       status = CASE WHEN given.run_at_ms > given.now_ms THEN ${STATUS.scheduled}
         ELSE ${STATUS.ready} END,
       run_at_ms = coalesce(given.run_at_ms, live_tasks.run_at_ms), lease_id = NULL, last_sequence = last_sequence + 1,
       failed_attempts = failed_attempts + given.failed,
       lost_workers = lost_workers + ${COUNTED}, lost_nodes = lost_nodes + given.lost_node,
       suspect = coalesce(given.suspect, live_tasks.suspect),
       returned = ${RETURNED}
     FROM given
     WHERE ${CURRENT} AND (given.lost = 0 OR live_tasks.lost_workers < ${MAX_LOST_WORKERS})
     RETURNING given.n, given.now_ms, given.event, given.gpu_ms, given.bytes_out, given.units,
       live_tasks.token_id, started_sequence, ${columnsOf("live_tasks", LIVE_COLUMNS)}
   ), recorded AS (
     INSERT INTO task_events (deployment_id, task_id, sequence, time_ms, attempt, body)
     SELECT deployment_id, task_id, started_sequence, started_at_ms, attempt,
       '{"kind":"state","status":"running"}' FROM queued
     UNION ALL
     SELECT deployment_id, task_id, last_sequence, now_ms, attempt, event FROM queued
   ), counted AS (
     ${countedOf("queued", { queued: "count(*)", running: "-count(*)", used: ENDED_USE })}
   ), timed AS (${countedRuns("queued")}
   )
   SELECT * FROM queued`,
);

/**
 * Records ends; returns tasks in order, undefined for a stale attempt. Large
 * results require `session` to be a transaction.
 */
export async function endAttempts(
  session: Session,
  endings: readonly Ending[],
): Promise<(Task | undefined)[]> {
  const answers: (Task | undefined)[] = endings.map(() => undefined);
  let pending = endings.map((ending, index) => ({ ...ending, index }));
  while (pending.length > 0) {
    // When an attempt occurs twice, the first end is recorded first.
    const names = new Set<string>();
    const now = pending.filter(
      ({ attempt }) => !names.has(nameOf(attempt)) && names.add(nameOf(attempt)),
    );
    pending = pending.filter((ending) => !now.includes(ending));
    for (const [index, task] of await endOnce(session, await decided(session, now))) {
      answers[index] = task;
    }
  }
  return answers;
}

interface NumberedEnding extends Ending {
  readonly index: number;
  readonly end: Exclude<AttemptEnd, { status: "node_lost" }>;
  /** The attempt has lost its node, and returns to the queue. */
  readonly lostNode?: boolean;
}

const LOST_NODES = prepared(
  "lost_nodes",
  `SELECT deployment_id, task_id, lost_nodes FROM live_tasks
   JOIN json_to_recordset($1) AS given (deployment_id text, task_id text)
     USING (deployment_id, task_id)`,
);

/** Decides what becomes of attempts that have lost their node, by how many their tasks have lost. */
async function decided(
  session: Session,
  endings: readonly (Ending & { readonly index: number })[],
): Promise<NumberedEnding[]> {
  const lost = endings.filter(({ end }) => end.status === "node_lost");
  const rows =
    lost.length === 0
      ? []
      : await session.query(LOST_NODES, toKeys(lost.map(({ attempt }) => attempt)));
  const counts = new Map(
    rows.map((row) => [`${row.deployment_id}/${row.task_id}`, Number(row.lost_nodes)]),
  );
  return endings.map(({ end, ...ending }) => {
    if (end.status !== "node_lost") {
      return { ...ending, end };
    }
    const { attempt, nowMs } = ending;
    const lostNodes = (counts.get(nameOf(attempt)) ?? 0) + 1;
    if (lostNodes > MAX_LOST_NODES) {
      return { ...ending, end: { status: "failure", failure: NODES_LOST } };
    }
    const runAtMs = restartAfterLostNode({ ...attempt, lostNodes, nowMs });
    const later = runAtMs === undefined ? {} : { runAtMs };
    const { failure } = end;
    return {
      ...ending,
      end: { status: "queued", failed: false, failure, ...later },
      lostNode: true,
    };
  });
}

async function endOnce(
  session: Session,
  endings: readonly NumberedEnding[],
): Promise<Map<number, Task>> {
  const finals = endings.filter(
    ({ end }) => end.status !== "queued" && end.status !== "worker_lost",
  );
  const returns = endings.filter((ending) => !finals.includes(ending));
  const lost = returns.filter(({ end }) => end.status === "worker_lost");
  const ended = await record(
    session,
    [...toFinish([...finals, ...lost]), ...statementFor(REQUEUE, returns)],
    [...toUnbegun(endings), ...recordingOf(endings.flatMap(toEvents))],
  );
  for (const { index, attempt, end } of finals) {
    const result = resultOf(end);
    if (ended.has(index) && result && !isInline(result)) {
      await writePayload(session, { ...attempt, side: "result" }, result);
    }
  }
  const unknown = finals.filter(({ index }) => !ended.has(index));
  const repeated = await record(session, statementFor(REPEATED, unknown));
  const known = new Map(endings.map(({ index, task }) => [index, task]));
  return new Map(
    [...ended, ...repeated].map(([index, row]) => [index, toEnded(row, known.get(index))]),
  );
}

/** The statement that takes unbegun attempts out of the rates of their keys; none for none. */
function toUnbegun(endings: readonly NumberedEnding[]): BoundStatement[] {
  const unbegun = endings.filter(({ end }) => "unbegun" in end && end.unbegun);
  return unbegun.length === 0 ? [] : [[KEEP_UNBEGUN, JSON.stringify(unbegun.map(toRow))]];
}

function toEvents({ attempt, events = [] }: Ending): AttemptEvent[] {
  return events.map((event) => ({ attempt, ...event }));
}

/** The statement that ends tasks; none for no ends. */
function toFinish(endings: readonly NumberedEnding[]): BoundStatement[] {
  if (endings.length === 0) {
    return [];
  }
  const rows = endings.map(toRow);
  const columns = [
    column(rows, ({ n }) => n),
    column(rows, ({ deployment_id }) => deployment_id),
    column(rows, ({ task_id }) => task_id),
    column(rows, ({ lease_id }) => lease_id),
    column(rows, ({ attempt }) => attempt),
    column(rows, ({ status }) => status),
    column(rows, ({ now_ms }) => now_ms),
    column(rows, ({ result }) => result),
    column(rows, ({ failure }) => failure),
    column(rows, ({ lost }) => lost || null),
    column(rows, ({ gpu_ms }) => gpu_ms),
    column(rows, ({ bytes_out }) => bytes_out || null),
    column(rows, ({ units }) => units),
    column(rows, ({ peak_memory_bytes }) => peak_memory_bytes),
  ];
  const known = endings.some(({ isTimed }) => isTimed) ? FINISH_KNOWN_TIMED : FINISH_KNOWN;
  return [[endings.every(({ task }) => task) ? known : FINISH, ...columns]];
}

/** One of the other statements above, for these ends; none for no ends. */
function statementFor(statement: Statement, endings: readonly NumberedEnding[]): BoundStatement[] {
  return endings.length === 0 ? [] : [[statement, JSON.stringify(endings.map(toRow))]];
}

/** The task of a row that answers all of it, or only what is not `known`. */
function toEnded(row: PostgresRow, known: Task | undefined): Task {
  if (row.task_id !== undefined || known === undefined) {
    return toTask(row);
  }
  return {
    ...known,
    status: statusOf(row.status),
    finishedAtMs: Number(row.finished_at_ms),
    expiresAtMs: Number(row.expires_at_ms),
    lastSequence: Number(row.last_sequence),
    progress: fromJson<TaskProgress>(row.progress),
    failure: fromJson<TaskFailure>(row.failure),
    peakMemoryBytes: optionalNumber(row.peak_memory_bytes),
  };
}

/** Runs statements that end attempts, after those `before` them; returns their rows by number. */
async function record(
  session: Session,
  ends: readonly BoundStatement[],
  before: readonly BoundStatement[] = [],
): Promise<Map<number, PostgresRow>> {
  const asked = [...before, ...ends];
  const [first] = asked;
  if (first === undefined) {
    return new Map();
  }
  const answers =
    asked.length === 1 ? [await session.query(...first)] : await session.together(...asked);
  const rows = answers.slice(before.length).flat();
  return new Map(rows.map((row) => [Number(row.n), row]));
}

/** An end as a row of the statements above. */
interface EndRow {
  readonly n: number;
  readonly deployment_id: string;
  readonly task_id: string;
  readonly lease_id: string;
  readonly attempt: number;
  readonly now_ms: number;
  readonly failed: number;
  readonly lost: number;
  readonly lost_node: number;
  readonly status?: number;
  readonly result?: string | null;
  readonly failure?: string;
  readonly run_at_ms?: number | undefined;
  readonly suspect?: boolean | null;
  readonly record?: string;
  readonly event?: string;
  /** Undefined: the attempt did not run. */
  readonly gpu_ms: number | undefined;
  readonly bytes_out: number;
  readonly units: string | undefined;
  readonly peak_memory_bytes: number | undefined;
}

function toRow(ending: NumberedEnding): EndRow {
  const { index, attempt, end, nowMs, lostNode, used } = ending;
  const result = resultOf(end);
  const row = {
    n: index,
    deployment_id: attempt.deploymentId,
    task_id: attempt.taskId,
    lease_id: attempt.leaseId,
    attempt: attempt.attempt,
    now_ms: nowMs,
    failed: 0,
    lost: 0,
    lost_node: lostNode ? 1 : 0,
    gpu_ms: used?.gpuMs,
    bytes_out: result === undefined ? 0 : payloadBytes(result),
    units: used?.units && JSON.stringify(used.units),
    peak_memory_bytes: used?.peakMemoryBytes,
  };
  switch (end.status) {
    case "queued":
      return {
        ...row,
        ...returnOf(ending, end),
        run_at_ms: end.runAtMs,
        failed: end.failed ? 1 : 0,
        // Null: what it was.
        suspect: end.suspect ?? (end.failed ? false : null),
      };
    case "worker_lost":
      return {
        ...row,
        ...returnOf(ending, end),
        lost: 1,
        suspect: true,
        status: STATUS.failure,
        failure: JSON.stringify(workersLost(end.failure)),
      };
    default:
      return { ...row, status: STATUS[end.status], ...outcomeOf(end) };
  }
}

function outcomeOf(end: FinalEnd): { result?: string | null; failure?: string } {
  const result = resultOf(end);
  return {
    ...(result && { result: inlineText(result) }),
    ...(end.status === "failure" && { failure: JSON.stringify(end.failure) }),
  };
}

/** The result that an attempt ends with, of which its task may have a failure, too. */
export function resultOf(end: AttemptEnd): Payload | undefined {
  return end.status === "success" || end.status === "failure" ? end.result : undefined;
}

/** The record of a return to the queue, without the brace that its start precedes, and its event. */
function returnOf(
  { attempt: { leaseId, attempt }, nowMs, used }: Ending,
  { runAtMs, failure }: { readonly runAtMs?: number; readonly failure: TaskFailure },
): { record: string; event: string } {
  const ended = returnedAttempt({
    ...{ number: attempt, worker: leaseId, nowMs, runAtMs, failure },
    peakMemoryBytes: used?.peakMemoryBytes,
  });
  return {
    record: JSON.stringify(ended).slice(1),
    event: JSON.stringify(returnEvent(failure, ended.retryAtMs)),
  };
}
