/**
 * Claims of endpoints whose keys take turns by the seconds that their tasks run (start-time fair
 * queuing): the next task is of the key that has had the least.
 *
 * What a key has had is the time of its attempts that have ended (`key_times`), and of those that run,
 * so far. An end adds its attempt to `key_runs` and touches no row of others, so that ends wait for
 * nothing; the next claim counts them, which has the lock of the endpoint's row in `key_turns`. For
 * each task that has just started, a key counts what its last ones took on average: otherwise one with
 * long tasks would take all the slots that are free at the same time.
 *
 * `key_turns.time_ms` is what the least served had of the keys that could start. Nobody has had less: a
 * key that is new begins with it, and so does one that was away, or could not start for its limits. So
 * it waits for no others to catch up, and has nothing saved.
 */
import { KEY_TIME_MS, LOOK_ON_MS, MAX_KEYS_COMPARED, MAX_RUNS_KNOWN } from "../claims-by-key.ts";
import { isPaused } from "../sql/hosting/pauses.ts";
import { dealt, GIVEN } from "./dealing.ts";
import {
  CLOCK,
  claimSuspectsByKey,
  forgetOver,
  HOW_CUT,
  keepStarts,
  NEXT_OVER,
  namedKeys,
  nextKey,
  nextStart,
  READY_OF_ENDPOINT,
  startsOf,
} from "./keys.ts";
import { STATUS } from "./schema.ts";
import { prepared } from "./session.ts";

/** SQL: how long an attempt ran, as far as it counts. */
const ranFor = (fromMs: string, toMs: string) =>
  `least(greatest(${toMs} - ${fromMs}, 0), ${KEY_TIME_MS})`;

/** SQL: the sums of `total`, of which the older half is forgotten from time to time. */
const recent = (isAdded: string) => `total.run_ms / part AS run_ms, total.runs / part AS runs
     FROM total CROSS JOIN LATERAL (
       SELECT CASE WHEN ${isAdded} AND total.runs > ${MAX_RUNS_KNOWN} THEN 2 ELSE 1 END AS part) AS parts`;

/** What is asked for, for leases that are open: others are dealt nothing. */
const WANTS = `wants AS MATERIALIZED (
     SELECT coalesce(sum(wanted), 0)::integer AS wanted FROM given
     WHERE NOT ${isPaused("$1", "$4")}
       AND EXISTS (SELECT FROM leases WHERE leases.lease_id = given.lease_id)
   )`;

/** SQL: what the attempts of a source count for the keys that are known to go by seconds. */
export const countedRuns = (source: string) =>
  `INSERT INTO key_runs (deployment_id, endpoint, key, run_ms, ended_at_ms)
     SELECT deployment_id, endpoint, key, ${ranFor("started_at_ms", "now_ms")}, now_ms FROM ${source} AS ran
     WHERE key IS NOT NULL AND EXISTS (
       SELECT FROM key_times AS own WHERE own.deployment_id = ran.deployment_id
         AND own.endpoint = ran.endpoint AND own.key = ran.key OFFSET 0)`;

