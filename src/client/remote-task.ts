/** A client-side handle on a task: state, result, cancel, retry and log by its id. */
import { ANSWER_QUIET_MS, type CallOptions, type Connection, type Sending } from "./connection.ts";
import { millisecondsOf, type TimeSpan } from "./duration.ts";
import {
  TaskExpiredError,
  TaskFinishedError,
  TaskNotFinishedError,
  TaskNotFoundError,
  TimeoutError,
} from "./errors.ts";
import { newKey, replaysAlways } from "./idempotency-key.ts";
import { type OpenResult, openResult, type ResultForm, readJson, readResult } from "./result.ts";
import { hasEnded, type Progress, readState, type TaskLogEvent, type TaskState } from "./state.ts";
import { readArguments, type TaskInput } from "./task-input.ts";
import { readTaskPieces, type TaskStreamOptions } from "./task-pieces.ts";
import { type WatchOptions, watchTask } from "./watch.ts";

/** The endpoint that a task belongs to. */
interface TaskPlace {
  readonly connection: Connection;
  readonly endpoint: string;
  /** The endpoint's path, such as `/summarize_batch`. */
  readonly path: string;
  readonly form: ResultForm | undefined;
}

export interface StatusOptions extends CallOptions {
  /**
   * Long poll: resolves at the task's next change, or after this time, at most
   * 60 s. Default: at once.
   */
  readonly wait?: TimeSpan;
}

export interface WaitOptions {
  readonly signal?: AbortSignal;
  /** How long to wait. Default: until the task has ended, without a limit. */
  readonly timeout?: TimeSpan;
  /** Called with each new progress. */
  readonly onProgress?: (progress: Progress, state: TaskState) => void;
}

export interface CancelOptions extends CallOptions {
  /** Also stops a running task. Default: false. */
  readonly abort?: boolean;
}

/** What the access of a task opens. */
export type TaskReading = "events" | "stream" | "status" | "get";

/** What the requests about a task ask in their query. */
interface TaskQuery {
  readonly wait?: number;
  readonly abort?: boolean;
  readonly file?: number | undefined;
  readonly replays?: boolean;
}

export interface RetryOptions extends CallOptions {
  /**
   * A repeated call with the same key returns the first new task, unless it
   * failed, was cancelled or expired: then it begins another one. Default: a
   * random key for each call, so that a call whose connection breaks can be
   * repeated.
   */
  readonly idempotencyKey?: string;
  /** The key returns its first task however that ended. Default: only for random keys. */
  readonly replay?: "always";
}

/** What of a task that waits is changed; what is left out stays. */
export interface TaskUpdate extends CallOptions {
  /** From -100 to 100; higher starts first. */
  readonly priority?: number;
  /** The earliest start; null: as soon as a worker is free. */
  readonly runAt?: Date | null;
  /** The latest start; null: it waits indefinitely. */
  readonly startBy?: Date | null;
  /** How long it is kept after its end. */
  readonly retention?: TimeSpan;
  /** In place of those that it has; empty: none. */
  readonly tags?: readonly string[];
}

/** How long one request of the client waits for a result; the next goes on. */
const RESULT_POLL_MS = 30_000;
/**
 * How long one request waits where progress is shown too: shorter, because progress between
 * two requests is reported at the end of the later one.
 */
const PROGRESS_POLL_MS = 5_000;
/** The timeout of a request of a wait without one: as long as a timer can wait. */
const ENDLESS_MS = 2 ** 31 - 1;

/** Makes the next request of a wait; throws when there is no time left. */
type NextPoll = (pollMs: number) => Sending & { readonly wait: number };

export class RemoteTask<Result = unknown, Piece = unknown> {
  readonly id: string;
  readonly endpoint: string;
  readonly #place: TaskPlace;
  /** Whether the task is known to have existed. */
  #known: boolean;

  /** Called by `submit` and `task` of an endpoint. */
  constructor(place: TaskPlace, id: string, { known }: { readonly known: boolean }) {
    this.id = id;
    this.endpoint = place.endpoint;
    this.#place = place;
    this.#known = known;
  }

  /** Returns the task's state: status (`value`), times, progress and failure. */
  async getStatus({ wait, ...options }: StatusOptions = {}): Promise<TaskState> {
    const waiting = wait === undefined ? {} : { wait: millisecondsOf("wait", wait) };
    const json = await this.#send("status", { ...options, ...waiting, repeatable: true }, readJson);
    return readState(json);
  }

  /**
   * Returns the task's result. Rejects with a `TaskNotFinishedError` before the
   * end, a `TaskFailedError` with the function's own message, a
   * `TaskCancelledError`, or a `TaskExpiredError`.
   */
  async get(options: CallOptions = {}): Promise<Result> {
    return this.#result({ ...options, repeatable: true });
  }

  /** Returns the result as a stream; rejects as `get` does. */
  async open(options: CallOptions = {}): Promise<OpenResult> {
    return this.#send("get", { ...options, repeatable: true }, openResult);
  }

