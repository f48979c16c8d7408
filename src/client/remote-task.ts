/** A task on the server, known here by its id. */
import type { CallOptions, Connection, Sending } from "./connection.ts";
import { millisecondsOf, type TimeSpan } from "./duration.ts";
import {
  TaskExpiredError,
  TaskFinishedError,
  TaskNotFinishedError,
  TaskNotFoundError,
  TimeoutError,
} from "./errors.ts";
import { newKey } from "./idempotency-key.ts";
import { type OpenResult, openResult, type ResultForm, readJson, readResult } from "./result.ts";
import { hasEnded, type Progress, readState, type TaskLogEvent, type TaskState } from "./state.ts";
import { type WatchOptions, watchTask } from "./watch.ts";

/** Where an endpoint's tasks are. */
export interface TaskPlace {
  readonly connection: Connection;
  readonly endpoint: string;
  /** `/summarize_batch` */
  readonly path: string;
  readonly form: ResultForm | undefined;
}

export interface StatusOptions extends CallOptions {
  /** Answers at the next change of the task, or after so long, at most 60 s. Default: at once. */
  readonly wait?: TimeSpan;
}

export interface WaitOptions {
  readonly signal?: AbortSignal;
  /** Default: until the task has ended, however long that takes. */
  readonly timeout?: TimeSpan;
  /** Called with each progress that is new. */
  readonly onProgress?: (progress: Progress, state: TaskState) => void;
}

export interface CancelOptions extends CallOptions {
  /** Also stops a task that runs already. Default: false. */
  readonly abort?: boolean;
}

export interface RetryOptions extends CallOptions {
  /**
   * The same key gives the task that was made first. Default: a key of its own
   * for each retry, so that one whose connection breaks can be sent again.
   */
  readonly idempotencyKey?: string;
}

/** One request waits so long, and the next goes on. */
const POLL_MS = 30_000;
/** Shorter, because a progress between two requests is told by the later one's end. */
const PROGRESS_POLL_MS = 5_000;
/** For an answer to come beyond the wait that was asked for, repetitions included. */
const MARGIN_MS = 60_000;

/** Makes the next request of a wait; throws when there is no time left. */
type NextPoll = (pollMs: number) => Sending & { readonly wait: number };

export class RemoteTask<Result = unknown> {
  readonly id: string;
  readonly endpoint: string;
  readonly #place: TaskPlace;
  /** It is certain that the task has existed. */
  #known: boolean;

  /** By `submit` and `task` of an endpoint. */
  constructor(place: TaskPlace, id: string, { known }: { readonly known: boolean }) {
    this.id = id;
    this.endpoint = place.endpoint;
    this.#place = place;
    this.#known = known;
  }

  /** Where it stands: `.value` is the status, beside times, progress and failure. */
  async getStatus({ wait, ...options }: StatusOptions = {}): Promise<TaskState> {
    const waiting = wait === undefined ? {} : { wait: millisecondsOf("wait", wait) };
    const json = await this.#send("status", { ...options, ...waiting, repeatable: true }, readJson);
    return readState(json);
  }

  /**
   * What the function returned. Rejects with a `TaskNotFinishedError` before
   * the end, a `CallFailedError` with the function's own message, a
   * `TaskCancelledError`, or a `TaskExpiredError`.
   */
  async get(options: CallOptions = {}): Promise<Result> {
    return this.#result({ ...options, repeatable: true });
  }

  /** The same, to be read as it arrives. */
  async open(options: CallOptions = {}): Promise<OpenResult> {
    return this.#send("get", { ...options, repeatable: true }, openResult);
  }

  /**
   * Waits for the end and gives the result; rejects as `get` does, and with a
   * `TimeoutError` when the time is over, which leaves the task as it is.
   */
  async wait(options: WaitOptions = {}): Promise<Result> {
    const next = this.#polling(options);
    if (options.onProgress !== undefined) {
      await this.#follow(next, options.onProgress);
    }
    for (;;) {
      try {
        return await this.#inTime(this.#result(next(POLL_MS)));
      } catch (err) {
        if (!(err instanceof TaskNotFinishedError)) {
          throw err;
        }
      }
    }
  }

  /** Waits for the end, however it ends, and gives the last state, without the result. */
  async ended(options: WaitOptions = {}): Promise<TaskState> {
    return this.#follow(this.#polling(options), options.onProgress ?? (() => {}));
  }

  /**
   * Cancels it: one that is queued, and with `abort` one that runs. One that is
   * cancelled already stays so. Rejects with a `TaskStartedError` (without
   * `abort`) or a `TaskFinishedError`.
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

  /** Queues a new task with the same arguments. Safe to have broken off: it is sent again, and queued once. */
  async retry({
    idempotencyKey = newKey(),
    ...options
  }: RetryOptions = {}): Promise<RemoteTask<Result>> {
    const headers = { "idempotency-key": idempotencyKey };
    const sending = { ...options, method: "PUT", headers, repeatable: true } as const;
    const json = await this.#send("retry", sending, readJson);
    return new RemoteTask<Result>(this.#place, String(json.task_id), { known: true });
  }

  /** Its log: states, progress and lines, from the beginning until it has ended. */
  async *watch(options: WatchOptions = {}): AsyncGenerator<TaskLogEvent, void, undefined> {
    try {
      yield* watchTask(this.#place.connection, this.#path("events"), options);
    } catch (err) {
      throw this.#explained(err);
    }
  }

  /** Makes the requests of a wait, each shorter than what is left of its time. */
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
        timeout: Math.min(wait + MARGIN_MS, leftMs + 1_000),
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
    { wait = 0, abort = false, ...sending }: Sending & { wait?: number; abort?: boolean },
    read: (response: Response) => Promise<T> | T,
  ): Promise<T> {
    try {
      const answer = await this.#place.connection.send(
        this.#path(verb, { wait, abort }),
        sending,
        read,
      );
      this.#known = true;
      return answer;
    } catch (err) {
      throw this.#explained(err);
    }
  }

  #path(verb: string, { wait = 0, abort = false } = {}): string {
    const waiting = wait > 0 ? `&wait=${(Math.min(wait, 60_000) / 1000).toFixed(3)}` : "";
    return `${this.#place.path}/${verb}?task_id=${encodeURIComponent(this.id)}${waiting}${abort ? "&abort=true" : ""}`;
  }

  /** A task that was there, and is not any more, has expired. */
  #explained(err: unknown): unknown {
    if (!this.#known || !(err instanceof TaskNotFoundError)) {
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
