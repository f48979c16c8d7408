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
import { DiskFull, unavailable } from "../unavailable.ts";
import { damaged } from "./integrity.ts";
import type { SqliteMigrationOptions } from "./migration/migrate.ts";
import type { OperationName, OperationParameters, OperationResult } from "./operations.ts";
import { type OperationCall, type Outcome, packOperations, unpackOutcomes } from "./packing.ts";
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
  searchKeys = this.#operation("searchKeys");
  countStates = this.#operation("countStates");
  queuePosition = this.#operation("queuePosition");
  countTasks = this.#operation("countTasks");
  countDue = this.#operation("countDue");
  nextSuspect = this.#operation("nextSuspect");
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

// Group commit in front of the storage thread: batches calls and settles them.
//
// While one batch is being committed, all arriving calls form the next one.
// Calls share the wait for the disk, without a timer and without a delay for a
// single call. A batch of a certain size does not wait for the one before: this
// side and the thread then work in parallel rather than in turns, which is
// worth more than the cost of a batch.

/** Calls that may wait for the database; more are refused rather than kept in memory. */
const MAX_PENDING_CALLS = 50_000;

/** Calls in one transaction: bounds how long a single one can take. */
const MAX_BATCH_CALLS = 2_000;

/**
 * Waiting calls that are sent at once: the thread stores them while the rest of the turn is
 * computed.
 */
const MIN_EAGER_BATCH_CALLS = 32;

/**
 * Batches sent to the thread: one that is being stored, and one that the thread can begin with
 * when it has.
 */
const MAX_BATCHES_UNDER_WAY = 2;

interface Call extends OperationCall {
  /** The operation's name for the observer; undefined when it is not reported. */
  readonly observedAs: string | undefined;
  /** The start, by `performance.now()`. */
  readonly begunMs: number;
  resolve(value: unknown): void;
  reject(err: unknown): void;
}

export class OperationBatcher {
  /** The thread that receives batches; without it, calls are refused. */
  thread: Pick<Worker, "postMessage"> | undefined;
  observer: OperationObserver | undefined;
  /** Why the thread is missing. */
  #lostFor: unknown;
  #waiting: Call[] = [];
  /** Sent batches, in the order in which they will be answered. */
  #underWay: Call[][] = [];
  #scheduled = false;

  /** @param observedAs its name for the observer; absent: it is not reported. */
  call(
    name: OperationCall["name"],
    parameters: OperationCall["parameters"],
    observedAs?: string,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = { name, parameters, observedAs, begunMs: performance.now(), resolve, reject };
      if (this.thread === undefined || this.#waiting.length >= MAX_PENDING_CALLS) {
        const waiting = `${this.#waiting.length} calls are waiting for the database`;
        this.#reject(call, unavailable(this.thread ? waiting : this.#lostFor));
        return;
      }
      this.#waiting.push(call);
      this.#schedule();
    });
  }

  /** Settles the oldest sent batch with its outcomes. */
  settle(packed: readonly unknown[]): void {
    const settled = this.#underWay.shift() ?? [];
    if (this.#isDue) {
      this.#send();
    }
    this.#sendIfIdle();
    let outcomes: Outcome[];
    try {
      outcomes = unpackOutcomes(settled, packed);
    } catch (err) {
      outcomes = settled.map(() => ({ error: String(err), temporary: true }));
    }
    const nowMs = performance.now();
    settled.forEach((call, index) => {
      const outcome = outcomes[index] ?? { error: "it has no outcome", temporary: false };
      if ("value" in outcome) {
        call.resolve(outcome.value);
        this.#tell(call, nowMs);
      } else {
        const { error, temporary, isFull = false } = outcome;
        const cause = isFull ? new DiskFull(error) : error;
        this.#reject(call, temporary ? unavailable(cause) : new Error(`${call.name}: ${error}`));
      }
    });
  }

  /** The thread has ended or could not start: rejects all calls. */
  lose(cause: unknown): void {
    this.thread = undefined;
    this.#lostFor = cause;
    const calls = [...this.#underWay.flat(), ...this.#waiting];
    this.#underWay = [];
    this.#waiting = [];
    for (const call of calls) {
      this.#reject(call, unavailable(cause));
    }
  }

  /**
   * Calls of one turn of the event loop share a transaction. They are sent at
   * its end, or earlier when there are many.
   */
  #schedule(): void {
    if (this.#isDue) {
      this.#send();
    } else if (this.#underWay.length === 0 && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.#sendIfIdle();
      });
    }
  }

  /** Whether the waiting calls should be sent while another batch is under way. */
  get #isDue(): boolean {
    return (
      this.#waiting.length >= MIN_EAGER_BATCH_CALLS && this.#underWay.length < MAX_BATCHES_UNDER_WAY
    );
  }

  #sendIfIdle(): void {
    if (this.#underWay.length === 0 && this.#waiting.length > 0) {
      this.#send();
    }
  }

  #send(): void {
    this.#post(this.#waiting.splice(0, MAX_BATCH_CALLS));
  }

  /** Sends a batch. A call that cannot be cloned to the thread fails alone. */
  #post(batch: Call[]): void {
    try {
      this.thread?.postMessage(packOperations(batch));
    } catch (err) {
      const [first] = batch;
      if (first && batch.length === 1) {
        this.#reject(first, err);
      } else {
        for (const one of batch) {
          this.#post([one]);
        }
      }
      return;
    }
    this.#underWay.push(batch);
  }

  #reject(call: Call, err: unknown): void {
    call.reject(err);
    this.#tell(call, performance.now(), err);
  }

  #tell({ observedAs, begunMs }: Call, nowMs: number, err?: unknown): void {
    if (observedAs !== undefined) {
      this.observer?.(observedAs, nowMs - begunMs, err);
    }
  }
}
