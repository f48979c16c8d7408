/** SQL that the statements of claims share, whatever they pick. */
import { columnsOf, LIVE_COLUMNS } from "./rows.ts";
import { STATUS } from "./schema.ts";

/** SQL: a task without a key gets the empty one. */
export const GIVEN_KEY = ", key = coalesce(live_tasks.key, '')";

/**
 * Deals the tasks of `picked` out in the order of the claims, of `given`. The leases are locked against
 * closing, but only when there is a task to claim: a look into an empty queue writes nothing.
 */
export const dealt = (key: string, startedAt = "$2") => `open AS MATERIALIZED (
     SELECT lease_id FROM leases
     WHERE lease_id IN (SELECT lease_id FROM given) AND EXISTS (SELECT FROM picked)
     FOR KEY SHARE
   ), slots AS MATERIALIZED (
     SELECT given.*, sum(wanted) OVER (PARTITION BY endpoint ORDER BY position) AS upto
     FROM given JOIN open USING (lease_id)
   ), dealt AS MATERIALIZED (
     SELECT picked.deployment_id, picked.task_id, picked.place, slots.position, slots.lease_id
     FROM picked JOIN slots ON picked.endpoint = slots.endpoint
       AND picked.place > slots.upto - slots.wanted AND picked.place <= slots.upto
   ), claimed AS (
     UPDATE live_tasks SET status = ${STATUS.running}, attempt = attempt + 1, started_at_ms = ${startedAt},
       lease_id = dealt.lease_id, started_sequence = last_sequence + 1,
       last_sequence = last_sequence + 1, progress = NULL, abort_requested = false${key}
     FROM dealt
     WHERE live_tasks.deployment_id = dealt.deployment_id AND live_tasks.task_id = dealt.task_id
     RETURNING dealt.position, dealt.place, arguments,
       ${columnsOf("live_tasks", LIVE_COLUMNS)}
   ), counted AS (
     INSERT INTO queue_count_deltas (deployment_id, endpoint, queued, running)
     SELECT $1, endpoint, -count(*), count(*) FROM claimed GROUP BY endpoint
   )`;

export const GIVEN = `given AS MATERIALIZED (
     SELECT * FROM json_to_recordset($3) AS given (position integer, endpoint text,
       lease_id text, wanted integer)
   )`;
