/**
 * The SQLite adapter of the storage port, off the event loop: a thread owns the
 * connection (`thread.ts`), and calls reach it in batches (`batch.ts`).
 *
 * When the thread dies (out of memory, or its file was deleted), pending calls
 * fail and a new thread starts as soon as the file can be opened again. An
 * in-memory database dies with its thread and ends the process, which could
 * only go on without its tasks.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { takeLock } from "../lock-file.ts";
import type { Migrated, MigrationMode } from "../migration.ts";
import { createPrivately } from "../private-file.ts";
import { ACCOUNT_OPERATIONS } from "../sql/accounts/operations.ts";
import { HOSTING_OPERATIONS } from "../sql/hosting/operations.ts";
import { METRICS_OPERATIONS } from "../sql/metrics/operations.ts";
import { portOver } from "../sql/operation.ts";
import type { OperationObserver, Storage } from "../storage.ts";
import { OperationBatcher } from "./batch.ts";
import { damaged } from "./integrity.ts";
import type { SqliteMigrationOptions } from "./migration/migrate.ts";
import type { OperationName, OperationParameters, OperationResult } from "./operations.ts";
import { unmarkFile } from "./serving-mark.ts";
import type { CloseMessage, FirstMessage, Opened, ThreadMessage, ThreadOptions } from "./thread.ts";

/**
 * Young generation of the storing thread, for what it makes and drops with each batch. Without
 * a limit that grows to six times as much in the first half million tasks, and is no faster.
 */
const THREAD_YOUNG_GENERATION_MIB = 24;

/** Pause before a storing thread that has ended is replaced. */
const THREAD_RESTART_PAUSE_MS = 500;

/** What is wrong with a file whose log was lost, and what to do. */
const LOST_LOG =
  "the database was not closed, and the write-ahead log that belongs to it (its name with -wal at the end) is not there: what was committed last is missing. Files of a running platform cannot be copied one by one; stop it, and restore a backup (tessera admin restore) or put the log back";

export interface SqliteOptions {
  /**
   * Whether this process runs the queue; only one process may. Default true.
   * With false, accounts can be changed while another process runs the queue.
   */
  readonly ownsQueue?: boolean;
  /** What to do about a schema of an earlier version. Default `auto`. */
  readonly migration?: MigrationMode;
  /** Whether a copy is made beside the file before it is migrated. Default true. */
  readonly copies?: boolean;
  /** Called by `start` when it has migrated the schema. */
  readonly onMigrated?: (migrated: Migrated) => void;
}

export class SqliteStorage implements Storage {
  readonly capabilities;
  #warnings: readonly string[] = [];
  readonly #path: string;
  readonly #ownsQueue: boolean;
  readonly #migration: SqliteMigrationOptions;
  readonly #onMigrated: SqliteOptions["onMigrated"];
  /** Resolves when the thread has ended. */
  #ended: Promise<void> | undefined;
  #restarting: Promise<void> | undefined;
  readonly #batches = new OperationBatcher();
  readonly #closing = new AbortController();
  #releaseLock: (() => void) | undefined;
  readonly #unmark = () => unmarkFile(this.#path);