  /** Returns what the task was submitted with; files are described, and read with `openArguments`. */
  async getArguments(options: CallOptions = {}): Promise<TaskInput> {
    const json = await this.#send("arguments", { ...options, repeatable: true }, readJson);
    return readArguments(json);
  }

  /** Returns the arguments as a stream of JSON or, with `file`, one file of them by its place. */
  async openArguments(
    options: CallOptions & { readonly file?: number | undefined } = {},
  ): Promise<OpenResult> {
    return this.#send("arguments", { ...options, repeatable: true }, openResult);
  }

  /**
   * Waits until the task has ended and returns its result. Rejects as `get`
   * does, and with a `TimeoutError` after `timeout`; the task then goes on.
   */
  async wait(options: WaitOptions = {}): Promise<Result> {
    const next = this.#polling(options);
    if (options.onProgress !== undefined) {
      await this.#follow(next, options.onProgress);
    }
    for (;;) {
      try {
        return await this.#inTime(this.#result(next(RESULT_POLL_MS)));
      } catch (err) {
        if (!(err instanceof TaskNotFinishedError)) {
          throw err;
        }
      }
    }
  }

  /**
   * Waits until the task has ended in any state, and returns that state without
   * the result. Rejects with a `TimeoutError` after `timeout`.
   */
  async ended(options: WaitOptions = {}): Promise<TaskState> {
    return this.#follow(this.#polling(options), options.onProgress ?? (() => {}));
  }

  /**
   * Cancels the task if it is queued, with `abort` also if it is running. Does
   * nothing when it is cancelled already. Rejects with a `TaskStartedError`
   * (without `abort`) or a `TaskFinishedError`.
   */
  async cancel({ abort = false, ...options }: CancelOptions = {}): Promise<void> {
    try {
      const sending = { ...options, method: "POST", repeatable: true, abort } as const;
      await this.#send("cancel", sending, readJson);
    } catch (err) {
      if (!(err instanceof TaskFinishedError) || err.metadata.status !== "cancelled") {
        throw err;
      }
    }
  }

  /**
   * Changes when the task starts, while it waits, how long it is kept, and its tags. Rejects with a
   * `TaskStartedError` or a `TaskFinishedError`.
   */
  async update({
    priority,
    runAt,
    startBy,
    retention,
    tags,
    ...options
  }: TaskUpdate): Promise<void> {
    // In JSON, masks name fields in camel case, as fields may be named too.
    const change = {
      ...(priority !== undefined && { priority }),
      ...(runAt !== undefined && { runAt: runAt?.toISOString() ?? null }),
      ...(startBy !== undefined && { startBy: startBy?.toISOString() ?? null }),
      ...(retention !== undefined && {
        retention: `${millisecondsOf("retention", retention) / 1_000}s`,
      }),
      ...(tags !== undefined && { tags }),
    };
    const { endpoint } = this;
    const body = JSON.stringify({ ...change, endpoint, updateMask: Object.keys(change).join() });
    const headers = { "content-type": "application/json" };
    await this.#amend("", { ...options, method: "PATCH", headers, body: () => body });
  }

  /**
   * Deletes the task with its arguments, its result and all else that is known of it. Does nothing
   * when it was deleted already. Rejects with a `TaskStartedError` for one that runs, which `abort`
   * stops first.
   */
  async delete({ abort = false, ...options }: CancelOptions = {}): Promise<void> {
    const query = new URLSearchParams({ endpoint: this.endpoint, ...(abort && { abort: "true" }) });
    try {
      await this.#amend(`?${query}`, { ...options, method: "DELETE" });
    } catch (err) {
      if (!(err instanceof TaskNotFoundError) || err.metadata.deleted_at === undefined) {
        throw err;
      }
    }
  }

