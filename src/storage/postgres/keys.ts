/**
 * Claims of endpoints that callers share by their keys, one endpoint after the other. What runs is not
 * counted: the tasks of a key that run are its use, and an index has them. So an attempt that ends in
 * whatever way, also with its lease, gives its room back by ending. Where starts have a rate of n in a period, the
 * last ones of each key are kept, by the database's clock: the next one may be when the nth last is
 * longer ago than the period. They are numbered, so that it is found without counting. An attempt that
 * ends unbegun says so (`key_unbegun`) and touches no row of others; the next claim takes its start away.
 *
 * A claim locks the endpoint's row of `key_turns` before it looks, so that it sees what all others have
 * claimed, and the time is later than that of all others. For these rows and for leases claims wait,
 * and for tasks that are locked never: so they wait for each other in no circle.
 */
import {
  MAX_KEYS_LOOKED_AT,
  MAX_STARTS_LOOKED_AT,
  MAX_SUSPECTS_LOOKED_AT,
  MAX_UNKEYED_LOOKED_AT,
} from "../claims-by-key.ts";
import { isPaused } from "../sql/hosting/pauses.ts";
import { dealt, GIVEN, GIVEN_KEY } from "./dealing.ts";
import { STATUS } from "./schema.ts";
import { prepared } from "./session.ts";

/** Makes the row, or locks it: one that is not updated is locked as well. */
export const LOCK_TURN = prepared(
  "lock_key_turn",
  `INSERT INTO key_turns (deployment_id, endpoint, key) VALUES ($1, $2, '')
   ON CONFLICT (deployment_id, endpoint) DO UPDATE SET key = '' WHERE false`,
);

/** Those of the first tasks of a queue that have no key get the empty one. */
export const GIVE_KEYS = prepared(
  "give_keys",
  `WITH first AS MATERIALIZED (
     SELECT deployment_id, task_id, key FROM live_tasks
     WHERE deployment_id = $1 AND endpoint = $2 AND status = ${STATUS.ready}
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_UNKEYED_LOOKED_AT}
   ), unkeyed AS MATERIALIZED (
     SELECT own.deployment_id, own.task_id FROM first JOIN live_tasks AS own
       ON own.deployment_id = first.deployment_id AND own.task_id = first.task_id
     WHERE first.key IS NULL AND own.key IS NULL FOR UPDATE OF own SKIP LOCKED)
   UPDATE live_tasks SET key = '' FROM unkeyed
   WHERE live_tasks.deployment_id = unkeyed.deployment_id AND live_tasks.task_id = unkeyed.task_id`,
);

/**
 * Notes attempts that end before their function begins, where their start is kept. Locks the tasks, so
 * that each attempt is noted once.
 */
export const KEEP_UNBEGUN = prepared(
  "keep_unbegun",
  `WITH given AS MATERIALIZED (
     SELECT * FROM json_to_recordset($1) AS given (deployment_id text, task_id text, lease_id text,
       attempt integer)
   ), own AS MATERIALIZED (
     SELECT one.* FROM (SELECT * FROM given ORDER BY deployment_id, task_id) AS of
     CROSS JOIN LATERAL (
       SELECT deployment_id, endpoint, task_id, attempt, key, started_at_ms FROM live_tasks
       WHERE deployment_id = of.deployment_id AND task_id = of.task_id AND lease_id = of.lease_id
         AND attempt = of.attempt AND key IS NOT NULL FOR UPDATE) AS one
   )
   INSERT INTO key_unbegun
     (deployment_id, endpoint, task_id, attempt, key, started_at_ms, expires_at_ms)
   SELECT own.deployment_id, own.endpoint, own.task_id, own.attempt, own.key, own.started_at_ms,
     kept.expires_at_ms
   FROM own CROSS JOIN LATERAL (
     SELECT expires_at_ms FROM key_starts WHERE deployment_id = own.deployment_id
       AND endpoint = own.endpoint AND key = own.key AND started_at_ms = own.started_at_ms
     LIMIT 1) AS kept
   ON CONFLICT DO NOTHING`,
);

