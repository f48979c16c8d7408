/**
 * Batch submit: stores many tasks per statement, with optimistic retries.
 *
 * A batch goes in rounds. Each round looks up used keys and the lengths of
 * queues, stores in one statement what can be stored, and leaves conflicts to
 * the next round: the lease is gone, or another transaction stored the same key
 * at the same moment. The usual task has no key and is stored as claimed; it
 * needs no lookup, so one round trip is enough.
 *
 * A queue's limit is compared with a count that other nodes may be changing.
 * Together they can exceed it by what they submit at that moment.
 */
import { isPaused } from "../sql/hosting/pauses.ts";
import type { NewTask, SubmitOutcome } from "../storage.ts";
import { asStored, keyHeldBy, payloadBytes, previewOf, tagsText } from "../stored.ts";
import { countedAs, SUBMITTED_COLUMNS, submittedUse } from "./counts.ts";
import { inlineText, isInline, writePayload } from "./payloads.ts";
import { readTasks } from "./read.ts";
import { column, nameOf, toKeys } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { type BoundStatement, type PostgresRow, prepared, type Session } from "./session.ts";
import { type Candidate, look } from "./submit-lookup.ts";

/**
 * Rounds of one submit, which end when others stop taking what was found free; this many mean
 * a defect.
 */
const MAX_SUBMIT_ROUNDS = 20;

/**
 * The columns of tasks to store, each an array with a value for each task, or empty: all null. The
 * length of one is hidden from the planner, which would otherwise plan anew for every batch,
 * because it knows how short that is.
 */
const GIVEN = `unnest((SELECT $2::text[]), $3::text[], $4::text[], $5::smallint[], $6::integer[], $7::bigint[],
     $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[],
     $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[],
     $21::text[]`;

const GIVEN_COLUMNS = `deployment_id, task_id, endpoint, status, priority, run_at_ms, start_by_ms,
     created_at_ms, expires_at_ms, retention_ms, lease_id, retry_of, trace, arguments,
     arguments_preview, webhook, key, token_id, argument_bytes, tags`;

/**
 * Inserts a task as claimed only under an open lease (of `$1`), and not while its endpoint is
 * paused. The lease is locked until
 * the end of the transaction: a transaction that closes it waits and then sees
 * the attempt.
 */
const OPEN = `SELECT lease_id FROM leases WHERE lease_id = ANY ($1::text[]) FOR KEY SHARE`;
const IS_ABLE = `(lease_id IS NULL OR (lease_id IN (SELECT lease_id FROM open)
     AND NOT ${isPaused("given.deployment_id", "given.endpoint")}))`;

/** SQL that stores the tasks of `source`, a FROM clause; `conflict` is what it does about ids that are there. */
const stores = (source: string, key: string, conflict: string) => `
     INSERT INTO live_tasks (deployment_id, task_id, endpoint, status, priority, run_at_ms,
       start_by_ms, created_at_ms, started_at_ms, expires_at_ms, retention_ms, attempt, lease_id,
       started_sequence, last_sequence, retry_of, trace, arguments, arguments_preview, webhook,
       key, token_id, argument_bytes, tags, idempotency_key)
     SELECT deployment_id, task_id, endpoint, status, priority, run_at_ms, start_by_ms,
       created_at_ms, CASE WHEN lease_id IS NOT NULL THEN created_at_ms END, expires_at_ms,
       retention_ms, CASE WHEN lease_id IS NOT NULL THEN 1 ELSE 0 END, lease_id,
       CASE WHEN lease_id IS NOT NULL THEN 2 ELSE 0 END,
       CASE WHEN lease_id IS NOT NULL THEN 2 ELSE 1 END, retry_of, trace, arguments,
       arguments_preview, webhook, key, token_id, argument_bytes, tags, ${key}
     FROM ${source}
     ${conflict} RETURNING deployment_id, task_id, endpoint, status, ${SUBMITTED_COLUMNS}`;

const insertOf = (name: string, conflict: string) =>
  prepared(
    name,
    `WITH open AS MATERIALIZED (${OPEN}), stored AS (
     ${stores(`${GIVEN}) AS given (${GIVEN_COLUMNS}) WHERE ${IS_ABLE}`, "NULL", conflict)}
   ), counted AS (${countedAs("stored", "+", submittedUse("+"))})
   SELECT deployment_id, task_id FROM stored`,
  );

/**
 * Stores tasks without idempotency keys, as nearly all are. An id that is there fails the batch,
 * which then runs call by call, as one that may have been carried out before: to look for each id
 * first, and to write rows so that they can be taken back, costs every task, and ids are random.
 */
const INSERT = insertOf("insert_tasks", "");

