/**
 * The port of tracing: what happens to calls and tasks, in the words of the
 * domain. An adapter makes spans of it. Where tracing is off there is none:
 * whoever has something to tell looks whether it was handed one, and that is
 * all that tracing costs then.
 *
 * A trace of a task: `submit` below the caller's span, and below `submit` a
 * `wait` and an `attempt` for each time that it was tried, on whichever node.
 * Of an api call: `call` below the caller's, and below it the `attempt`, with
 * a `wait` before where it waited for a worker. Traces are texts as
 * `context.ts` describes them. No argument, result, token or message of an
 * error is ever told.
 */
import type { Protocol } from "../metrics/deployment.ts";

export interface Tracing extends AsyncDisposable {
  /** Where a deployment tells; `name`, as `organization/name`, is asked when it does. */
  of(name: () => string): DeploymentTracing;
}

export interface DeploymentTracing {
  /** A call that is answered in the call has come. */
  callBegan(call: TracedCall): OpenSpan;
  /** A task is about to be stored. */
  submitBegan(submit: TracedSubmit): OpenSpan;
  /** A task or a call has got a worker, after a wait. */
  waited(wait: TracedWait): void;
  /** It runs in the worker. */
  attemptBegan(attempt: TracedAttempt): OpenSpan;
}

/** Something that is under way. */
export interface OpenSpan {
  /** For what happens below it. */
  readonly trace: string;
  /** To be called once. */
  end(end: SpanEnd): void;
}

export interface SpanEnd {
  /** In a word of a small set: `ok`, `stored`, `replayed`, `refused`, or how the attempt ended. */
  readonly outcome: string;
  /** Why not well, in a word of Connect's codes or of the reasons of tasks. */
  readonly error?: string | undefined;
  /** The task, where it turned out to be another. */
  readonly taskId?: string;
}

/** What happens at an endpoint, below a trace where there is one. */
export interface TracedWork {
  readonly endpoint: string;
  readonly parent: string | undefined;
}

export interface TracedCall extends TracedWork {
  readonly protocol: Protocol;
  /** The RPC's full name, such as `tessera.v1.EndpointService/CallEndpoint`. */
  readonly method: string;
  /** When it came; in milliseconds since 1970, as all times here. */
  readonly atMs: number;
  readonly requestId: string;
}

export interface TracedSubmit extends TracedWork {
  readonly taskId: string;
  /** The task that it tries again, with the trace of that one. */
  readonly retryOf?: string | undefined;
  readonly retriedTrace?: string | undefined;
  readonly requestId?: string | undefined;
}

export interface TracedAttempt extends TracedWork {
  readonly kind: "api" | "task";
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
}

export interface TracedWait extends TracedAttempt {
  readonly fromMs: number;
  readonly toMs: number;
}