/**
 * Takes away the starts of attempts that did not begin; the endpoint's row is locked. The starts after
 * them move down to their numbers, so that the numbers have no gap: those are few, where a key may have
 * thousands before them. They are locked first, as a prune may be deleting some.
 */
export const TAKE_UNBEGUN = prepared(
  "take_unbegun",
  `WITH unbegun AS (
     DELETE FROM key_unbegun WHERE deployment_id = $1 AND endpoint = $2
     RETURNING key, started_at_ms
   ), gone AS MATERIALIZED (
     SELECT key, started_at_ms, count(*) AS starts FROM unbegun GROUP BY key, started_at_ms
   ), kept AS MATERIALIZED (
     SELECT own.*, row_number() OVER (PARTITION BY key ORDER BY number) AS place,
       row_number() OVER (PARTITION BY key, started_at_ms ORDER BY number) AS nth
     FROM (SELECT key AS of_key, min(started_at_ms) AS since_ms FROM gone GROUP BY key) AS one
     CROSS JOIN LATERAL (
       SELECT ctid AS spot, key, number, started_at_ms, expires_at_ms FROM key_starts
       WHERE deployment_id = $1 AND endpoint = $2 AND key = one.of_key
         AND started_at_ms >= one.since_ms OFFSET 0 FOR UPDATE) AS own
   ), stay AS MATERIALIZED (
     SELECT kept.key, kept.number, kept.started_at_ms, kept.expires_at_ms,
       row_number() OVER (PARTITION BY kept.key ORDER BY kept.number) AS place
     FROM kept LEFT JOIN gone ON gone.key = kept.key AND gone.started_at_ms = kept.started_at_ms
     WHERE kept.nth > coalesce(gone.starts, 0)
   ), changed AS MATERIALIZED (
     SELECT kept.spot, stay.started_at_ms, stay.expires_at_ms
     FROM kept LEFT JOIN stay ON stay.key = kept.key AND stay.place = kept.place
     WHERE stay.number IS DISTINCT FROM kept.number
   ), moved AS (
     UPDATE key_starts SET started_at_ms = changed.started_at_ms, expires_at_ms = changed.expires_at_ms
     FROM changed WHERE key_starts.ctid = changed.spot AND changed.started_at_ms IS NOT NULL
   )
   DELETE FROM key_starts
   WHERE ctid = ANY (ARRAY(SELECT spot FROM changed WHERE started_at_ms IS NULL))`,
);

/** SQL: how many more tasks of a key may run. */
const placesOf = (key: string) => `CASE WHEN $5::integer IS NULL THEN 2147483647 ELSE $5 - (
    SELECT count(*) FROM (
      SELECT FROM live_tasks AS other WHERE other.deployment_id = $1 AND other.endpoint = $4
        AND other.status = ${STATUS.running} AND other.key = ${key} LIMIT $5) AS running) END`;

/** SQL: the time of the claims of an endpoint, which wait for each other. Parameters of a rate are `$6` to `$8`. */
export const CLOCK = `clock AS MATERIALIZED (
     SELECT coalesce($8::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now_ms
   )`;

const STARTS_OF = (key: string) =>
  `key_starts WHERE deployment_id = $1 AND endpoint = $4 AND key = ${key}`;

/**
 * SQL: the `starts` that a key may have now, as far as they are wanted, when it may have one more than
 * these (`next_in_ms`), its `last` number, and whether the clock was set back since (`is_ahead`).
 */
export const startsOf = (key: string) => `(
    SELECT coalesce(first.number - 1 - last.number + $6::integer, least($6, wants.wanted)) AS starts,
      least(coalesce(first.started_at_ms, now_ms), now_ms) + $7::integer + 1 - now_ms AS next_in_ms,
      last.number AS last, last.started_at_ms > now_ms AS is_ahead
    FROM clock CROSS JOIN wants
    CROSS JOIN (
      SELECT 0 AS number, 0 AS started_at_ms
      UNION ALL (SELECT number, started_at_ms FROM ${STARTS_OF(key)} ORDER BY number DESC LIMIT 1)
      ORDER BY number DESC LIMIT 1) AS last
    LEFT JOIN LATERAL (
      SELECT number, started_at_ms FROM ${STARTS_OF(key)}
        AND number > last.number - $6 AND number <= last.number - $6 + wants.wanted
        AND started_at_ms >= now_ms - $7
      ORDER BY number LIMIT 1) AS first ON true)`;

