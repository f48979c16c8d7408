/**
 * Claims of endpoints whose keys take turns by the seconds that their tasks run (start-time fair
 * queuing): the next task is of the key that has had the least.
 *
 * What a key has had is the time of its attempts that have ended (`key_times`), and of those that run,
 * so far. An end adds its attempt to `key_runs`, and the next claim counts it. For each task that has
 * just started, a key counts what its last ones took on average: otherwise one with long tasks would
 * take all the slots that are free at the same time.
 *
 * `key_turns.time_ms` is what the least served had of the keys that could start. Nobody has had less: a
 * key that is new begins with it, and so does one that was away, or could not start for its limits. So
 * it waits for no others to catch up, and has nothing saved.
 */
import type { Task } from "../../tasks/task.ts";
import { KEY_TIME_MS, MAX_KEYS_COMPARED, MAX_RUNS_KNOWN } from "../claims-by-key.ts";
import type { SqliteDatabase } from "./database.ts";
import {
  type KeyRoom,
  keepStarts,
  keysInTurn,
  leastOf,
  NamedKeys,
  type Picked,
  type Picking,
  roomOf,
  taskOfKey,
  toLater,
} from "./keys.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";

/** How long some attempts ran, together, and how many these are. */
interface Runs {
  readonly runMs: number;
  readonly runs: number;
}

interface KeyTime extends Runs {
  readonly hadMs: number;
}

/** A key that may start. */
interface Candidate {
  readonly key: string;
  readonly looked: number;
  /** What it has had by tasks that have ended, if it is one that starts. */
  readonly hadMs: number;
  /** What it has had, with those that run. */
  readonly timeMs: number;
  /** What it has had when its next task starts. */
  readonly beginsMs: number;
  /** How long a task of it is taken to run. */
  readonly meanMs: number;
  /** How many may start. */
  readonly room: number;
}

const OF_ENDPOINT = "deployment_id = ?1 AND endpoint = ?2";

/** Tasks of a key that run, and for how long, together. */
interface Running {
  tasks: number;
  soFarMs: number;
}

/**
 * Counts how long an attempt of a task ran that has ended, for a key that is known to go by that.
 * `isTimed` is false where its endpoint is known not to.
 */
export function countRun(
  db: SqliteDatabase,
  { deploymentId, taskId, endpoint, startedAtMs = 0 }: Task,
  { nowMs, isTimed = true }: { readonly nowMs: number; readonly isTimed?: boolean | undefined },
): void {
  if (isTimed && db.timedEndpoints.has(deploymentId, endpoint)) {
    db.run(
      `INSERT INTO key_runs (deployment_id, endpoint, key, run_ms, ended_at_ms)
       SELECT deployment_id, endpoint, key, ?3, ?4 FROM tasks AS ran
       WHERE deployment_id = ?1 AND task_id = ?2 AND key IS NOT NULL AND EXISTS (
         SELECT 1 FROM key_times AS own WHERE own.deployment_id = ran.deployment_id
           AND own.endpoint = ran.endpoint AND own.key = ran.key)`,
      deploymentId,
      taskId,
      ranFor(startedAtMs, nowMs),
      nowMs,
    );
  }
}

