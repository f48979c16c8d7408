/** Deletion of expired finished tasks, and of the tasks of deleted deployments. */
import { KEY_TIME_MS } from "../claims-by-key.ts";
import { untold } from "../sql/hosting/webhooks.ts";
import type { Storage } from "../storage.ts";
import { detached } from "./blobs.ts";
import { countedAs, DELTA_COLUMNS, FOLD_USAGE } from "./counts.ts";
import type { LeaseClock } from "./leases.ts";
import { STATUS } from "./schema.ts";
import { once, prepared, type Session, statement } from "./session.ts";

/**
 * The columns of deleted tasks that `belongingsOf` reads, which also say what other tables may have of a task.
 * Most have nothing there, and to look for it would cost as much as to delete the row. A payload that
 * does not stand in the row is large; and each stored event has a number, beside those of the state
 * changes that are derived: queued and running, and of one that has ended its end.
 */
export const OWNER_COLUMNS = {
  live_tasks: `deployment_id, task_id, endpoint, idempotency_key, attempt > 0 AS has_run,
    arguments IS NULL AS is_large, last_sequence > 2 AS has_events`,
  finished_tasks: `deployment_id, task_id, endpoint, idempotency_key, attempt > 0 AS has_run,
    arguments IS NULL OR result IS NULL AS is_large, last_sequence > 3 AS has_events`,
} as const;

/**
 * SQL that deletes the data of the tasks in `source`, which the statement has deleted; their blobs
 * lose references at the time `$1`.
 */
export function belongingsOf(source: string): string {
  return `parts AS (
     DELETE FROM payload_parts AS own ${owned("own", source)} AND ${source}.is_large
     RETURNING own.blob_id
   ), blobless AS (${detached("parts", "$1::bigint")}
   ), events AS (
     DELETE FROM task_events AS own ${owned("own", source)} AND ${source}.has_events
   ), pieces AS (
     DELETE FROM task_pieces AS own ${owned("own", source)} AND ${source}.has_run
   ), keys AS (
     DELETE FROM idempotency_keys AS own USING ${source}
     WHERE ${source}.idempotency_key IS NOT NULL AND own.deployment_id = ${source}.deployment_id
       AND own.endpoint = ${source}.endpoint AND own.key = ${source}.idempotency_key
       AND own.task_id = ${source}.task_id
   )`;
}

/** SQL: the expiry that a prune has come to in `source`, the rows that it has deleted: now, where these are all. */
const reachedIn = (source: string) =>
  `(SELECT CASE count(*) WHEN $2 THEN max(expires_at_ms) ELSE $1 END FROM ${source})`;

/**
 * A claim that counts what has ended locks rows of `key_runs` before those of `key_times`. So whatever
 * is locked is passed over here. Finished tasks, tombstones and runs are never updated, so their physical
 * location identifies them.
 */
const PRUNE = prepared(
  "prune_finished",
  `WITH gone AS (
     DELETE FROM finished_tasks WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM finished_tasks t WHERE expires_at_ms >= $4 AND expires_at_ms <= $1
         AND NOT EXISTS (${untold("t")})
       ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
     RETURNING ${OWNER_COLUMNS.finished_tasks}, expires_at_ms
   ), ${belongingsOf("gone")}, forgotten AS (
     DELETE FROM deleted_tasks WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM deleted_tasks WHERE expires_at_ms >= $5 AND expires_at_ms <= $1
       ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
     RETURNING expires_at_ms
   ), starts AS (
     DELETE FROM key_starts WHERE (deployment_id, endpoint, key, number) IN (${once(
       `SELECT deployment_id, endpoint, key, number FROM key_starts AS own
       WHERE expires_at_ms <= coalesce($3::bigint, (extract(epoch FROM now()) * 1000)::bigint)
         AND NOT EXISTS (SELECT FROM live_tasks AS waiting
           WHERE waiting.deployment_id = own.deployment_id AND waiting.endpoint = own.endpoint
             AND waiting.status = ${STATUS.ready} AND waiting.key = own.key OFFSET 0)
       ORDER BY expires_at_ms, deployment_id, endpoint, key, number
       LIMIT $2 FOR UPDATE SKIP LOCKED`,
     )})
     RETURNING 1
   ), unbegun AS (
     DELETE FROM key_unbegun WHERE (deployment_id, endpoint, task_id, attempt) IN (${once(
       `SELECT deployment_id, endpoint, task_id, attempt FROM key_unbegun
       WHERE expires_at_ms <= coalesce($3::bigint, (extract(epoch FROM now()) * 1000)::bigint)
       ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED`,
     )})
     RETURNING 1
   ), times AS (
     DELETE FROM key_times WHERE (deployment_id, endpoint, key) IN (${once(
       `SELECT deployment_id, endpoint, key FROM key_times WHERE expires_at_ms <= $1
       ORDER BY expires_at_ms, deployment_id, endpoint, key LIMIT $2 FOR UPDATE SKIP LOCKED`,
     )})
     RETURNING 1
   ), runs AS (
     DELETE FROM key_runs WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM key_runs WHERE ended_at_ms <= $1 - ${KEY_TIME_MS}
       ORDER BY ended_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
     RETURNING 1
   ), turns AS (
     DELETE FROM key_turns WHERE (deployment_id, endpoint) IN (${once(
       `SELECT deployment_id, endpoint FROM key_turns AS own WHERE (
         SELECT 1 FROM live_tasks WHERE deployment_id = own.deployment_id AND endpoint = own.endpoint
           AND status = ${STATUS.ready} AND key IS NOT NULL LIMIT 1) IS NULL AND (
         SELECT 1 FROM key_times
         WHERE deployment_id = own.deployment_id AND endpoint = own.endpoint AND key >= ''
         LIMIT 1) IS NULL
       LIMIT $2 FOR UPDATE SKIP LOCKED`,
     )})
   )
   SELECT greatest((SELECT count(*) FROM gone), (SELECT count(*) FROM forgotten),
     (SELECT count(*) FROM starts), (SELECT count(*) FROM unbegun), (SELECT count(*) FROM times),
     (SELECT count(*) FROM runs)) AS pruned,
     ${reachedIn("gone")} AS tasks_ms, ${reachedIn("forgotten")} AS tombstones_ms`,
);

