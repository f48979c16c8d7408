/**
 * The tracing port: events of calls and tasks, from which an adapter makes
 * spans. When tracing is off, no adapter exists; callers check for that, and
 * tracing costs nothing more.
 *
 * The trace of a task: `submit` below the caller's span, and below `submit` a
 * `wait` and an `attempt` for each attempt, on any node. The trace of an api
 * call: `call` below the caller's span, and below it the `attempt`, after a
 * `wait` if it waited for a worker. Traces are texts as `context.ts` describes
 * them. Spans never contain an argument, a result, a token or an error message.
 */
import type { Protocol } from "../metrics/metrics.ts";

export interface Tracing extends AsyncDisposable {
  /**
   * Returns the tracing of one deployment; `name` returns `organization/name`
   * and is called for each span.
   */
  of(name: () => string): DeploymentTracing;
}

export interface DeploymentTracing {
  /** An api call has arrived. */
  callBegan(call: TracedCall): OpenSpan;
  /** A task is about to be stored. */
  submitBegan(submit: TracedSubmit): OpenSpan;
  /** A task or a call has got a worker after waiting. */
  waited(wait: TracedWait): void;
  /** An attempt has started in the worker. */
  attemptBegan(attempt: TracedAttempt): OpenSpan;
}

/** A span that has not ended. */
export interface OpenSpan {
  /** The trace context for its children. */
  readonly trace: string;
  /** Ends the span. Must be called once. */
  end(end: SpanEnd): void;
}

export interface SpanEnd {
  /** One of a few words: `ok`, `stored`, `replayed`, `refused`, or how the attempt ended. */
  readonly outcome: string;
  /** The kind of failure: a code of Connect or a task's failure reason. */
  readonly error?: string | undefined;
  /** The task's id when it differs from the one at the start. */
  readonly taskId?: string;
}

/** Work at an endpoint, with the caller's trace if it has one. */
export interface TracedWork {
  readonly endpoint: string;
  readonly parent: string | undefined;
}

export interface TracedCall extends TracedWork {
  readonly protocol: Protocol;
  /** The RPC's full name, such as `tessera.v1.EndpointService/CallEndpoint`. */
  readonly method: string;
  /** When it arrived, in milliseconds since 1970 like all times here. */
  readonly atMs: number;
  readonly requestId: string;
}

export interface TracedSubmit extends TracedWork {
  readonly taskId: string;
  /** The id of the task that it retries; `retriedTrace` is that task's trace. */
  readonly retryOf?: string | undefined;
  readonly retriedTrace?: string | undefined;
  readonly requestId?: string | undefined;
}

export interface TracedAttempt extends TracedWork {
  readonly kind: "api" | "task";
  readonly taskId: string;
  /** Counted from 1. */
  readonly attempt: number;
}

export interface TracedWait extends TracedAttempt {
  readonly fromMs: number;
  readonly toMs: number;
}