  /**
   * Queues a new task with the same arguments. Repeated when the connection
   * breaks; the idempotency key makes sure that it is queued once.
   */
  async retry(given: RetryOptions = {}): Promise<RemoteTask<Result, Piece>> {
    const { idempotencyKey = newKey(), replay: _, ...options } = given;
    const headers = { "idempotency-key": idempotencyKey };
    const replays = replaysAlways(given);
    const sending = { ...options, method: "PUT", headers, repeatable: true, replays } as const;
    const json = await this.#send("retry", sending, readJson);
    return new RemoteTask<Result, Piece>(this.#place, String(json.task_id), { known: true });
  }

  /**
   * Returns a URL that opens this one task, for reading, for 15 minutes, where no token can be
   * sent: `new EventSource(url)`. Anyone who has it may read the task; it ends with the client's
   * token. It begins as the client's own URL does, or is that of the deployment's own host.
   */
  async accessUrl(of: TaskReading, options: CallOptions = {}): Promise<string> {
    const { url: clientUrl, deployment } = this.#place.connection;
    const sending = { ...options, method: "POST", repeatable: true } as const;
    const { path, url = "" } = await this.#send("access", sending, readJson);
    // A page can name no deployment in a header.
    const isWhole = deployment !== undefined && url !== "";
    const events = isWhole ? String(url) : clientUrl + String(path);
    return events.replace("/events?", `/${of}?`);
  }

  /**
   * Yields the task's log (states, progress and log lines) from the beginning
   * until it has ended.
   */
  async *watch(options: WatchOptions = {}): AsyncGenerator<TaskLogEvent, void, undefined> {
    try {
      yield* watchTask(this.#place.connection, this.#path("events"), options);
    } catch (err) {
      throw this.#explained(err);
    }
  }

  /**
   * Yields the pieces of a streamed result: those that the task has given, then new ones as
   * they come, until it has ended. Each reader gets all of them; leaving the iteration ends
   * nothing. Rejects with a `TaskFailedError` or `TaskCancelledError` after the pieces that
   * there were, and with an `InvalidArgumentsError` if the endpoint does not stream.
   */
  async *stream(options: TaskStreamOptions = {}): AsyncGenerator<Piece, void, undefined> {
    try {
      for await (const piece of readTaskPieces(
        this.#place.connection,
        this.#path("stream"),
        options,
      )) {
        yield piece as Piece;
      }
    } catch (err) {
      throw this.#explained(err);
    }
  }

  /** Returns the next request of a wait, each bounded by the remaining time. */
  #polling({ signal, timeout }: WaitOptions): NextPoll {
    const endMs =
      timeout === undefined
        ? Number.POSITIVE_INFINITY
        : performance.now() + millisecondsOf("timeout", timeout);
    return (pollMs) => {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) {
        throw this.#stillRuns();
      }
      const wait = Math.min(pollMs, leftMs);
      return {
        repeatable: true,
        wait,
        timeout: Math.min(leftMs + 1_000, ENDLESS_MS),
        ...(signal && { signal }),
      };
    };
  }

  async #inTime<T>(request: Promise<T>): Promise<T> {
    try {
      return await request;
    } catch (err) {
      throw err instanceof TimeoutError ? this.#stillRuns() : err;
    }
  }

  async #follow(
    next: NextPoll,
    onProgress: (progress: Progress, state: TaskState) => void,
  ): Promise<TaskState> {
    let told: Progress | undefined;
    for (let pollMs = 0; ; pollMs = PROGRESS_POLL_MS) {
      const state = readState(await this.#inTime(this.#send("status", next(pollMs), readJson)));
      const { progress } = state;
      if (progress && (progress.fraction !== told?.fraction || progress.message !== told.message)) {
        told = progress;
        onProgress(progress, state);
      }
      if (hasEnded(state)) {
        return state;
      }
    }
  }

  async #result(sending: Sending & { wait?: number }): Promise<Result> {
    const read = (response: Response) => readResult(response, this.#place.form);
    return (await this.#send("get", sending, read)) as Result;
  }

  async #send<T>(
    verb: string,
    { wait = 0, abort = false, file, replays = false, ...sending }: Sending & TaskQuery,
    read: (response: Response) => Promise<T> | T,
  ): Promise<T> {
    try {
      const answer = await this.#place.connection.send(
        this.#path(verb, { wait, abort, file, replays }),
        { ...sending, quietMs: wait + ANSWER_QUIET_MS },
        read,
      );
      this.#known = true;
      return answer;
    } catch (err) {
      throw this.#explained(err);
    }
  }

  /** Sends to the address of the task in the platform's API; what is sent may be repeated. */
  async #amend(query: string, sending: Omit<Sending, "repeatable">): Promise<void> {
    const path = `/api/v1/tasks/${encodeURIComponent(this.id)}${query}`;
    try {
      await this.#place.connection.send(path, { ...sending, repeatable: true }, readJson);
    } catch (err) {
      throw this.#explained(err);
    }
  }

  #path(verb: string, { wait = 0, abort = false, file, replays = false }: TaskQuery = {}): string {
    const waiting = wait > 0 ? `&wait=${(Math.min(wait, 60_000) / 1000).toFixed(3)}` : "";
    const which = file === undefined ? "" : `&file=${file}`;
    const flags = `${abort ? "&abort=true" : ""}${replays ? "&replay=always" : ""}`;
    return `${this.#place.path}/${verb}?task_id=${encodeURIComponent(this.id)}${waiting}${which}${flags}`;
  }

  /** Turns "not found" into `TaskExpiredError` for a task that is known to have existed. */
  #explained(err: unknown): unknown {
    const isGone = err instanceof TaskNotFoundError && err.metadata.deleted_at === undefined;
    if (!this.#known || !isGone) {
      return err;
    }
    const { reason = "TASK_NOT_FOUND", code = "not_found", status = 404, metadata } = err;
    return new TaskExpiredError(
      `task ${this.id} was kept until its time was over and is gone, its result with it: fetch results sooner, or have the endpoint keep them longer (retention)`,
      { reason, code, status, metadata, cause: err },
    );
  }

  #stillRuns(): TimeoutError {
    return new TimeoutError(
      `task ${this.id} has not ended in the time that was given: it goes on, so wait for it again, or cancel it`,
      { metadata: { task_id: this.id } },
    );
  }
}