export function owned(table: string, source: string): string {
  return `USING ${source} WHERE ${table}.deployment_id = ${source}.deployment_id
    AND ${table}.task_id = ${source}.task_id`;
}

/** Deleted deployments are few, so their tasks are looked up one deployment at a time. */
function pruneDeletedFrom(table: keyof typeof OWNER_COLUMNS, also: string): string {
  return `WITH left_behind (of_deployment, id) AS MATERIALIZED (
      SELECT d.deployment_id, t.task_id FROM deleted_deployments d
        CROSS JOIN LATERAL (
          SELECT task_id FROM ${table} own WHERE own.deployment_id = d.deployment_id
            AND task_id > CASE d.deployment_id WHEN $3::text THEN $4::text ELSE '' END
          ORDER BY task_id LIMIT $2 FOR UPDATE SKIP LOCKED) t
      WHERE d.look_after_ms <= $1 AND d.deployment_id >= $3::text
      ORDER BY d.deployment_id LIMIT $2
    ), reached AS (
      SELECT of_deployment, max(id) AS id FROM left_behind
      GROUP BY of_deployment ORDER BY of_deployment DESC LIMIT 1
    ), gone AS (
      DELETE FROM ${table} USING left_behind WHERE deployment_id = of_deployment AND task_id = id
      RETURNING ${OWNER_COLUMNS[table]}, status
    ), ${belongingsOf("gone")}${also}
    SELECT (SELECT count(*) FROM gone) AS pruned, reached.* FROM reached`;
}

const PRUNE_DELETED = [
  statement(pruneDeletedFrom("live_tasks", `, counted AS (${countedAs("gone", "-")})`)),
  statement(pruneDeletedFrom("finished_tasks", "")),
];

/** The rows that counts are sums of; without tasks they are of no use. What was used is kept. */
const FORGET_COUNTS = statement(
  `WITH deleted AS (SELECT deployment_id FROM deleted_deployments),
     counts AS (DELETE FROM queue_counts WHERE deployment_id IN (SELECT deployment_id FROM deleted)),
     gone AS (DELETE FROM queue_count_deltas WHERE deployment_id IN (SELECT deployment_id FROM deleted)
       RETURNING ${DELTA_COLUMNS}),
     ${FOLD_USAGE}
   SELECT count(*) AS folded FROM gone`,
);

/** How long prunes of what has expired go on, until one begins anew. */
const MAX_PASS_MS = 60_000;

/** Expiries that a pass has come to, in milliseconds since 1970: of finished tasks, and of those deleted before. */
interface Reached {
  readonly tasks: number;
  readonly tombstones: number;
}

const BEGINNING: Reached = { tasks: 0, tombstones: 0 };

/** A deployment and a task of it; the beginning of all. */
const FIRST: readonly [string, string] = ["", ""];

/**
 * Prunes what has expired, and what deleted deployments have left. Until a vacuum, deleted rows have
 * entries in the index by which they are found, and a scan from its beginning passes all of them: with
 * 100,000,000 tasks that is millions. So a prune goes on where the one before has ended, as long as
 * they find as many as they may, and for a minute at most. The next one begins anew, for what others had
 * locked, or stored meanwhile with an earlier expiry.
 */
export class Pruner {
  #from = BEGINNING;
  #beganMs = 0;
  readonly #after = new Map(PRUNE_DELETED.map((each) => [each, FIRST]));

  /** `clock` times the starts of keys, which no window can hold any more, and are forgotten. */
  async finished(
    session: Session,
    clock: LeaseClock,
    { nowMs, limit }: Parameters<Storage["pruneFinished"]>[0],
  ): Promise<number> {
    const isLong = Math.abs(nowMs - this.#beganMs) > MAX_PASS_MS;
    const isAhead = Math.max(this.#from.tasks, this.#from.tombstones) > nowMs;
    const from = isLong || isAhead ? BEGINNING : this.#from;
    this.#beganMs = from === BEGINNING ? nowMs : this.#beganMs;
    const { tasks, tombstones } = from;
    const [row] = await session.query(PRUNE, nowMs, limit, clock(nowMs), tasks, tombstones);
    const pruned = Number(row?.pruned ?? 0);
    this.#from =
      pruned < limit
        ? BEGINNING
        : { tasks: Number(row?.tasks_ms), tombstones: Number(row?.tombstones_ms) };
    return pruned;
  }

  async deleted(
    session: Session,
    { nowMs, limit }: Parameters<Storage["pruneDeleted"]>[0],
  ): Promise<number> {
    let deleted = 0;
    for (const [prune, after] of this.#after) {
      const [row] = await session.query(prune, nowMs, limit, ...after);
      const pruned = Number(row?.pruned ?? 0);
      const reached = [String(row?.of_deployment), String(row?.id)] as const;
      this.#after.set(prune, pruned < limit ? FIRST : reached);
      deleted += pruned;
    }
    if (deleted === 0) {
      await session.query(FORGET_COUNTS);
    }
    return deleted;
  }
}
