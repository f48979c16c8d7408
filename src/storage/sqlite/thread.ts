/**
 * The storage thread, which owns the SQLite connection. Each message is a batch
 * of operations that runs as one transaction, with one wait for the disk (group
 * commit).
 */
import { existsSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Migrated } from "../migration.ts";
import { SqliteDatabase } from "./database.ts";
import { OpenedFile } from "./identity.ts";
import { faultOfPages, faultOfSize } from "./integrity.ts";
import type { SqliteMigrationOptions } from "./migration/migrate.ts";
import { OPERATIONS } from "./operations.ts";
import { type OperationCall, type Outcome, packOutcomes, unpackOperations } from "./packing.ts";
import { hasLog, isMarked, mark, unmark } from "./serving-mark.ts";

export interface ThreadOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Refuse to create the file: it existed, and an empty one must not replace it. */
  readonly mustExist: boolean;
  /** Mark the file as served until it is closed; see `serving-mark.ts`. */
  readonly serves: boolean;
  readonly migration: SqliteMigrationOptions;
}

/** Closes the file; `unserved` when no process serves it then. */
export type CloseMessage = "close" | "close unserved";

/** The database is open. */
export interface Opened {
  readonly type: "ready";
  /** The file was copied without its write-ahead log. */
  readonly lostLog: boolean;
  readonly migrated: Migrated | undefined;
}

/** The first message: whether the database could be opened. */
export type FirstMessage = Opened | { readonly type: "refused"; readonly message: string };

export type ThreadMessage =
  | FirstMessage
  /** The outcomes of a batch, as `packOutcomes` writes them. */
  | readonly unknown[];

function apply(db: SqliteDatabase, { name, parameters }: OperationCall): unknown {
  const operation = OPERATIONS[name] as (db: SqliteDatabase, parameters: unknown) => unknown;
  return operation(db, parameters);
}

/**
 * Primary result codes of SQLite (https://sqlite.org/rescode.html) for failures
 * of the environment, not of the statement: BUSY, LOCKED, NOMEM, READONLY,
 * INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL.
 */
const TEMPORARY = new Set([5, 6, 7, 8, 9, 10, 13, 14, 15]);

/** The one for a disk without room. */
const CODES = { full: 13 } as const;

/** The primary result code of SQLite; undefined for an error of another origin. */
function codeOf(err: unknown): number | undefined {
  const code = (err as { readonly errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}

/**
 * When one operation of a batch fails, the batch is rolled back and its
 * operations run one by one, so that the others still succeed. When the
 * transaction itself fails (another program holds the file, the disk is full),
 * all fail at once: each would only wait as long as the first.
 */
function runBatch(db: SqliteDatabase, operations: readonly OperationCall[]): Outcome[] {
  let applying = false;
  try {
    return db.transaction(() => {
      applying = true;
      const outcomes = operations.map((operation) => ({ value: apply(db, operation) }));
      applying = false;
      return outcomes;
    });
  } catch (err) {
    if (applying && operations.length > 1) {
      return operations.flatMap((operation) => runBatch(db, [operation]));
    }
    const error = err instanceof Error ? err.message : String(err);
    const code = codeOf(err);
    const temporary = code !== undefined && TEMPORARY.has(code);
    return operations.map(() => ({ error, temporary, isFull: code === CODES.full }));
  }
}

function main(): void {
  const port = parentPort;
  if (port === null) {
    throw new Error("this file runs as a worker thread of the storage");
  }
  const post = (message: ThreadMessage): void => port.postMessage(message);
  const { path, mustExist, serves, migration } = workerData as ThreadOptions;
  let db: SqliteDatabase;
  let lostLog = false;
  try {
    if (mustExist && !existsSync(path)) {
      throw new Error("the file is gone: put it back, or stop the server");
    }
    const logged = hasLog(path);
    const short = logged ? undefined : faultOfSize(path);
    if (short !== undefined) {
      throw new Error(short);
    }
    db = new SqliteDatabase(path, migration);
    // After a crash, of the process or of the thread before.
    const hasCrashed = mustExist || (serves && logged && isMarked(db));
    const fault = hasCrashed ? faultOfPages(db) : undefined;
    if (fault !== undefined) {
      db.close();
      throw new Error(fault);
    }
    if (serves) {
      lostLog = !logged && isMarked(db);
      mark(db);
    }
  } catch (err) {
    post({ type: "refused", message: err instanceof Error ? err.message : String(err) });
    port.close();
    return;
  }
  const file = path === ":memory:" ? undefined : new OpenedFile(path);
  port.on("message", (message: readonly unknown[] | CloseMessage) => {
    if (message === "close" || message === "close unserved") {
      if (message === "close unserved") {
        unmark(db);
      }
      db.close();
      port.close();
      return;
    }
    const fault = file?.fault;
    if (fault !== undefined) {
      db.close();
      throw new Error(`the file ${path} was ${fault} while it was open`);
    }
    const operations = unpackOperations(message);
    post(packOutcomes(operations, runBatch(db, operations)));
  });
  post({ type: "ready", lostLog, migrated: db.migrated });
}

main();