/** SQL that keeps the starts of what was claimed, and forgets those that no window can hold. */
export const keepStarts = (rooms: string) => `kept AS (
     INSERT INTO key_starts (deployment_id, endpoint, key, number, started_at_ms, expires_at_ms)
     SELECT $1, $4, claimed.key, last + row_number() OVER (PARTITION BY claimed.key),
       now_ms, now_ms + $7 + 1
     FROM claimed CROSS JOIN clock JOIN ${rooms} AS rooms ON rooms.key = claimed.key
   ), ahead AS MATERIALIZED (
     SELECT one.* FROM ${rooms} AS rooms CROSS JOIN clock CROSS JOIN LATERAL (
       SELECT deployment_id, endpoint, key, number FROM ${STARTS_OF("rooms.key")}
         AND started_at_ms > now_ms OFFSET 0) AS one
     WHERE rooms.is_ahead
   ), mended AS (
     UPDATE key_starts SET started_at_ms = now_ms, expires_at_ms = now_ms + $7 + 1
     FROM clock, ahead
     WHERE key_starts.deployment_id = ahead.deployment_id AND key_starts.endpoint = ahead.endpoint
       AND key_starts.key = ahead.key AND key_starts.number = ahead.number
   ), over AS MATERIALIZED (
     SELECT one.* FROM (SELECT key, count(*) AS starts FROM claimed GROUP BY key) AS taken
     JOIN ${rooms} AS rooms ON rooms.key = taken.key CROSS JOIN clock CROSS JOIN LATERAL (
       SELECT deployment_id, endpoint, key, number FROM ${STARTS_OF("rooms.key")}
         AND number <= rooms.last + taken.starts - $6 AND expires_at_ms <= now_ms
         FOR UPDATE SKIP LOCKED) AS one
   ), forgotten AS (
     DELETE FROM key_starts USING over
     WHERE key_starts.deployment_id = over.deployment_id AND key_starts.endpoint = over.endpoint
       AND key_starts.key = over.key AND key_starts.number = over.number
   )`;

export const READY_OF_ENDPOINT = `deployment_id = $1 AND endpoint = $4 AND status = ${STATUS.ready}
  AND (start_by_ms IS NULL OR start_by_ms > $2)`;

/** SQL: a key of the endpoint that has tasks waiting, the first one that fits. */
const firstKey = (lap: number, condition: string) => `(
    SELECT other.key, ${lap} AS lap FROM live_tasks AS other
    WHERE other.deployment_id = $1 AND other.endpoint = $4 AND other.status = ${STATUS.ready}
      AND ${condition} ORDER BY other.key LIMIT 1)`;

/** SQL: the key after another one, and from the last one on those up to the key of the last claim. */
export const nextKey = (key: string, lap: string) => `(
    ${firstKey(0, `${lap} = 0 AND other.key > ${key}`)}
    UNION ALL ${firstKey(1, `${lap} = 0 AND other.key <= (SELECT key FROM turn)`)}
    UNION ALL ${firstKey(1, `${lap} = 1 AND other.key > ${key} AND other.key <= (SELECT key FROM turn)`)}
    ORDER BY lap LIMIT 1)`;

const WANTS = `wants AS MATERIALIZED (
     SELECT coalesce(sum(wanted), 0)::integer AS wanted FROM given WHERE NOT ${isPaused("$1", "$4")}
   )`;

/** SQL: what a key may have that has a task to start; others may have nothing. */
const ownRoom = (key: string, rated: boolean) => `
     CROSS JOIN LATERAL (SELECT EXISTS (
       SELECT FROM live_tasks AS own WHERE ${READY_OF_ENDPOINT} AND own.key = ${key} AND NOT suspect
     ) AS is_ready) AS any_task
     CROSS JOIN LATERAL (
       SELECT CASE WHEN is_ready THEN ${placesOf(key)} ELSE 0 END AS places) AS own
     ${rated ? `CROSS JOIN LATERAL ${startsOf(key)} AS rate` : ""}`;