  /** `path` is a file, or `:memory:`. */
  constructor(path: string, options: SqliteOptions = {}) {
    const { ownsQueue = true, migration: mode = "auto", copies = true, onMigrated } = options;
    const durable = path !== ":memory:";
    this.#path = durable ? resolve(path) : path;
    this.#ownsQueue = ownsQueue;
    // One in memory is always new.
    this.#migration = durable
      ? { mode, ...(copies && { copyBeside: this.#path }) }
      : { mode: "auto" };
    this.#onMigrated = onMigrated;
    this.capabilities = { shared: false, durable };
  }

  async start(): Promise<void> {
    if (this.capabilities.durable) {
      const lockable = lockableFile(this.#path);
      this.#releaseLock = this.#ownsQueue ? lockDatabase(lockable) : undefined;
      createPrivately(lockable);
    }
    try {
      const migrated = await this.#open({ mustExist: false, serves: this.#serves });
      if (migrated !== undefined) {
        this.#onMigrated?.(migrated);
      }
    } catch (err) {
      await this[Symbol.asyncDispose]();
      const message = err instanceof Error ? err.message : String(err);
      const reason = message.includes("not a database")
        ? "it is a file of another kind; use another path"
        : message.includes("is malformed")
          ? damaged(message)
          : message;
      throw new Error(`cannot open the database ${this.#path}: ${reason}`, { cause: err });
    }
    if (this.#serves) {
      process.once("exit", this.#unmark);
    }
  }

  get warnings(): readonly string[] {
    return this.#warnings;
  }

  observe(observer: OperationObserver): void {
    this.#batches.observer = observer;
  }

  submitTasks = this.#operation("submitTasks");
  fireSchedule = this.#operation("fireSchedule");
  getTask = this.#operation("getTask");
  getArguments = this.#operation("getArguments");
  getResult = this.#operation("getResult");
  getHistory = this.#operation("getHistory");
  claimTasks = this.#operation("claimTasks");
  endAttempts = this.#operation("endAttempts");
  recordEvents = this.#operation("recordEvents");
  appendPieces = this.#operation("appendPieces");
  readPieces = this.#operation("readPieces");
  listAttempts = this.#operation("listAttempts");
  cancelTask = this.#operation("cancelTask");
  deleteTasks = this.#operation("deleteTasks");
  updateTask = this.#operation("updateTask");
  findDeleted = this.#operation("findDeleted");
  requestAbort = this.#operation("requestAbort");
  listAborts = this.#operation("listAborts");
  expireTasks = this.#operation("expireTasks");
  openLease = this.#operation("openLease");
  adoptLease = this.#operation("adoptLease");
  renewLeases = this.#operation("renewLeases");
  survey = this.#operation("survey");
  closeLease = this.#operation("closeLease");
  rescueExpired = this.#operation("rescueExpired");
  beginEpoch = this.#operation("beginEpoch");
  pruneFinished = this.#operation("pruneFinished");
  pruneDeleted = this.#operation("pruneDeleted");
  registerBlobs = this.#operation("registerBlobs");
  releaseBlobs = this.#operation("releaseBlobs");
  takeDeadBlobs = this.#operation("takeDeadBlobs");
  forgetBlobs = this.#operation("forgetBlobs");
  findBlobs = () => this.#operation("findBlobs")(undefined);
  listTasks = this.#operation("listTasks");
  searchTasks = this.#operation("searchTasks");
  countStates = this.#operation("countStates");
  queuePosition = this.#operation("queuePosition");
  countTasks = this.#operation("countTasks");
  countDue = this.#operation("countDue");
  oldestWaiting = this.#operation("oldestWaiting");
  queueStates = this.#operation("queueStates");
  describeDatabase = () => this.#operation("describeDatabase")(undefined);
  nextRunAt = this.#operation("nextRunAt");

  readonly accounts = portOver(ACCOUNT_OPERATIONS, (name) =>
    this.#operation(name, `accounts.${name}`),
  );
  readonly hosting = portOver(HOSTING_OPERATIONS, (name) =>
    this.#operation(name, `hosting.${name}`),
  );
  readonly metrics = portOver(METRICS_OPERATIONS, (name) => this.#unobserved(name));

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#restarting;
    process.off("exit", this.#unmark);
    // Beside a database that nobody serves, this is the process that puts its log into the file.
    this.#releaseLock ??= this.#lockIfUnserved();
    const message: CloseMessage = this.#releaseLock ? "close unserved" : "close";
    this.#batches.thread?.postMessage(message);
    this.#batches.thread = undefined;
    await this.#ended;
    this.#releaseLock?.();
    this.#releaseLock = undefined;
  }

  get #serves(): boolean {
    return this.#ownsQueue && this.capabilities.durable;
  }

  #lockIfUnserved(): (() => void) | undefined {
    try {
      return this.capabilities.durable && this.#batches.thread !== undefined
        ? takeLock(`${realpathSync(this.#path)}-lock`)
        : undefined;
    } catch {
      return undefined;
    }
  }

  /** Starts the thread; rejects with its message when it cannot open the database. */
  async #open(options: Omit<ThreadOptions, "path" | "migration">): Promise<Migrated | undefined> {
    const workerData: ThreadOptions = {
      path: this.#path,
      migration: this.#migration,
      ...options,
    };
    const thread = new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), {
      name: "tessera-storage",
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: THREAD_YOUNG_GENERATION_MIB },
    });
    this.#ended = new Promise((resolve) => thread.once("exit", () => resolve()));
    const { lostLog, migrated } = await new Promise<Opened>((resolve, reject) => {
      thread.once("error", reject);
      thread.once("exit", () => reject(new Error("the storage thread has ended")));
      thread.once("message", (message: FirstMessage) =>
        message.type === "ready" ? resolve(message) : reject(new Error(message.message)),
      );
    });
    this.#warnings = lostLog ? [`${this.#path}: ${LOST_LOG}`] : this.#warnings;
    thread.on("message", (message: ThreadMessage) => {
      if (!("type" in message)) {
        this.#batches.settle(message);
      }
    });
    let cause: unknown = new Error("the storage thread has ended");
    thread.on("error", (err) => {
      cause = err;
    });
    thread.on("exit", () => this.#lose(cause));
    this.#batches.thread = thread;
    return migrated;
  }

  /** Handles the thread's end, which is unexpected unless the storage is closing. */
  #lose(cause: unknown): void {
    this.#batches.lose(cause);
    if (this.#closing.signal.aborted) {
      return;
    }
    if (!this.capabilities.durable) {
      // Uncaught, so it ends the process.
      throw new Error(
        "the database in memory is lost, and every task in it: start the server again, with --database for a queue that survives",
        { cause },
      );
    }
    this.#restarting ??= this.#restart();
  }

