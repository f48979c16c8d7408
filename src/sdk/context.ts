/** What an endpoint is given beside its arguments. */

/** Fields of a log line; whatever JSON can carry. */
export type LogFields = { readonly [field: string]: unknown };

/**
 * Lines in the event log of the task, and in the log of the node. A call
 * may write 1,000 lines of 8 KiB each; what goes beyond is dropped, and a last
 * line says so.
 */
export interface TaskLog {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/**
 * The second parameter of every endpoint, the same for `api` and `task`, so
 * that turning one into the other changes nothing in the body. Its members
 * may be taken apart: `({ text }, { signal, progress }) => …`.
 */
export interface TaskContext {
  /**
   * Aborted when the time is up, the task is cancelled, the caller of an `api`
   * has gone or the server stops. Pass it on to `fetch` and the like; a
   * function that ignores it is killed with its worker after a grace. What it
   * returns after the abort is discarded, because it may be half a result.
   */
  readonly signal: AbortSignal;
  /**
   * Says how far the task is. At most one report per 50 ms leaves the worker,
   * and the last one always does. Does nothing in an `api`, which has no one to
   * report to.
   *
   * @param fraction from 0 to 1; values beyond are clamped, NaN is ignored
   * @param message what is being done, up to 1,024 characters
   */
  readonly progress: (fraction: number, message?: string) => void;
  readonly log: TaskLog;
  /** The id of the task; for an `api`, of the request. */
  readonly taskId: string;
  /** From 1; higher when the task is tried again. */
  readonly attempt: number;
  /** When `signal` is aborted because the time is up. */
  readonly deadline: Date;
}