const ownColumns = (rated: boolean) =>
  rated
    ? "own.places, least(own.places, rate.starts) AS room, rate.next_in_ms, rate.last, rate.is_ahead"
    : "own.places, own.places AS room";

/**
 * SQL: in how many milliseconds a task may start that waits for nothing but the rate of its key, which
 * is among those of `rooms`.
 */
export const nextStart = (rooms: string) => `(SELECT min(next_in_ms) FROM ${rooms} AS looked
       CROSS JOIN LATERAL (SELECT count(*) AS taken FROM picked WHERE picked.key = looked.key) AS own
       WHERE places > taken AND room = taken AND EXISTS (
         SELECT FROM live_tasks AS more WHERE ${READY_OF_ENDPOINT} AND more.key = looked.key
           AND NOT suspect OFFSET own.taken))`;

const OF_ENDPOINT = "deployment_id || '/' || endpoint = $1::text || '/' || $4::text";

/** SQL: each before the key of its turn that is named, or after it. */
const OVER_BY_TURNS = `UNION ALL
       SELECT key, 2 * row_number() OVER () + 1 - now_ms % 2 * 2 FROM over_now CROSS JOIN clock`;

/**
 * SQL: the keys that the claim is to look at (the last parameter), and those of starts that have left the
 * window of their rate (`over_now`), one of each by turns. Which comes first changes by the time: where
 * each claim is for one slot, neither waits for the other to end.
 */
export const namedKeys = (rated: boolean) => `${
  rated
    ? `over_now AS MATERIALIZED (
     SELECT one.* FROM clock CROSS JOIN wants CROSS JOIN LATERAL (
       SELECT key, ctid AS place FROM key_starts
       WHERE ${OF_ENDPOINT} AND expires_at_ms <= now_ms
       ORDER BY expires_at_ms LIMIT ${MAX_STARTS_LOOKED_AT} FOR UPDATE SKIP LOCKED) AS one
     WHERE wants.wanted > 0
   ), `
    : ""
}named AS MATERIALIZED (
     SELECT key, min(rank) AS rank FROM (
       SELECT key, 2 * rank AS rank
       FROM unnest($${rated ? 9 : 6}::text[]) WITH ORDINALITY AS told (key, rank)
       ${rated ? OVER_BY_TURNS : ""}) AS one
     GROUP BY key
   )`;

/** SQL that forgets the starts of `over_now`, but for keys that have room and found no slot (`left_over`). */
export const forgetOver = (rooms: string) => `left_over AS MATERIALIZED (
     SELECT key FROM ${rooms} AS own WHERE own.room > 0 EXCEPT SELECT key FROM claimed
   ), done AS (
     DELETE FROM key_starts WHERE ctid = ANY (ARRAY(
       SELECT place FROM over_now WHERE key NOT IN (SELECT key FROM left_over)))
   )`;

/** SQL: in how many milliseconds the next start leaves the window of its rate. */
export const NEXT_OVER = `(SELECT CASE
       WHEN (SELECT count(*) FROM over_now) = ${MAX_STARTS_LOOKED_AT}
         OR EXISTS (SELECT FROM left_over) THEN 1
       ELSE coalesce((SELECT expires_at_ms FROM key_starts
           WHERE ${OF_ENDPOINT} AND expires_at_ms > now_ms ORDER BY expires_at_ms LIMIT 1) - now_ms,
         CASE WHEN EXISTS (SELECT FROM claimed) THEN $7::integer + 1 END) END FROM clock)`;

/** SQL: how the claim was cut, after the last row of `cut`. */
export const HOW_CUT = "(SELECT CASE WHEN lap > 0 THEN 'around' ELSE 'on' END FROM cut)";