/** Stores tasks some of which may have been stored before. */
const INSERT_AGAIN = insertOf("insert_tasks_again", "ON CONFLICT DO NOTHING");

/** Stores tasks, some of which have idempotency keys. */
const INSERT_KEYED = prepared(
  "insert_keyed_tasks",
  `WITH open AS MATERIALIZED (${OPEN}), able AS MATERIALIZED (
     SELECT * FROM ${GIVEN}, $22::text[], $23::text[], $24::text[])
       AS given (${GIVEN_COLUMNS}, idempotency_key, digest, replaces) WHERE ${IS_ABLE}
   ), keyed AS (
     INSERT INTO idempotency_keys (deployment_id, endpoint, key, digest, task_id)
     SELECT deployment_id, endpoint, idempotency_key, digest, task_id FROM able
     WHERE idempotency_key IS NOT NULL AND replaces IS NULL
     ORDER BY deployment_id, endpoint, idempotency_key
     ON CONFLICT DO NOTHING RETURNING deployment_id, task_id
   ), rekeyed AS (
     UPDATE idempotency_keys AS own SET digest = able.digest, task_id = able.task_id FROM able
     WHERE able.replaces IS NOT NULL AND own.deployment_id = able.deployment_id
       AND own.endpoint = able.endpoint AND own.key = able.idempotency_key
       AND own.task_id = able.replaces AND NOT EXISTS (
         SELECT 1 FROM live_tasks AS there WHERE there.deployment_id = able.deployment_id
           AND there.task_id = able.task_id
         UNION ALL SELECT 1 FROM finished_tasks AS there
         WHERE there.deployment_id = able.deployment_id AND there.task_id = able.task_id)
     RETURNING own.deployment_id, own.task_id
   ), stored AS (
     ${stores(
       `able WHERE idempotency_key IS NULL
       OR (deployment_id, task_id) IN (SELECT deployment_id, task_id FROM keyed
         UNION ALL SELECT deployment_id, task_id FROM rekeyed)`,
       "idempotency_key",
       "ON CONFLICT DO NOTHING",
     )}
   ), counted AS (${countedAs("stored", "+", submittedUse("+"))})
   SELECT deployment_id, task_id FROM stored`,
);

/**
 * For tasks that may have been stored before. The id of one (after a lost answer) normally conflicts with the first row in
 * `live_tasks`. When that task has ended since, the repeated insert succeeds,
 * and this statement deletes it before another transaction can see it. (It has
 * to be a separate statement: INSERT cannot see what ended while it ran.)
 */
const WITHDRAW = prepared(
  "withdraw_tasks",
  `WITH ended AS MATERIALIZED (
     SELECT deployment_id, task_id
     FROM json_to_recordset($1) AS given (deployment_id text, task_id text)
     JOIN finished_tasks USING (deployment_id, task_id)
   ), withdrawn AS (
     DELETE FROM live_tasks USING ended
     WHERE live_tasks.deployment_id = ended.deployment_id AND live_tasks.task_id = ended.task_id
     RETURNING live_tasks.deployment_id, live_tasks.task_id, endpoint, status, ${SUBMITTED_COLUMNS}
   ), counted AS (${countedAs("withdrawn", "-", submittedUse("-"))})
   SELECT deployment_id, task_id FROM withdrawn`,
);

/**
 * Stores tasks; returns outcomes in order. When `session` is not a transaction,
 * each round is one transaction, and no task may have large arguments.
 */
export async function submitTasks(
  session: Session,
  tasks: readonly NewTask[],
): Promise<SubmitOutcome[]> {
  const outcomes: (SubmitOutcome | undefined)[] = tasks.map(() => undefined);
  let pending: Candidate[] = tasks.map((task, index) => ({ index, task }));
  for (let round = 0; pending.length > 0; round++) {
    if (round === MAX_SUBMIT_ROUNDS) {
      throw new Error(`${pending.length} tasks were neither stored nor there`);
    }
    pending = await submitRound(session, pending, outcomes);
  }
  return outcomes as SubmitOutcome[];
}

