/**
 * What is taken from a cell to home: messages to webhooks, which are delivered from there, and what was
 * used, which is summed up there. Both are written in the cell by the transaction that ends or stores a
 * task, and taken later, by whichever node asks for them: nothing is lost with a node, or counted twice.
 *
 * Messages are rows with a key of their own, and home passes over those that it has. They are locked in
 * the cell until home has them, so that who deletes their task deletes them in one of the two.
 *
 * What was used are sums, so they go in numbered loads: a load is set aside in the cell, home adds it
 * where its number is new, and the cell forgets it. A load that was added and not forgotten is brought
 * again, and passed over.
 */
import { FOLD } from "../postgres/counts.ts";
import type { PostgresDatabase } from "../postgres/database.ts";
import { run } from "../postgres/run-operation.ts";
import { prepared, statement } from "../postgres/session.ts";
import { endedTask } from "../sql/hosting/deliveries.ts";
import { TOLD_COLUMNS } from "../sql/hosting/webhooks.ts";

/** Messages that are taken in one transaction. */
const MAX_CARRIED_DELIVERIES = 100;

const WAITING = prepared(
  "deliveries_of_cell",
  `SELECT ${TOLD_COLUMNS} FROM webhook_deliveries WHERE state = 0
   LIMIT ${MAX_CARRIED_DELIVERIES} FOR UPDATE SKIP LOCKED`,
);
const STORE = prepared(
  "carry_deliveries",
  `WITH given AS MATERIALIZED (
     SELECT * FROM json_to_recordset($1) AS given (organization_id text, deployment_id text,
       webhook_id text, delivery_id text, event integer, endpoint text, task_id text,
       created_at_ms bigint, ended text)
   ), ends AS (
     INSERT INTO carried_ends (deployment_id, delivery_id, ended)
     SELECT deployment_id, delivery_id, ended FROM given WHERE ended IS NOT NULL
     ON CONFLICT DO NOTHING
   )
   INSERT INTO webhook_deliveries (${TOLD_COLUMNS}) SELECT ${TOLD_COLUMNS} FROM given
   ON CONFLICT DO NOTHING`,
);
const TAKEN = prepared(
  "carried_deliveries",
  `DELETE FROM webhook_deliveries AS own USING json_to_recordset($1) AS given (deployment_id text,
     delivery_id text)
   WHERE own.deployment_id = given.deployment_id AND own.delivery_id = given.delivery_id`,
);

/** Takes the messages of a cell to home. */
export async function carryDeliveries(
  cell: PostgresDatabase,
  home: PostgresDatabase,
): Promise<void> {
  for (;;) {
    const carried = await cell.transaction(async (session) => {
      const rows = await session.query(WAITING);
      const given = [];
      for (const row of rows) {
        const ended = await run(session, endedTask(String(row.deployment_id), String(row.task_id)));
        given.push({ ...row, ended: ended && JSON.stringify(ended) });
      }
      if (given.length > 0) {
        await home.query(STORE, JSON.stringify(given));
        await session.query(TAKEN, JSON.stringify(given));
      }
      return given.length;
    });
    if (carried < MAX_CARRIED_DELIVERIES) {
      return;
    }
  }
}

const OWN_LOAD = prepared("lock_load", "SELECT load_number, load FROM cell_identity FOR UPDATE");
const SET_ASIDE = prepared(
  "set_load_aside",
  `WITH gone AS (DELETE FROM usage RETURNING *), units AS (DELETE FROM usage_units RETURNING *)
   UPDATE cell_identity SET load_number = load_number + 1, load = json_build_object(
     'usage', (SELECT coalesce(json_agg(gone), '[]') FROM gone),
     'units', (SELECT coalesce(json_agg(units), '[]') FROM units))::text
   WHERE EXISTS (SELECT FROM gone) OR EXISTS (SELECT FROM units)
   RETURNING load_number, load`,
);
const FORGET = prepared(
  "forget_load",
  "UPDATE cell_identity SET load = NULL WHERE load_number = $1",
);
const IS_NEW = prepared(
  "new_load",
  "UPDATE cells SET load_number = $2 WHERE cell = $1 AND load_number < $2 RETURNING load_number",
);
const ADD_USAGE = statement(
  `INSERT INTO usage AS kept (deployment_id, day, endpoint, token_id, calls, tasks, run_ms, gpu_ms,
     bytes_in, bytes_out)
   SELECT * FROM json_to_recordset($1::json -> 'usage') AS given (deployment_id text, day integer,
     endpoint text, token_id text, calls bigint, tasks bigint, run_ms bigint,
     gpu_ms double precision, bytes_in bigint, bytes_out bigint)
   ORDER BY deployment_id, day, endpoint, token_id
   ON CONFLICT (deployment_id, day, endpoint, token_id) DO UPDATE
     SET calls = kept.calls + excluded.calls, tasks = kept.tasks + excluded.tasks,
       run_ms = kept.run_ms + excluded.run_ms, gpu_ms = kept.gpu_ms + excluded.gpu_ms,
       bytes_in = kept.bytes_in + excluded.bytes_in,
       bytes_out = kept.bytes_out + excluded.bytes_out`,
);
const ADD_UNITS = statement(
  `INSERT INTO usage_units AS kept (deployment_id, day, endpoint, token_id, unit, amount)
   SELECT * FROM json_to_recordset($1::json -> 'units') AS given (deployment_id text, day integer,
     endpoint text, token_id text, unit text, amount double precision)
   ORDER BY deployment_id, day, endpoint, token_id, unit
   ON CONFLICT (deployment_id, day, endpoint, token_id, unit) DO UPDATE
     SET amount = kept.amount + excluded.amount`,
);

/** Takes what was used in a cell to home. */
export async function carryUsage(
  cell: PostgresDatabase,
  home: PostgresDatabase,
  number: number,
): Promise<void> {
  const load = await cell.transaction(async (session) => {
    const [own] = await session.query(OWN_LOAD);
    if (own === undefined || own.load !== null) {
      return own;
    }
    await session.query(FOLD);
    const [aside] = await session.query(SET_ASIDE);
    return aside;
  });
  if (load === undefined) {
    return;
  }
  await home.transaction(async (session) => {
    const fresh = await session.query(IS_NEW, number, load.load_number);
    if (fresh.length > 0) {
      await session.query(ADD_USAGE, load.load);
      await session.query(ADD_UNITS, load.load);
    }
  });
  await cell.query(FORGET, load.load_number);
}