/** The tasks to claim, of the keys that have had the least. */
export function pickByTime(db: SqliteDatabase, picking: Picking): Picked {
  const { deploymentId, endpoint, limit } = picking;
  const of = [deploymentId, endpoint] as const;
  const turn = db.get(
    `SELECT key, time_ms, run_ms, runs FROM key_turns WHERE ${OF_ENDPOINT}`,
    ...of,
  );
  const timeMs = Number(turn?.time_ms ?? 0);
  const all = recent(added(toRuns(turn), ...countEnded(db, picking)));
  const running = runningByKey(db, picking);
  const candidates: Candidate[] = [];
  const rooms = new Map<string, KeyRoom>();
  const named = picking.keys && new NamedKeys(db, picking, picking.keys);
  let cut: Parameters<typeof toLater>[0]["cut"];
  for (const one of limit > 0 ? (named ?? keysInTurn(db, picking)) : []) {
    const { key } = one;
    const own = roomOf(db, picking, key);
    const room = leastOf(own);
    rooms.set(key, own);
    if (room > 0 && taskOfKey(db, picking, { key, nth: 0 }) !== undefined) {
      const { hadMs, ...runs } = timeOf(db, picking, key);
      const { tasks, soFarMs } = running.get(key) ?? { tasks: 0, soFarMs: 0 };
      const hasHadMs = Math.max(hadMs, timeMs - soFarMs);
      const meanMs = meanOf(runs) ?? meanOf(all) ?? 0;
      const beginsMs = hasHadMs + Math.max(soFarMs, tasks * meanMs);
      const facts = { hadMs: hasHadMs, timeMs: hasHadMs + soFarMs, beginsMs, meanMs };
      candidates.push({ key, looked: rooms.size, ...facts, room });
    }
    if (!named && rooms.size === MAX_KEYS_COMPARED) {
      cut = one;
      break;
    }
  }
  const rows = leastServed(db, picking, candidates);
  const taken = Map.groupBy(rows, ({ key }) => String(key));
  for (const { key, hadMs } of candidates) {
    if (taken.has(key)) {
      keepTime(db, picking, key, { ...timeOf(db, picking, key), hadMs });
    }
  }
  const next = cut?.key ?? (named ? undefined : rows.at(-1)?.key) ?? turn?.key ?? "";
  db.run(
    `INSERT INTO key_turns (deployment_id, endpoint, key, time_ms, run_ms, runs)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (deployment_id, endpoint) DO UPDATE
       SET key = ?3, time_ms = ?4, run_ms = ?5, runs = ?6`,
    ...of,
    String(next),
    candidates.length > 0 ? Math.min(...candidates.map((one) => one.timeMs)) : timeMs,
    all.runMs,
    all.runs,
  );
  if (!db.timedEndpoints.has(...of)) {
    db.timedEndpoints.forget();
  }
  keepStarts(db, picking, rows);
  let inMs = Number.POSITIVE_INFINITY;
  for (const [key, room] of rooms) {
    const nth = taken.get(key)?.length ?? 0;
    if (room.places > nth && leastOf(room) === nth && taskOfKey(db, picking, { key, nth })) {
      inMs = Math.min(inMs, room.nextInMs);
    }
    if (nth > 0 || leastOf(room) <= 0 || !candidates.some((one) => one.key === key)) {
      named?.looked.add(key);
    }
  }
  const later = { inMs: named?.forgetOver() ?? inMs, cut };
  return { rows, later: rows.length < limit ? toLater(later) : undefined };
}

/** Keys whose suspects start begin to be counted. */
export function beginTimes(
  db: SqliteDatabase,
  { deploymentId, endpoint, nowMs }: Picking,
  rows: readonly SqliteRow[],
): void {
  for (const { key } of rows) {
    db.run(
      `INSERT INTO key_turns (deployment_id, endpoint, key, time_ms) VALUES (?1, ?2, '', 0)
       ON CONFLICT (deployment_id, endpoint) DO UPDATE SET time_ms = coalesce(time_ms, 0)`,
      deploymentId,
      endpoint,
    );
    db.run(
      `INSERT INTO key_times (deployment_id, endpoint, key, had_ms, run_ms, runs, expires_at_ms)
       SELECT ?1, ?2, ?3, time_ms, 0, 0, ?4 FROM key_turns WHERE ${OF_ENDPOINT}
       ON CONFLICT DO NOTHING`,
      deploymentId,
      endpoint,
      String(key ?? ""),
      nowMs + KEY_TIME_MS,
    );
    db.timedEndpoints.forget();
  }
}

/** The tasks of those that have had the least, one after the other. */
function leastServed(
  db: SqliteDatabase,
  picking: Picking,
  candidates: readonly Candidate[],
): SqliteRow[] {
  const rows: SqliteRow[] = [];
  let left = candidates.map((one) => ({ ...one, nth: 0 }));
  while (rows.length < picking.limit && left.length > 0) {
    const next = left.reduce((least, one) => (isBefore(one, least) ? one : least));
    const row = next.nth < next.room ? taskOfKey(db, picking, next) : undefined;
    if (row === undefined) {
      left = left.filter((one) => one !== next);
    } else {
      rows.push(row);
      next.nth += 1;
      next.beginsMs += next.meanMs;
    }
  }
  return rows;
}