/** Runs one round; returns the tasks that another round has to decide. */
async function submitRound(
  session: Session,
  pending: readonly Candidate[],
  outcomes: (SubmitOutcome | undefined)[],
): Promise<Candidate[]> {
  const seen = await look(session, pending);
  const stored = await insert(session, seen.free);
  const undecided: Candidate[] = [];
  for (const candidate of seen.free) {
    const { index, task } = candidate;
    if (stored.has(nameOf(task))) {
      outcomes[index] = { outcome: "stored", task: asStored(task, task.leaseId !== undefined) };
      if (!isInline(task.arguments)) {
        await writePayload(session, { ...task, side: "arguments" }, task.arguments);
      }
    } else {
      undecided.push(candidate);
    }
  }
  const asked = [...undecided, ...seen.full, ...seen.used].map(({ task }) => task);
  const found = await readTasks(session, [...asked, ...seen.used.map(({ earlier }) => earlier)]);
  const again = [...seen.later];
  for (const { index, task, queued } of seen.full) {
    const there = found.get(nameOf(task));
    if (there) {
      outcomes[index] = { outcome: "stored", task: there };
    } else if (undecided.length > 0) {
      // Candidates before it were counted as waiting, but may not be.
      again.push({ index, task });
    } else {
      outcomes[index] = { outcome: "queue_full", queued };
    }
  }
  for (const { index, task, earlier, digest } of seen.used) {
    const own = found.get(nameOf(task));
    const there = found.get(nameOf(earlier));
    const held = there && keyHeldBy(there, digest, task);
    if (own) {
      outcomes[index] = { outcome: "stored", task: own };
    } else if (there === undefined || held === "free") {
      // The earlier task has just been pruned with its key, or has just ended.
      again.push({ index, task });
    } else {
      outcomes[index] =
        held === "replayed" ? { outcome: "replayed", task: there } : { outcome: "key_reused" };
    }
  }
  for (const { index, task } of undecided) {
    const there = found.get(nameOf(task));
    if (there) {
      outcomes[index] = { outcome: "stored", task: there };
    } else {
      // The lease is gone or the endpoint paused, so the task has to wait in the queue, or its key
      // was just used.
      const { leaseId: _gone, ...waiting } = task;
      again.push({ index, task: waiting });
    }
  }
  return again.sort((a, b) => a.index - b.index);
}

/** Inserts candidates; returns the names of those that were stored. */
async function insert(session: Session, candidates: readonly Candidate[]): Promise<Set<string>> {
  if (candidates.length === 0) {
    return new Set();
  }
  const tasks = candidates.map(({ task }) => task);
  const storing = toInsert(candidates);
  const repeated = tasks.filter((task) => task.repeated);
  const [stored = [], withdrawn = []] =
    repeated.length === 0
      ? [await session.query(...storing)]
      : await session.together(storing, [WITHDRAW, toKeys(repeated)]);
  const names = new Set(stored.map(toName));
  for (const row of withdrawn) {
    names.delete(toName(row));
  }
  return names;
}

function toName(row: PostgresRow): string {
  return nameOf({ deploymentId: String(row.deployment_id), taskId: String(row.task_id) });
}

/** The statement that stores these tasks. */
function toInsert(candidates: readonly Candidate[]): BoundStatement {
  const tasks = candidates.map(({ task }) => task);
  const leaseIds = new Set(tasks.flatMap(({ leaseId }) => leaseId ?? []));
  const of = (read: (task: NewTask) => string | number | null | undefined) => column(tasks, read);
  const columns = [
    of(({ deploymentId }) => deploymentId),
    of(({ taskId }) => taskId),
    of(({ endpoint }) => endpoint),
    of(statusOf),
    of(({ priority }) => priority),
    of(({ runAtMs }) => runAtMs),
    of(({ startByMs }) => startByMs),
    of(({ createdAtMs }) => createdAtMs),
    of(({ expiresAtMs }) => expiresAtMs),
    of(({ retentionMs }) => retentionMs),
    of(({ leaseId }) => leaseId),
    of(({ retryOf }) => retryOf),
    of(({ trace }) => trace),
    of((task) => inlineText(task.arguments)),
    of((task) => (isInline(task.arguments) ? undefined : previewOf(task.arguments))),
    of(({ webhook }) => webhook),
    of(({ key }) => key),
    of(({ tokenId }) => tokenId),
    of((task) => (isInline(task.arguments) ? undefined : payloadBytes(task.arguments))),
    of(({ tags }) => tagsText(tags)),
  ];
  if (tasks.every(({ idempotency }) => idempotency === undefined)) {
    const again = tasks.some(({ repeated }) => repeated);
    return [again ? INSERT_AGAIN : INSERT, [...leaseIds], ...columns];
  }
  const keys = [
    of(({ idempotency }) => idempotency?.key),
    of(({ idempotency }) => idempotency?.digest),
    column(candidates, ({ replaces }) => replaces),
  ];
  return [INSERT_KEYED, [...leaseIds], ...columns, ...keys];
}

function statusOf({ leaseId, runAtMs, createdAtMs }: NewTask): number {
  const waiting = runAtMs > createdAtMs ? STATUS.scheduled : STATUS.ready;
  return leaseId === undefined ? waiting : STATUS.running;
}