  async #restart(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#batches.thread === undefined) {
      try {
        await sleep(THREAD_RESTART_PAUSE_MS, undefined, { signal });
        await this.#open({ mustExist: true, serves: false });
      } catch (err) {
        if (signal.aborted) {
          break;
        }
        this.#batches.lose(err);
      }
    }
    this.#restarting = undefined;
  }

  #operation<Name extends OperationName>(name: Name, observedAs: string = name) {
    return (parameters: OperationParameters<Name>) =>
      this.#batches.call(name, parameters, observedAs) as Promise<OperationResult<Name>>;
  }

  #unobserved<Name extends OperationName>(name: Name) {
    return (parameters: OperationParameters<Name>) =>
      this.#batches.call(name, parameters) as Promise<OperationResult<Name>>;
  }
}

/**
 * Resolves the path of the database file. Throws an Error whose message says
 * what to do when it cannot be a file.
 */
function lockableFile(path: string): string {
  const folder = dirname(path);
  if (!existsSync(folder)) {
    throw new Error(`cannot open the database ${path}: the folder ${folder} does not exist`);
  }
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new Error(`cannot open the database ${path}: it is a folder`);
  }
  return existsSync(path) ? realpathSync(path) : join(realpathSync(folder), basename(path));
}

/**
 * Takes the lock that lets one process at a time serve a database file: a
 * second process would treat the first one's running tasks as abandoned. The
 * lock is a separate file beside the database, which stays open to tools.
 *
 * Returns a function that releases the lock. Throws an Error whose message says
 * what to do.
 */
function lockDatabase(path: string): () => void {
  const refused = (reason: string, cause?: unknown): Error =>
    new Error(`cannot open the database ${path}: ${reason}`, { cause });
  let release: (() => void) | undefined;
  try {
    release = takeLock(`${path}-lock`);
  } catch (err) {
    const message = err instanceof Error ? err.message : String(err);
    throw refused(`${message} (can this user write to its folder?)`, err);
  }
  if (release === undefined) {
    throw refused("another tessera process is using it; stop that one, or use another file");
  }
  return release;
}
