/** The context that an endpoint function gets as its second parameter. */
import type { MetricDeclarations, MetricsOf, NoMetrics } from "./metrics.ts";

/** Fields of a log line: any JSON values. */
export type LogFields = { readonly [field: string]: unknown };

/**
 * Writes lines to the task's event log and to the log of the node. A worker may
 * write 100 lines a second; of a call that writes faster, the last lines follow at
 * its end, and lines before them are left out. A message is cut at 8,192
 * characters; fields with more JSON text than that are dropped.
 */
export interface TaskLog {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** The request that a call came with. Over gRPC and Connect it is that of the RPC. */
export interface CallRequest {
  readonly method: string;
  readonly url: URL;
  /**
   * Those that the option `headers` names. The token, the cookies and whatever else the caller
   * was known by to the platform are not among them.
   */
  readonly headers: Headers;
  /** The address of the caller, where it is known. */
  readonly client: string | undefined;
}

/**
 * What is said of the answer besides its content. Over gRPC and Connect it has no place. In a
 * function that streams it counts before the first piece.
 */
export interface CallResponse {
  /** From 200 to 599. In a task, 400 and above is a failure. Default: 200. */
  status: number | undefined;
  /**
   * Headers and cookies (`set-cookie`), at most 100 and 16 KiB. What belongs to the connection or
   * to the platform is left out, such as `content-length` and `access-control-allow-origin`.
   */
  readonly headers: Headers;
}

/**
 * The second parameter of every endpoint. It is the same for `api` and `task`, so
 * that turning one into the other changes nothing in the body. It can be
 * destructured: `({ text }, { signal, progress }) => …`.
 *
 * In a service that declares metrics it is a `TaskContext<typeof metrics>`.
 */
export interface TaskContext<Declared extends MetricDeclarations = NoMetrics> {
  /**
   * Aborts when the timeout is reached, the task is cancelled, the caller of an
   * `api` has gone or the server stops. Pass it on to `fetch` and the like. A
   * function that ignores it is killed with its worker after a grace period;
   * beside others, when they have ended, or after `abortGrace`. A
   * result returned after the abort is discarded, because it may be incomplete;
   * only when the server stops is it still kept. A function that streams is
   * left: its iterator returns, and `finally` runs.
   */
  readonly signal: AbortSignal;
  /**
   * Reports the progress of the task. At most one report per 50 ms is sent, and
   * the last one always is. Does nothing in an `api`.
   *
   * @param fraction from 0 to 1; values outside are clamped, NaN is ignored
   * @param message what the task is doing; cut at 1,024 characters
   */
  readonly progress: (fraction: number, message?: string) => void;
  /**
   * Reports what the call used, in units of the service: `usage({ prompt_tokens: 120 })`. It is
   * counted for the caller's token (`tessera usage`), also where the function fails then. Several
   * reports of a call add up, of at most 16 units; an amount is from 0 to 10¹². What cannot be
   * counted is left out, and a line of the log says why.
   */
  readonly usage: (units: { readonly [unit: string]: number }) => void;
  /** The log of the call, see `TaskLog`. Lines logged after the call has ended are dropped. */
  readonly log: TaskLog;
  /**
   * The service's own metrics, by the names of their declarations. When a caller
   * has its answer, the node's `/metrics` includes what the call counted.
   */
  readonly metrics: MetricsOf<Declared>;
  /** The id of the task; for an `api`, of the request. */
  readonly taskId: string;
  /** The number of this attempt, from 1; for an `api` always 1, unless it is `idempotent`. */
  readonly attempt: number;
  /** When the call's timeout is reached and `signal` aborts. */
  readonly deadline: Date;
  /**
   * The trace context of this call (https://www.w3.org/TR/trace-context/). Send it
   * as the header `traceparent` of outgoing requests, and they join the same trace,
   * below this attempt. It names the attempt's own span where the platform traces,
   * otherwise the caller's; undefined where there is no trace.
   */
  readonly traceparent: string | undefined;
  /** The header `tracestate` that belongs to `traceparent`; undefined without one. */
  readonly tracestate: string | undefined;
  /**
   * The request, for an endpoint with the option `headers`; throws for any other. With a task it
   * is stored: a retry sees the same one.
   */
  readonly request: CallRequest;
  /** What is said of the answer: status, headers, cookies. With a task it is stored. */
  readonly response: CallResponse;
}

/**
 * The second parameter of an endpoint with `batch`. Progress, log lines and metrics of one of
 * its calls are those of `item(index)`, where the index is that of its arguments.
 */
export interface BatchContext<Declared extends MetricDeclarations = NoMetrics> {
  /** Aborts when nobody waits for any of the results any more. */
  readonly signal: AbortSignal;
  /** The number of calls. */
  readonly size: number;
  /** The context of one of the calls. Throws a `RangeError` for an index that there is not. */
  item(index: number): TaskContext<Declared>;
  /** The service's own metrics, counted for this endpoint. */
  readonly metrics: MetricsOf<Declared>;
}

/** The parameter of `setup()`: a method of a service class, or `service({ setup })`. */
export interface SetupContext<Declared extends MetricDeclarations = NoMetrics> {
  /** As in a call, but counted for no endpoint. */
  readonly metrics: MetricsOf<Declared>;
}
