/** What an endpoint is given beside its arguments. */
import type { MetricDeclarations, MetricsOf, NoMetrics } from "./metrics.ts";

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
 *
 * In a service that declares metrics it is a `TaskContext<typeof metrics>`.
 */
export interface TaskContext<Declared extends MetricDeclarations = NoMetrics> {
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
  /**
   * What the service counts itself, by the names of its declarations. When a
   * caller has its answer, what the call counted is in the node's `/metrics`.
   */
  readonly metrics: MetricsOf<Declared>;
  /** The id of the task; for an `api`, of the request. */
  readonly taskId: string;
  /** From 1; higher when the task is tried again. */
  readonly attempt: number;
  /** When `signal` is aborted because the time is up. */
  readonly deadline: Date;
  /**
   * The trace that this call belongs to (https://www.w3.org/TR/trace-context/):
   * set the header `traceparent` to it on requests to others, and they stand in
   * the same trace, below this attempt. It is the attempt's own span where the
   * platform traces, else what the caller sent; undefined where there is no trace.
   */
  readonly traceparent: string | undefined;
  /** The header `tracestate` that goes with `traceparent`; undefined for none. */
  readonly tracestate: string | undefined;
}

/** What `setup()` of a service class is given. */
export interface SetupContext<Declared extends MetricDeclarations = NoMetrics> {
  /** As in a call; what is counted here has no endpoint. */
  readonly metrics: MetricsOf<Declared>;
}