/** Compares the keys in turn, from the one after the last that was compared, or those that are named. */
const claimByTime = (
  name: string,
  { rated, named }: { readonly rated: boolean; readonly named: boolean },
) => {
  const now = rated ? "(SELECT now_ms FROM clock)" : "$2::bigint";
  const walk = named
    ? `${namedKeys(rated)}, walk AS MATERIALIZED (
     SELECT key, rank AS looked FROM named CROSS JOIN wants WHERE wants.wanted > 0
   )`
    : `walk AS (
     SELECT next.key, next.lap, 1 AS looked
     FROM turn CROSS JOIN wants CROSS JOIN LATERAL ${nextKey("turn.key", "0")} AS next
     WHERE wants.wanted > 0
     UNION ALL
     SELECT next.key, next.lap, walk.looked + 1
     FROM walk CROSS JOIN LATERAL ${nextKey("walk.key", "walk.lap")} AS next
     WHERE walk.looked < ${MAX_KEYS_COMPARED}
   )`;
  const cut = `cut AS MATERIALIZED (
     SELECT key, lap FROM walk WHERE looked >= ${MAX_KEYS_COMPARED}
   )`;
  const forgotten = rated && named ? `, ${forgetOver("rooms")}` : "";
  return prepared(
    name,
    `WITH RECURSIVE ${GIVEN}, ${WANTS}${rated ? `, ${CLOCK}` : ""}, turn AS MATERIALIZED (
     SELECT key, coalesce(time_ms, 0) AS time_ms, run_ms, runs FROM key_turns
     WHERE deployment_id = $1 AND endpoint = $4
   ), ended AS (
     DELETE FROM key_runs WHERE deployment_id = $1 AND endpoint = $4 RETURNING key, run_ms
   ), ended_of AS MATERIALIZED (
     SELECT key, sum(run_ms)::bigint AS run_ms, count(*)::integer AS runs FROM ended GROUP BY key
   ), known AS MATERIALIZED (
     WITH total AS (
       SELECT turn.run_ms + coalesce(sum(ended_of.run_ms), 0)::bigint AS run_ms,
         turn.runs + coalesce(sum(ended_of.runs), 0)::integer AS runs
       FROM turn LEFT JOIN ended_of ON true GROUP BY turn.run_ms, turn.runs)
     SELECT ${recent("true")}
   ), running AS MATERIALIZED (
     SELECT key, count(*)::integer AS tasks, sum(${ranFor("started_at_ms", now)})::bigint AS so_far_ms
     FROM live_tasks
     WHERE deployment_id = $1 AND endpoint = $4 AND status = ${STATUS.running} AND key IS NOT NULL
     GROUP BY key
   ), ${walk}, total AS MATERIALIZED (
     SELECT one.key, one.looked, ended_of.key IS NOT NULL AS is_counted,
       coalesce(own.had_ms, 0) + coalesce(ended_of.run_ms, 0) AS had_ms,
       coalesce(own.run_ms, 0) + coalesce(ended_of.run_ms, 0) AS run_ms,
       coalesce(own.runs, 0) + coalesce(ended_of.runs, 0) AS runs,
       coalesce(running.tasks, 0) AS tasks, coalesce(running.so_far_ms, 0) AS so_far_ms
     FROM (SELECT key, max(looked) AS looked FROM (
         SELECT key, looked FROM walk UNION ALL SELECT key, NULL FROM ended_of) AS any_key
       GROUP BY key) AS one
     LEFT JOIN ended_of ON ended_of.key = one.key
     LEFT JOIN running ON running.key = one.key
     LEFT JOIN LATERAL (
       SELECT had_ms, run_ms, runs FROM key_times
       WHERE deployment_id = $1 AND endpoint = $4 AND key_times.key = one.key OFFSET 0) AS own ON true
   ), had AS MATERIALIZED (
     SELECT total.key, looked, is_counted, had_ms, tasks, so_far_ms, ${recent("is_counted")}
   ), rooms AS MATERIALIZED (
     SELECT had.key, had.looked, own.places, had.tasks, had.so_far_ms,
       greatest(had.had_ms + had.so_far_ms, turn.time_ms) AS time_ms,
       CASE WHEN had.runs > 0 THEN had.run_ms / had.runs
         WHEN known.runs > 0 THEN known.run_ms / known.runs ELSE 0 END AS mean_ms,
       ${rated ? "least(own.places, rate.starts) AS room, rate.next_in_ms, rate.last, rate.is_ahead" : "own.places AS room"}
     FROM had CROSS JOIN turn CROSS JOIN known
     CROSS JOIN LATERAL (SELECT EXISTS (
       SELECT FROM live_tasks AS own WHERE ${READY_OF_ENDPOINT} AND own.key = had.key AND NOT suspect
     ) AS is_ready) AS any_task
     CROSS JOIN LATERAL (
       SELECT CASE WHEN is_ready THEN coalesce($5::integer, 2147483647) - had.tasks ELSE 0 END AS places
     ) AS own
     ${rated ? `CROSS JOIN LATERAL ${startsOf("had.key")} AS rate` : ""}
     WHERE had.looked IS NOT NULL
   ), ready AS MATERIALIZED (
     SELECT free.key, free.looked, own.deployment_id, own.task_id, nth,
       begins_ms + (nth - 1) * mean_ms AS begins_ms
     FROM (
       SELECT key, looked, room, mean_ms,
         greatest(time_ms, time_ms - so_far_ms + tasks * mean_ms) AS begins_ms
       FROM rooms WHERE room > 0
       ORDER BY begins_ms, looked LIMIT (SELECT wanted FROM wants)) AS free
     CROSS JOIN wants CROSS JOIN LATERAL (
       SELECT one.*, row_number() OVER (ORDER BY priority DESC, run_at_ms, task_id) AS nth FROM (
         SELECT deployment_id, task_id, priority, run_at_ms FROM live_tasks
         WHERE ${READY_OF_ENDPOINT} AND live_tasks.key = free.key AND NOT suspect
         ORDER BY priority DESC, run_at_ms, task_id LIMIT least(free.room, wants.wanted)) AS one
     ) AS own
   ), chosen AS MATERIALIZED (
     SELECT deployment_id, task_id, key, row_number() OVER (ORDER BY begins_ms, nth, looked) AS place
     FROM ready ORDER BY begins_ms, nth, looked LIMIT (SELECT wanted FROM wants)
   ), picked AS MATERIALIZED (
     SELECT $4 AS endpoint, own.deployment_id, own.task_id, chosen.key, chosen.place
     FROM chosen CROSS JOIN LATERAL (
       SELECT deployment_id, task_id FROM live_tasks
       WHERE live_tasks.deployment_id = chosen.deployment_id AND live_tasks.task_id = chosen.task_id
         AND status = ${STATUS.ready} FOR UPDATE SKIP LOCKED) AS own
   ), ${dealt("", now)}${named ? "" : `, ${cut}`}, turned AS (
     UPDATE key_turns SET run_ms = known.run_ms, runs = known.runs,
       key = ${
         named
           ? "key_turns.key"
           : `coalesce((SELECT key FROM cut),
         (SELECT key FROM claimed ORDER BY position DESC, place DESC LIMIT 1), key_turns.key)`
       },
       time_ms = greatest(turn.time_ms, (SELECT min(rooms.time_ms) FROM rooms WHERE room > 0))
     FROM known, turn WHERE key_turns.deployment_id = $1 AND key_turns.endpoint = $4
   ), timed AS (
     INSERT INTO key_times AS own (deployment_id, endpoint, key, had_ms, run_ms, runs, expires_at_ms)
     SELECT $1, $4, had.key,
       CASE WHEN is_started THEN greatest(had.had_ms, turn.time_ms - had.so_far_ms) ELSE had.had_ms END,
       had.run_ms, had.runs, ${now} + ${KEY_TIME_MS}
     FROM had CROSS JOIN turn CROSS JOIN LATERAL (
       SELECT EXISTS (SELECT FROM claimed WHERE claimed.key = had.key) AS is_started) AS any_start
     WHERE is_started OR is_counted
     ON CONFLICT (deployment_id, endpoint, key) DO UPDATE SET had_ms = excluded.had_ms,
       run_ms = excluded.run_ms, runs = excluded.runs, expires_at_ms = excluded.expires_at_ms
   )${rated ? `, ${keepStarts("rooms")}` : ""}${forgotten}, later AS (
     SELECT $4 AS later_endpoint, least(
       (SELECT ${LOOK_ON_MS} WHERE (SELECT count(*) FROM picked) < (SELECT count(*) FROM chosen)),
       ${rated ? (named ? NEXT_OVER : nextStart("rooms")) : "NULL"}) AS in_ms,
       ${named ? "NULL::text" : HOW_CUT} AS cut
     FROM wants WHERE (SELECT count(*) FROM claimed) < wants.wanted
   )
   SELECT * FROM later FULL JOIN claimed ON false`,
  );
};

