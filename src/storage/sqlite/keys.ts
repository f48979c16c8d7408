/**
 * Claims of endpoints that callers share by their keys: who is next, and how much room each key has.
 *
 * Nothing is counted: the tasks of a key that run are its use, and an index has them. So an attempt
 * that ends in whatever way, also with its lease, gives its room back by ending.
 */
import { MAX_SUSPECTS_LOOKED_AT, MAX_UNKEYED_LOOKED_AT } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";

/** What to pick, of which endpoint. */
export interface Picking {
  readonly deploymentId: string;
  readonly endpoint: string;
  /** The most tasks to pick. */
  readonly limit: number;
  readonly nowMs: number;
  /** The most tasks of a key that may run. */
  readonly concurrency: number | undefined;
}

type Endpoint = Pick<Picking, "deploymentId" | "endpoint">;

/** The columns of a task that a claim reads of those that it picks. */
export const TO_CLAIM = "task_id, retention_ms, token_id, arguments";

const OF_ENDPOINT = "deployment_id = ?1 AND endpoint = ?2";
const CAN_START = "(start_by_ms IS NULL OR start_by_ms > ?3)";
const READY_BY_KEY = `tasks INDEXED BY tasks_ready_by_key
  WHERE ${OF_ENDPOINT} AND status = ${STATUS.ready} AND key`;

/**
 * The tasks to claim: one of each key that has room, from the key after the last one on, and then
 * the next one of each. A claim looks at as many keys as it finds tasks, and at those without room,
 * which all have tasks that run.
 */
export function pickByKey(db: SqliteDatabase, picking: Picking): SqliteRow[] {
  const { limit } = picking;
  const picked: SqliteRow[] = [];
  const keys: { readonly key: string; readonly room: number }[] = [];
  for (const key of keysInTurn(db, picking)) {
    if (picked.length >= limit) {
      break;
    }
    const room = roomOf(db, picking, key);
    const row = room > 0 ? taskOfKey(db, picking, { key, nth: 0 }) : undefined;
    if (row !== undefined) {
      keys.push({ key, room });
      picked.push(row);
    }
  }
  let left = keys;
  for (let nth = 1; picked.length < limit && left.length > 0; nth++) {
    left = left.filter(({ key, room }) => {
      const isWanted = nth < room && picked.length < limit;
      const row = isWanted ? taskOfKey(db, picking, { key, nth }) : undefined;
      if (row !== undefined) {
        picked.push(row);
      }
      return row !== undefined;
    });
  }
  const last = picked.at(-1);
  if (last !== undefined) {
    db.run(
      `INSERT INTO key_turns (deployment_id, endpoint, key) VALUES (?, ?, ?)
       ON CONFLICT (deployment_id, endpoint) DO UPDATE SET key = excluded.key`,
      picking.deploymentId,
      picking.endpoint,
      String(last.key),
    );
  }
  return picked;
}

/** Keys that have tasks waiting, each once, from the one after the last that was claimed on. */
function* keysInTurn(db: SqliteDatabase, { deploymentId, endpoint }: Endpoint): Generator<string> {
  const next = (condition: string, ...values: string[]): string | undefined => {
    const sql = `SELECT key FROM ${READY_BY_KEY} ${condition} ORDER BY key LIMIT 1`;
    const row = db.get(sql, deploymentId, endpoint, ...values);
    return row === undefined ? undefined : String(row.key);
  };
  const turn = db.get(`SELECT key FROM key_turns WHERE ${OF_ENDPOINT}`, deploymentId, endpoint);
  const last = turn === undefined ? "" : String(turn.key);
  for (let key = next("> ?3", last); key !== undefined; key = next("> ?3", key)) {
    yield key;
  }
  const again = "> ?3 AND key <= ?4";
  for (let key = next("<= ?3", last); key !== undefined; key = next(again, key, last)) {
    yield key;
  }
}

/** How many more tasks of a key may run. */
function roomOf(db: SqliteDatabase, { concurrency, ...of }: Picking, key: string): number {
  if (concurrency === undefined) {
    return Number.POSITIVE_INFINITY;
  }
  const row = db.get(
    `SELECT count(*) AS running FROM (
       SELECT 1 FROM tasks INDEXED BY tasks_running_by_key
       WHERE ${OF_ENDPOINT} AND status = ${STATUS.running} AND key = ?3 LIMIT ?4)`,
    of.deploymentId,
    of.endpoint,
    key,
    concurrency,
  );
  return concurrency - Number(row?.running ?? 0);
}

function taskOfKey(
  db: SqliteDatabase,
  { deploymentId, endpoint, nowMs }: Picking,
  { key, nth }: { readonly key: string; readonly nth: number },
): SqliteRow | undefined {
  return db.get(
    `SELECT ${TO_CLAIM}, key FROM ${READY_BY_KEY} = ?4
       AND suspect = 0 AND ${CAN_START}
     ORDER BY priority DESC, run_at_ms, task_id LIMIT 1 OFFSET ?5`,
    deploymentId,
    endpoint,
    nowMs,
    key,
    nth,
  );
}

/** The suspects to claim, as all others in the order of the queue, but within the room of their keys. */
export function pickSuspectsByKey(db: SqliteDatabase, picking: Picking): SqliteRow[] {
  const { deploymentId, endpoint, nowMs, limit } = picking;
  const rows = db.all(
    `SELECT ${TO_CLAIM}, key FROM tasks INDEXED BY tasks_suspect
     WHERE suspect = 1 AND ${OF_ENDPOINT} AND status = ${STATUS.ready} AND ${CAN_START}
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_SUSPECTS_LOOKED_AT}`,
    deploymentId,
    endpoint,
    nowMs,
  );
  const rooms = new Map<string, number>();
  const picked: SqliteRow[] = [];
  for (const row of rows) {
    const key = String(row.key ?? "");
    const room = rooms.get(key) ?? roomOf(db, picking, key);
    if (room > 0 && picked.length < limit) {
      picked.push(row);
      giveKey(db, deploymentId, String(row.task_id));
    }
    rooms.set(key, room - 1);
  }
  return picked;
}

/** Gives those of the first tasks of a queue that have no key the empty one. */
export function giveKeys(db: SqliteDatabase, deploymentId: string, endpoint: string): void {
  const rows = db.all(
    `SELECT task_id FROM (
       SELECT task_id, key FROM tasks INDEXED BY tasks_ready
       WHERE ${OF_ENDPOINT} AND status = ${STATUS.ready}
       ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_UNKEYED_LOOKED_AT})
     WHERE key IS NULL`,
    deploymentId,
    endpoint,
  );
  for (const row of rows) {
    giveKey(db, deploymentId, String(row.task_id));
  }
}

function giveKey(db: SqliteDatabase, deploymentId: string, taskId: string): void {
  db.run(
    "UPDATE tasks SET key = '' WHERE deployment_id = ? AND task_id = ? AND key IS NULL",
    deploymentId,
    taskId,
  );
}
