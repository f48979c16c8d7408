/**
 * SQLite behind the storage port, off the event loop.
 *
 * A thread owns the connection (`thread.ts`). On this side every call joins
 * the next batch: while one batch is being committed, all that arrives forms
 * the following one, so the cost of waiting for the disk is shared by as many
 * calls as there are (group commit), without a timer and without a delay when
 * there is only one.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { Worker } from "node:worker_threads";
import { problem } from "../../errors.ts";
import type { Storage } from "../storage.ts";
import { lockDatabase } from "./lock.ts";
import type { OperationName, OperationParameters, OperationResult } from "./operations.ts";
import type { Operation, Outcome, ThreadMessage } from "./thread.ts";

/** Calls that may wait for the database; more are refused rather than kept in memory. */
const MAX_PENDING = 50_000;

/** Calls in one transaction: bounds how long a single one can take. */
const MAX_BATCH = 2_000;

interface Pending extends Operation {
  resolve(value: unknown): void;
  reject(err: unknown): void;
}

export class SqliteStorage implements Storage {
  readonly capabilities;
  readonly #path: string;
  #thread: Worker | undefined;
  /** Resolves when the thread has ended. */
  #ended: Promise<void> | undefined;
  #releaseLock: (() => void) | undefined;
  #waiting: Pending[] = [];
  #underWay: Pending[] = [];
  #scheduled = false;

  /** `path` is a file, or `:memory:`. */
  constructor(path: string) {
    this.#path = path === ":memory:" ? path : resolve(path);
    this.capabilities = { shared: false, durable: path !== ":memory:" };
  }

  async start(): Promise<void> {
    if (this.capabilities.durable) {
      this.#releaseLock = lockFile(this.#path);
    }
    const thread = new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), {
      name: "tessera-storage",
      workerData: { path: this.#path },
    });
    this.#thread = thread;
    this.#ended = new Promise((resolve) => thread.once("exit", () => resolve()));
    try {
      await new Promise<void>((resolve, reject) => {
        thread.once("error", reject);
        thread.once("message", (message: ThreadMessage) =>
          message.type === "refused" ? reject(new Error(message.message)) : resolve(),
        );
      });
    } catch (err) {
      await this[Symbol.asyncDispose]();
      const message = err instanceof Error ? err.message : String(err);
      const reason = message.includes("not a database")
        ? "it is a file of another kind; use another path"
        : message;
      throw new Error(`cannot open the database ${this.#path}: ${reason}`, { cause: err });
    }
    thread.on("message", (message: ThreadMessage) => {
      if (message.type === "outcomes") {
        this.#settle(message.outcomes);
      }
    });
    thread.on("error", (err) => this.#fail(err));
    thread.on("exit", () => this.#fail(new Error("the storage thread has ended")));
  }

  submitTasks = this.#operation("submitTasks");
  getTask = this.#operation("getTask");
  getArguments = this.#operation("getArguments");
  getResult = this.#operation("getResult");
  getHistory = this.#operation("getHistory");
  claimTasks = this.#operation("claimTasks");
  endAttempts = this.#operation("endAttempts");
  recordEvents = this.#operation("recordEvents");
  cancelTask = this.#operation("cancelTask");
  openLease = this.#operation("openLease");
  renewLeases = this.#operation("renewLeases");
  closeLease = this.#operation("closeLease");
  rescueExpired = this.#operation("rescueExpired");
  pruneFinished = this.#operation("pruneFinished");
  countTasks = this.#operation("countTasks");
  nextRunAt = this.#operation("nextRunAt");

  async [Symbol.asyncDispose](): Promise<void> {
    this.#thread?.postMessage("close");
    this.#thread = undefined;
    await this.#ended;
    this.#releaseLock?.();
    this.#releaseLock = undefined;
  }

  #operation<Name extends OperationName>(name: Name) {
    return (parameters: OperationParameters<Name>): Promise<OperationResult<Name>> =>
      new Promise((resolve, reject) => {
        if (this.#thread === undefined || this.#waiting.length >= MAX_PENDING) {
          reject(unavailable(`${this.#waiting.length} calls are waiting for the database`));
          return;
        }
        this.#waiting.push({
          name,
          parameters,
          resolve: resolve as (value: unknown) => void,
          reject,
        });
        this.#schedule();
      });
  }

  /** At the end of the turn, so that calls of one turn share a transaction. */
  #schedule(): void {
    if (!this.#scheduled && this.#underWay.length === 0 && this.#waiting.length > 0) {
      this.#scheduled = true;
      setImmediate(() => this.#send());
    }
  }

  #send(): void {
    this.#scheduled = false;
    this.#underWay = this.#waiting.splice(0, MAX_BATCH);
    this.#thread?.postMessage(
      this.#underWay.map(({ name, parameters }): Operation => ({ name, parameters })),
    );
  }

  #settle(outcomes: readonly Outcome[]): void {
    const settled = this.#underWay;
    this.#underWay = [];
    if (this.#waiting.length > 0) {
      this.#send();
    }
    for (const [index, outcome] of outcomes.entries()) {
      const pending = settled[index];
      if ("error" in outcome) {
        const { error, temporary } = outcome;
        pending?.reject(temporary ? unavailable(error) : new Error(`${pending.name}: ${error}`));
      } else {
        pending?.resolve(outcome.value);
      }
    }
  }

  #fail(cause: unknown): void {
    const pending = [...this.#underWay, ...this.#waiting];
    this.#underWay = [];
    this.#waiting = [];
    this.#thread = undefined;
    for (const { reject } of pending) {
      reject(unavailable(cause));
    }
  }
}

function unavailable(cause: unknown): Error {
  const message =
    "the database does not answer; the call was not carried out or its outcome is unknown, try again";
  return problem("STORAGE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

function lockFile(path: string): () => void {
  const folder = dirname(path);
  if (!existsSync(folder)) {
    throw new Error(`cannot open the database ${path}: the folder ${folder} does not exist`);
  }
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw new Error(`cannot open the database ${path}: it is a folder`);
  }
  return lockDatabase(
    existsSync(path) ? realpathSync(path) : join(realpathSync(folder), basename(path)),
  );
}