/**
 * Walks from key to key, from the one after the last that was claimed, until as many have room as
 * tasks are wanted, or too many have none; or looks at the keys that are named. Then picks one task of
 * each, and then the next one of each. The first row says in how many milliseconds the next may start,
 * and whether there are more keys, where it found too few.
 */
const claimByKey = (
  name: string,
  { rated, named }: { readonly rated: boolean; readonly named: boolean },
) => {
  const own = ownRoom("next.key", rated);
  const columns = ownColumns(rated);
  const walk = named
    ? `${namedKeys(rated)}, walk AS MATERIALIZED (
     SELECT next.key, next.rank AS lap, ${columns} FROM named AS next CROSS JOIN wants ${own}
     WHERE wants.wanted > 0
   )`
    : `turn AS MATERIALIZED (
     SELECT key FROM key_turns WHERE deployment_id = $1 AND endpoint = $4
   ), walk AS (
     SELECT next.key, next.lap, ${columns},
       (own.places > 0${rated ? " AND rate.starts > 0" : ""})::integer AS found, 1 AS looked
     FROM turn CROSS JOIN wants CROSS JOIN LATERAL ${nextKey("turn.key", "0")} AS next ${own}
     WHERE wants.wanted > 0
     UNION ALL
     SELECT next.key, next.lap, ${columns},
       walk.found + (own.places > 0${rated ? " AND rate.starts > 0" : ""})::integer, walk.looked + 1
     FROM walk CROSS JOIN wants
     CROSS JOIN LATERAL ${nextKey("walk.key", "walk.lap")} AS next ${own}
     WHERE walk.found < wants.wanted AND walk.looked - walk.found < ${MAX_KEYS_LOOKED_AT}
   )`;
  const after = named
    ? rated && forgetOver("walk")
    : `cut AS MATERIALIZED (
     SELECT key, lap FROM walk WHERE looked - found >= ${MAX_KEYS_LOOKED_AT}
   ), turned AS (
     UPDATE key_turns SET key = last.key
     FROM (SELECT key FROM (
         SELECT cut.key, 0 AS rank, 0 AS position, 0 AS place FROM cut
         UNION ALL SELECT claimed.key, 1, position, place FROM claimed) AS one
       ORDER BY rank, position DESC, place DESC LIMIT 1) AS last
     WHERE key_turns.deployment_id = $1 AND key_turns.endpoint = $4
   )`;
  const inMs = named ? NEXT_OVER : nextStart("walk");
  return prepared(
    name,
    `WITH RECURSIVE ${GIVEN}, ${WANTS}${rated ? `, ${CLOCK}` : ""}, ${walk}, free AS MATERIALIZED (
     SELECT *, row_number() OVER (ORDER BY lap, key) AS turn FROM walk WHERE room > 0
   ), ready AS MATERIALIZED (
     SELECT free.key, free.turn, own.*, row_number() OVER (
       PARTITION BY free.key ORDER BY priority DESC, run_at_ms, task_id) AS nth
     FROM free CROSS JOIN wants CROSS JOIN LATERAL (
       SELECT deployment_id, task_id, priority, run_at_ms FROM live_tasks
       WHERE ${READY_OF_ENDPOINT} AND live_tasks.key = free.key AND NOT suspect
       ORDER BY priority DESC, run_at_ms, task_id
       LIMIT CASE WHEN (SELECT count(*) FROM free) >= wants.wanted THEN 1
         ELSE least(free.room, wants.wanted) END
       FOR UPDATE SKIP LOCKED) AS own
   ), picked AS MATERIALIZED (
     SELECT $4 AS endpoint, deployment_id, task_id, key,
       row_number() OVER (ORDER BY nth, turn) AS place
     FROM ready ORDER BY nth, turn LIMIT (SELECT wanted FROM wants)
   ), ${dealt("", rated ? "(SELECT now_ms FROM clock)" : "$2")}${after ? `, ${after}` : ""}
   ${rated ? `, ${keepStarts("walk")}` : ""}, later AS (
     SELECT $4 AS later_endpoint, ${rated ? inMs : "NULL::bigint"} AS in_ms,
       ${named ? "NULL::text" : HOW_CUT} AS cut
     FROM wants WHERE (SELECT count(*) FROM claimed) < wants.wanted
   )
   SELECT * FROM later FULL JOIN claimed ON false`,
  );
};