type Turn = Pick<Candidate, "beginsMs" | "looked"> & { readonly nth: number };

function isBefore(one: Turn, other: Turn): boolean {
  const order = one.beginsMs - other.beginsMs || one.nth - other.nth || one.looked - other.looked;
  return order < 0;
}

/** Counts the attempts that have ended since the last claim, and returns them. */
function countEnded(db: SqliteDatabase, picking: Picking): readonly Runs[] {
  const of = [picking.deploymentId, picking.endpoint] as const;
  const rows = db.all(
    `SELECT key, sum(run_ms) AS run_ms, count(*) AS runs FROM key_runs
     WHERE ${OF_ENDPOINT} GROUP BY key`,
    ...of,
  );
  if (rows.length > 0) {
    db.run(`DELETE FROM key_runs WHERE ${OF_ENDPOINT}`, ...of);
  }
  return rows.map((row) => {
    const [key, runs] = [String(row.key), toRuns(row)];
    const { hadMs, ...before } = timeOf(db, picking, key);
    keepTime(db, picking, key, { hadMs: hadMs + runs.runMs, ...recent(added(before, runs)) });
    return runs;
  });
}

/** The tasks of each key that run, and for how long, together. */
function runningByKey(db: SqliteDatabase, { deploymentId, endpoint, nowMs }: Picking) {
  const running = new Map<string, Running>();
  const rows = db.all(
    `SELECT key, started_at_ms FROM tasks INDEXED BY tasks_running_by_key
     WHERE ${OF_ENDPOINT} AND status = ${STATUS.running} AND key IS NOT NULL`,
    deploymentId,
    endpoint,
  );
  for (const row of rows) {
    const key = String(row.key);
    const { tasks, soFarMs } = running.get(key) ?? { tasks: 0, soFarMs: 0 };
    const ranMs = ranFor(Number(row.started_at_ms), nowMs);
    running.set(key, { tasks: tasks + 1, soFarMs: soFarMs + ranMs });
  }
  return running;
}

function timeOf(db: SqliteDatabase, { deploymentId, endpoint }: Picking, key: string): KeyTime {
  const row = db.get(
    `SELECT had_ms, run_ms, runs FROM key_times WHERE ${OF_ENDPOINT} AND key = ?3`,
    deploymentId,
    endpoint,
    key,
  );
  return { hadMs: Number(row?.had_ms ?? 0), ...toRuns(row) };
}

function keepTime(
  db: SqliteDatabase,
  { deploymentId, endpoint, nowMs }: Picking,
  key: string,
  { hadMs, runMs, runs }: KeyTime,
): void {
  db.run(
    `INSERT OR REPLACE INTO key_times
       (deployment_id, endpoint, key, had_ms, run_ms, runs, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    deploymentId,
    endpoint,
    key,
    hadMs,
    runMs,
    runs,
    nowMs + KEY_TIME_MS,
  );
}

function toRuns(row: SqliteRow | undefined): Runs {
  return { runMs: Number(row?.run_ms ?? 0), runs: Number(row?.runs ?? 0) };
}

function added(...each: readonly Runs[]): Runs {
  return each.reduce(
    (sum, { runMs, runs }) => ({ runMs: sum.runMs + runMs, runs: sum.runs + runs }),
    { runMs: 0, runs: 0 },
  );
}

/** Forgets the older half of many runs. */
function recent({ runMs, runs }: Runs): Runs {
  return runs > MAX_RUNS_KNOWN
    ? { runMs: Math.floor(runMs / 2), runs: Math.floor(runs / 2) }
    : { runMs, runs };
}

function meanOf({ runMs, runs }: Runs): number | undefined {
  return runs > 0 ? Math.floor(runMs / runs) : undefined;
}

function ranFor(fromMs: number, toMs: number): number {
  return Math.min(Math.max(toMs - fromMs, 0), KEY_TIME_MS);
}