export const CLAIM_BY_TIME = claimByTime("claim_by_time", { rated: false, named: false });
export const CLAIM_BY_TIME_AND_RATE = claimByTime("claim_by_time_and_rate", {
  rated: true,
  named: false,
});
export const CLAIM_OF_KEYS_BY_TIME = claimByTime("claim_of_keys_by_time", {
  rated: false,
  named: true,
});
export const CLAIM_OF_KEYS_BY_TIME_AND_RATE = claimByTime("claim_of_keys_by_time_and_rate", {
  rated: true,
  named: true,
});

/** SQL: keys whose suspects start begin to be counted. */
const BEGUN = `, begun AS (
     INSERT INTO key_times (deployment_id, endpoint, key, had_ms, run_ms, runs, expires_at_ms)
     SELECT DISTINCT $1, $4, claimed.key, coalesce(turn.time_ms, 0), 0, 0, $2::bigint + ${KEY_TIME_MS}
     FROM claimed CROSS JOIN (
       SELECT time_ms FROM key_turns WHERE deployment_id = $1 AND endpoint = $4) AS turn
     ON CONFLICT (deployment_id, endpoint, key) DO NOTHING)`;

export const CLAIM_SUSPECTS_BY_TIME = claimSuspectsByKey("claim_suspects_by_time", false, BEGUN);
export const CLAIM_SUSPECTS_BY_TIME_AND_RATE = claimSuspectsByKey(
  "claim_suspects_by_time_and_rate",
  true,
  BEGUN,
);