export const CLAIM_BY_KEY = claimByKey("claim_by_key", { rated: false, named: false });
export const CLAIM_BY_RATE = claimByKey("claim_by_rate", { rated: true, named: false });
export const CLAIM_OF_KEYS = claimByKey("claim_of_keys", { rated: false, named: true });
export const CLAIM_OF_KEYS_BY_RATE = claimByKey("claim_of_keys_by_rate", {
  rated: true,
  named: true,
});

/** SQL: the suspects of an endpoint that wait, with their keys, and how many of each key may start. */
const suspectsOf = (rated: boolean, lock = "") => `waiting AS MATERIALIZED (
     SELECT deployment_id, task_id, priority, run_at_ms, coalesce(key, '') AS key FROM live_tasks
     WHERE ${READY_OF_ENDPOINT} AND suspect
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_SUSPECTS_LOOKED_AT}${lock}
   ), rooms AS MATERIALIZED (
     SELECT one.key, ${
       rated
         ? `least(own.places, rate.starts) AS places, rate.last, rate.is_ahead,
       CASE WHEN own.places > 0 THEN rate.next_in_ms END AS next_in_ms`
         : "own.places, NULL::bigint AS next_in_ms"
     }
     FROM (SELECT DISTINCT key FROM waiting) AS one
     CROSS JOIN LATERAL (SELECT ${placesOf("one.key")} AS places) AS own
     ${rated ? `CROSS JOIN LATERAL ${startsOf("one.key")} AS rate` : ""}
   )`;

/** Claims suspects in the order of the queue, within the room of their keys; `begun` is added. */
export const claimSuspectsByKey = (name: string, rated: boolean, begun = "") =>
  prepared(
    name,
    `WITH ${GIVEN}, ${WANTS}${rated ? `, ${CLOCK}` : ""},
   ${suspectsOf(rated, " FOR UPDATE SKIP LOCKED")}, ranked AS MATERIALIZED (
     SELECT *, row_number() OVER (
       PARTITION BY key ORDER BY priority DESC, run_at_ms, task_id) AS nth FROM waiting
   ), picked AS MATERIALIZED (
     SELECT $4 AS endpoint, deployment_id, task_id,
       row_number() OVER (ORDER BY priority DESC, run_at_ms, task_id) AS place
     FROM ranked JOIN rooms USING (key) WHERE nth <= places
     ORDER BY priority DESC, run_at_ms, task_id LIMIT (SELECT wanted FROM wants)
   ), ${dealt(GIVEN_KEY, rated ? "(SELECT now_ms FROM clock)" : "$2")}
   ${rated ? `, ${keepStarts("rooms")}` : ""}${begun}
   SELECT * FROM claimed`,
  );

export const CLAIM_SUSPECTS_BY_KEY = claimSuspectsByKey("claim_suspects_by_key", false);
export const CLAIM_SUSPECTS_BY_RATE = claimSuspectsByKey("claim_suspects_by_rate", true);

/**
 * When the first suspect may start, and of how many keys some wait. Only one is asked for (`$3`). A key
 * that has only no start left may get one by the claim that takes away those that did not begin.
 */
const nextSuspectOf = (name: string, rated: boolean) =>
  prepared(
    name,
    `WITH wants AS MATERIALIZED (SELECT $3::integer AS wanted)${rated ? `, ${CLOCK}` : ""},
   ${suspectsOf(rated)}
   SELECT min(CASE WHEN places > 0 OR next_in_ms IS NOT NULL AND EXISTS (
       SELECT FROM key_unbegun WHERE deployment_id = $1 AND endpoint = $4 AND key = rooms.key
     ) THEN 0 ELSE next_in_ms END) AS in_ms, count(*) AS keys FROM rooms`,
  );

export const NEXT_SUSPECT = nextSuspectOf("next_suspect", false);
export const NEXT_SUSPECT_BY_RATE = nextSuspectOf("next_suspect_by_rate", true);
