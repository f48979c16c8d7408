/**
 * Claims of endpoints that callers share by their keys: who is next, and how much room each key has.
 *
 * What runs is not counted: the tasks of a key that run are its use, and an index has them. So an
 * attempt that ends in whatever way, also with its lease, gives its room back by ending.
 *
 * Where starts have a rate of n in a period, the last ones of each key are kept (`key_starts`): the
 * next one may be when the nth last is longer ago than the period, so that no window has more. They
 * are numbered, so that it is found without counting. An attempt that ends unbegun says so
 * (`key_unbegun`), and the next claim takes its start away.
 */
import type { ByKeyManifest, RateManifest } from "../../protocol/manifest.ts";
import {
  type LaterClaim,
  MAX_KEYS_LOOKED_AT,
  MAX_STARTS_LOOKED_AT,
  MAX_SUSPECTS_LOOKED_AT,
  MAX_UNKEYED_LOOKED_AT,
} from "../claims-by-key.ts";
import type { Attempt, Storage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";

/** What to pick, of which endpoint. */
export interface Picking extends ByKeyManifest {
  /** As of `ClaimByKey`. */
  readonly keys?: readonly string[] | undefined;
  readonly deploymentId: string;
  readonly endpoint: string;
  /** The most tasks to pick. */
  readonly limit: number;
  readonly nowMs: number;
}

/** What is to be claimed. */
export interface Picked {
  readonly rows: readonly SqliteRow[];
  readonly later?: Omit<LaterClaim, "endpoint"> | undefined;
}

/** A key that a claim looks at, and whether the walk had come past the last key before. */
interface TurnOfKey {
  readonly key: string;
  readonly isAround: boolean;
}

/** What more a key may have. */
export interface KeyRoom {
  /** Tasks that run. */
  readonly places: number;
  /** Tasks that start now, as far as they are asked for. */
  readonly starts: number;
  /** After how long it may have one start more than these. */
  readonly nextInMs: number;
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
 * the next one of each. A claim looks at as many keys as it finds tasks, and at a bounded number of
 * those that have none to start.
 */
export function pickByKey(db: SqliteDatabase, picking: Picking): Picked {
  const { limit } = picking;
  const rows: SqliteRow[] = [];
  let left: { readonly key: string; readonly room: KeyRoom }[] = [];
  let inMs = Number.POSITIVE_INFINITY;
  let passed = 0;
  let turn: TurnOfKey | undefined;
  const named = picking.keys && new NamedKeys(db, picking, picking.keys);
  for (const one of named ?? keysInTurn(db, picking)) {
    const { key } = one;
    if (rows.length >= limit || (!named && passed === MAX_KEYS_LOOKED_AT)) {
      break;
    }
    named?.looked.add(key);
    const row = taskOfKey(db, picking, { key, nth: 0 });
    const room = row && roomOf(db, picking, key);
    if (row && room && room.places > 0 && room.starts > 0) {
      rows.push(row);
      left.push({ key, room });
    } else {
      passed += 1;
      inMs = Math.min(inMs, room && room.places > 0 ? room.nextInMs : inMs);
    }
    turn = one;
  }
  const cut = !named && passed === MAX_KEYS_LOOKED_AT ? turn : undefined;
  for (let nth = 1; rows.length < limit && left.length > 0; nth++) {
    left = left.filter(({ key, room }) => {
      const isWanted = nth < room.places && rows.length < limit;
      const row = isWanted ? taskOfKey(db, picking, { key, nth }) : undefined;
      if (row && nth < room.starts) {
        rows.push(row);
        return true;
      }
      inMs = Math.min(inMs, row ? room.nextInMs : inMs);
      return false;
    });
  }
  const last = cut?.key ?? rows.at(-1)?.key;
  if (last !== undefined && !named) {
    db.run(
      `INSERT INTO key_turns (deployment_id, endpoint, key) VALUES (?, ?, ?)
       ON CONFLICT (deployment_id, endpoint) DO UPDATE SET key = excluded.key`,
      picking.deploymentId,
      picking.endpoint,
      String(last),
    );
  }
  keepStarts(db, picking, rows);
  const later = { inMs: named?.forgetOver() ?? inMs, cut };
  return { rows, later: rows.length < limit ? toLater(later) : undefined };
}

/** What there is to say of what comes later. */
export function toLater({
  inMs,
  cut,
}: {
  readonly inMs: number;
  readonly cut: TurnOfKey | undefined;
}): Picked["later"] {
  const isTimed = inMs < Number.POSITIVE_INFINITY;
  return isTimed || cut
    ? { ...(isTimed && { inMs }), ...(cut && { cut: cut.isAround ? "around" : "on" }) }
    : undefined;
}

/**
 * The keys that a claim is to look at, and those of starts that have left the window of their rate, one
 * of each by turns. Which comes first changes by the time: where each claim is for one slot, neither waits
 * for the other to end.
 */
export class NamedKeys {
  readonly #db: SqliteDatabase;
  readonly #picking: Picking;
  readonly #named: readonly string[];
  /** The starts, with their keys. */
  readonly #over: readonly SqliteRow[];
  /** Keys that were looked at: they start all that they may, or have none to start. */
  readonly looked = new Set<string>();

  constructor(db: SqliteDatabase, picking: Picking, named: readonly string[]) {
    this.#db = db;
    this.#picking = picking;
    this.#named = named;
    const { deploymentId, endpoint, rate, limit, nowMs } = picking;
    this.#over =
      rate && limit > 0
        ? db.all(
            `SELECT key, number FROM key_starts INDEXED BY key_starts_over
             WHERE ${OF_ENDPOINT} AND expires_at_ms <= ?3
             ORDER BY expires_at_ms LIMIT ${MAX_STARTS_LOOKED_AT}`,
            deploymentId,
            endpoint,
            nowMs,
          )
        : [];
  }

  *[Symbol.iterator](): Generator<TurnOfKey> {
    const keys = new Set<string>();
    const over = this.#over.map(({ key }) => String(key));
    const inTurn = this.#picking.nowMs % 2 === 0 ? [this.#named, over] : [over, this.#named];
    for (let at = 0; at < Math.max(this.#named.length, over.length); at++) {
      for (const key of inTurn.map((some) => some[at])) {
        if (key !== undefined && !keys.has(key)) {
          keys.add(key);
          yield { key, isAround: false };
        }
      }
    }
  }

  /** Forgets the starts whose keys were looked at; returns after how long the next one is over. */
  forgetOver(): number {
    const { deploymentId, endpoint, rate, nowMs } = this.#picking;
    const of = [deploymentId, endpoint] as const;
    for (const { key, number } of this.#over) {
      if (this.looked.has(String(key))) {
        this.#db.run(
          `DELETE FROM key_starts WHERE ${OF_ENDPOINT} AND key = ?3 AND number = ?4`,
          ...of,
          String(key),
          Number(number),
        );
      }
    }
    const next =
      rate &&
      this.#db.get(
        `SELECT expires_at_ms FROM key_starts INDEXED BY key_starts_over
         WHERE ${OF_ENDPOINT} ORDER BY expires_at_ms LIMIT 1`,
        ...of,
      );
    return next ? Math.max(Number(next.expires_at_ms) - nowMs, 1) : Number.POSITIVE_INFINITY;
  }
}

/** Keys that have tasks waiting, each once, from the one after the last that was claimed on. */
export function* keysInTurn(
  db: SqliteDatabase,
  { deploymentId, endpoint }: Endpoint,
): Generator<TurnOfKey> {
  const next = (condition: string, ...values: string[]): string | undefined => {
    const sql = `SELECT key FROM ${READY_BY_KEY} ${condition} ORDER BY key LIMIT 1`;
    const row = db.get(sql, deploymentId, endpoint, ...values);
    return row === undefined ? undefined : String(row.key);
  };
  const turn = db.get(`SELECT key FROM key_turns WHERE ${OF_ENDPOINT}`, deploymentId, endpoint);
  const last = turn === undefined ? "" : String(turn.key);
  for (let key = next("> ?3", last); key !== undefined; key = next("> ?3", key)) {
    yield { key, isAround: false };
  }
  const again = "> ?3 AND key <= ?4";
  for (let key = next("<= ?3", last); key !== undefined; key = next(again, key, last)) {
    yield { key, isAround: true };
  }
}

export function roomOf(db: SqliteDatabase, picking: Picking, key: string): KeyRoom {
  return { places: placesOf(db, picking, key), ...startsOf(db, picking, key) };
}

function placesOf(db: SqliteDatabase, { concurrency, ...of }: Picking, key: string): number {
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

const STARTS_OF_KEY = `key_starts WHERE ${OF_ENDPOINT} AND key = ?3`;

type Starts = Pick<KeyRoom, "starts" | "nextInMs">;

function startsOf(
  db: SqliteDatabase,
  { deploymentId, endpoint, rate, nowMs, limit }: Picking,
  key: string,
): Starts {
  if (rate === undefined) {
    return { starts: Number.POSITIVE_INFINITY, nextInMs: Number.POSITIVE_INFINITY };
  }
  const { count, periodMs } = rate;
  const of = [deploymentId, endpoint, key] as const;
  const last = lastStart(db, of);
  if (last.startedAtMs > nowMs) {
    // The clock was set back: what has started is not longer ago than now.
    db.run(
      `UPDATE key_starts SET started_at_ms = ?4, expires_at_ms = ?4 + ?5 + 1
       WHERE ${OF_ENDPOINT} AND key = ?3 AND started_at_ms > ?4`,
      ...of,
      nowMs,
      periodMs,
    );
  }
  const over = last.number - count;
  const first = db.get(
    `SELECT number, started_at_ms FROM ${STARTS_OF_KEY} AND number > ?4 AND number <= ?5
       AND started_at_ms >= ?6 ORDER BY number LIMIT 1`,
    ...of,
    over,
    over + limit,
    nowMs - periodMs,
  );
  return {
    starts: first === undefined ? Math.min(count, limit) : Number(first.number) - 1 - over,
    nextInMs: Number(first?.started_at_ms ?? nowMs) + periodMs + 1 - nowMs,
  };
}

/** The last start of a key that is kept; number 0 where none is. */
function lastStart(db: SqliteDatabase, of: readonly [string, string, string]) {
  const row = db.get(
    `SELECT number, started_at_ms FROM ${STARTS_OF_KEY} ORDER BY number DESC LIMIT 1`,
    ...of,
  );
  return { number: Number(row?.number ?? 0), startedAtMs: Number(row?.started_at_ms ?? 0) };
}

/** Notes an attempt that ends before its function begins, where its start is kept. */
export function keepUnbegun(db: SqliteDatabase, { deploymentId, taskId, attempt }: Attempt): void {
  db.run(
    `INSERT INTO key_unbegun
       (deployment_id, endpoint, task_id, attempt, key, started_at_ms, expires_at_ms)
     SELECT own.deployment_id, own.endpoint, own.task_id, own.attempt, own.key, own.started_at_ms,
       kept.expires_at_ms
     FROM tasks AS own JOIN key_starts AS kept ON kept.deployment_id = own.deployment_id
       AND kept.endpoint = own.endpoint AND kept.key = own.key
       AND kept.started_at_ms = own.started_at_ms
     WHERE own.deployment_id = ? AND own.task_id = ? AND own.attempt = ? LIMIT 1
     ON CONFLICT DO NOTHING`,
    deploymentId,
    taskId,
    attempt,
  );
}

/**
 * Takes away the starts of attempts that did not begin. The starts after them move down to their numbers,
 * so that the numbers have no gap: those are few, where a key may have thousands before them.
 */
export function takeUnbegun(db: SqliteDatabase, { deploymentId, endpoint }: Endpoint): void {
  const unbegun = db.all(
    `DELETE FROM key_unbegun WHERE ${OF_ENDPOINT} RETURNING key, started_at_ms`,
    deploymentId,
    endpoint,
  );
  for (const [key, gone] of Map.groupBy(unbegun, (row) => String(row.key))) {
    const of = [deploymentId, endpoint, key] as const;
    const left = gone.map((row) => Number(row.started_at_ms));
    const starts = db.all(
      `SELECT number, started_at_ms, expires_at_ms FROM ${STARTS_OF_KEY} AND started_at_ms >= ?4
       ORDER BY number`,
      ...of,
      left.reduce((least, atMs) => Math.min(least, atMs)),
    );
    const stay = starts.filter(({ started_at_ms: startedAtMs }) => {
      const at = left.indexOf(Number(startedAtMs));
      return at < 0 || left.splice(at, 1).length === 0;
    });
    for (const [at, { number }] of starts.entries()) {
      const next = stay[at];
      const [condition, ...values] = ["AND number = ?4", ...of, Number(number)] as const;
      if (next === undefined) {
        db.run(`DELETE FROM ${STARTS_OF_KEY} ${condition}`, ...values);
      } else if (next.number !== number) {
        db.run(
          `UPDATE key_starts SET started_at_ms = ?5, expires_at_ms = ?6
           WHERE ${OF_ENDPOINT} AND key = ?3 ${condition}`,
          ...values,
          Number(next.started_at_ms),
          Number(next.expires_at_ms),
        );
      }
    }
  }
}

/** Notes that these tasks start, and forgets starts of their keys that no window can hold. */
export function keepStarts(db: SqliteDatabase, picking: Picking, rows: readonly SqliteRow[]): void {
  const { deploymentId, endpoint, rate, nowMs } = picking;
  for (const row of rate ? rows : []) {
    const of = [deploymentId, endpoint, String(row.key ?? "")] as const;
    const { count, periodMs } = rate as RateManifest;
    const number = lastStart(db, of).number + 1;
    db.run(
      "INSERT INTO key_starts VALUES (?1, ?2, ?3, ?4, ?5, ?5 + ?6 + 1)",
      ...of,
      number,
      nowMs,
      periodMs,
    );
    db.run(
      `DELETE FROM ${STARTS_OF_KEY} AND number <= ?4 AND expires_at_ms <= ?5`,
      ...of,
      number - count,
      nowMs,
    );
  }
}

export function taskOfKey(
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
  const rooms = new Map<string, number>();
  const rows: SqliteRow[] = [];
  for (const row of waitingSuspects(db, picking)) {
    const key = String(row.key ?? "");
    const room = rooms.get(key) ?? leastOf(roomOf(db, picking, key));
    if (room > 0 && rows.length < picking.limit) {
      rows.push(row);
      giveKey(db, picking.deploymentId, String(row.task_id));
    }
    rooms.set(key, room - 1);
  }
  keepStarts(db, picking, rows);
  return rows;
}

/** In how many milliseconds the first suspect may start, by the limits of its key. */
export function nextSuspect(
  db: SqliteDatabase,
  { byKey, ...of }: Parameters<Storage["nextSuspect"]>[0],
): number | undefined {
  const picking = { ...of, ...byKey, limit: 1 };
  if (picking.rate) {
    takeUnbegun(db, picking);
  }
  const keys = new Set(waitingSuspects(db, picking).map(({ key }) => String(key ?? "")));
  const times = Array.from(keys, (key) => {
    const room = roomOf(db, picking, key);
    return leastOf(room) > 0 ? 0 : room.places > 0 ? room.nextInMs : Number.POSITIVE_INFINITY;
  });
  return times.length > 0 ? Math.min(...times) : undefined;
}

function waitingSuspects(db: SqliteDatabase, { deploymentId, endpoint, nowMs }: Picking) {
  return db.all(
    `SELECT ${TO_CLAIM}, key FROM tasks INDEXED BY tasks_suspect
     WHERE suspect = 1 AND ${OF_ENDPOINT} AND status = ${STATUS.ready} AND ${CAN_START}
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_SUSPECTS_LOOKED_AT}`,
    deploymentId,
    endpoint,
    nowMs,
  );
}

export function leastOf({ places, starts }: KeyRoom): number {
  return Math.min(places, starts);
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
