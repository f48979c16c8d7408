/**
 * How a cell is taken out. It is closed at home, for good: no new task goes there but retries of those that
 * it has, and what it has runs to its end and is kept for its time. Once nothing is left in it, whoever finds
 * that notes it at home, and nodes start without it. Its number is not given again.
 *
 * It is not opened again, because where keys had their places meanwhile would be forgotten.
 */
import type { PostgresDatabase } from "../postgres/database.ts";
import { prepared, statement } from "../postgres/session.ts";
import { carryDeliveries, carryUsage } from "./carry.ts";
import { CellRefused, KEYED_AFTER_MS, type KnownCell, LOCK, refuseCell } from "./identity.ts";

/**
 * After what time since its closing a cell may be found empty: longer than a node may go on with what it has
 * read of the cells (`UNKEYED_FOR_MS`), and a submit may take besides.
 */
export const EMPTIED_AFTER_MS = 90_000;

const CLOSE = statement(
  `UPDATE cells SET closed_from_ms = coalesce(closed_from_ms,
     (extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${KEYED_AFTER_MS})
   WHERE name = $1 RETURNING cell`,
);

/** Closes a cell; one that is closed stays so. Throws `CellRefused` where there is none of this name. */
export async function closeCell(home: PostgresDatabase, name: string): Promise<void> {
  await refuseCell(home);
  const closed = await home.transaction(async (session) => {
    await session.query(LOCK);
    return session.query(CLOSE, name);
  });
  if (closed.length === 0) {
    throw new CellRefused(
      `the platform has no cell ${JSON.stringify(name)}: tessera admin cells lists them`,
    );
  }
}

const IS_EMPTY = prepared(
  "is_emptied",
  `SELECT NOT (EXISTS (SELECT FROM live_tasks) OR EXISTS (SELECT FROM finished_tasks)
     OR EXISTS (SELECT FROM idempotency_keys) OR EXISTS (SELECT FROM webhook_deliveries)
     OR EXISTS (SELECT FROM usage) OR EXISTS (SELECT FROM usage_units)
     OR EXISTS (SELECT FROM queue_count_deltas) OR EXISTS (SELECT FROM blobs)
     OR EXISTS (SELECT FROM cell_identity WHERE load IS NOT NULL)) AS is_empty`,
);
const EMPTIED = prepared("cell_emptied", "UPDATE cells SET emptied = $2 WHERE cell = $1");

/**
 * Takes home what a closed cell has for it, and notes there whether nothing is left. A node that stood still
 * may store a task where nothing was left, so a cell that was found empty is looked at while it is named.
 */
export async function noteEmptied(
  home: PostgresDatabase,
  cell: PostgresDatabase,
  { number, isEmptied }: KnownCell,
): Promise<void> {
  if (!isEmptied) {
    await carryDeliveries(cell, home);
    await carryUsage(cell, home, number);
  }
  const [row] = await cell.query(IS_EMPTY);
  const isEmpty = row?.is_empty === true;
  if (isEmpty !== isEmptied) {
    await home.query(EMPTIED, number, isEmpty);
  }
}
