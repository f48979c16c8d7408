/** Trace spans of submits, waits and attempts. Nothing here runs where tracing is off. */
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { Problem, toProblem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { ExecutionEnd } from "../pool/calls/execution.ts";
import type { AttemptEnd, Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { loggedTrace } from "../tracing/context.ts";
import type { DeploymentTracing, OpenSpan, SpanEnd } from "../tracing/tracing.ts";
import type { Submission, Submitted } from "./submission.ts";

/** Traces a submit; `store` gets the span that the task belongs to. */
export async function tracedSubmit(
  tracing: DeploymentTracing,
  { submission, taskId }: { readonly submission: Submission; readonly taskId: string },
  store: (span: OpenSpan) => Promise<Submitted>,
): Promise<Submitted> {
  const span = submitBegan(tracing, submission, taskId);
  try {
    const submitted = await store(span);
    submitEnded(span, submitted);
    return submitted;
  } catch (thrown) {
    submitFailed(span, thrown);
    throw thrown;
  }
}

/** Traces submits in one transaction; `store` gets one span for each. */
export async function tracedSubmits(
  tracing: DeploymentTracing,
  { submissions, ids }: { submissions: readonly Submission[]; ids: readonly string[] },
  store: (spans: readonly OpenSpan[]) => Promise<(Submitted | Problem)[]>,
): Promise<(Submitted | Problem)[]> {
  const spans = submissions.map((each, at) => submitBegan(tracing, each, ids[at] ?? ""));
  try {
    const outcomes = await store(spans);
    for (const [at, outcome] of outcomes.entries()) {
      if (spans[at]) {
        submitEnded(spans[at], outcome);
      }
    }
    return outcomes;
  } catch (thrown) {
    for (const span of spans) {
      submitFailed(span, thrown);
    }
    throw thrown;
  }
}

function submitBegan(
  tracing: DeploymentTracing,
  { endpoint, options = {} }: Submission,
  taskId: string,
): OpenSpan {
  const { origin, retryOf, retriedTrace } = options;
  return tracing.submitBegan({
    endpoint: endpoint.name,
    taskId,
    retryOf,
    retriedTrace,
    parent: origin?.trace,
    requestId: origin?.requestId,
  });
}

function submitEnded(span: OpenSpan, submitted: Submitted | Problem): void {
  if (submitted instanceof Problem) {
    span.end(refused(submitted));
  } else {
    const { task, replayed } = submitted;
    span.end({ outcome: replayed ? "replayed" : "stored", taskId: task.taskId });
  }
}

/** Ends the span of a submit that threw. The task may have been stored or not. */
function submitFailed(span: OpenSpan, thrown: unknown): void {
  span.end(refused(toProblem(thrown)));
}

function refused({ code }: Problem): SpanEnd {
  return { outcome: "refused", error: codeToString(code) };
}

interface TracedFrom {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}

/** Begins the span of an attempt, and traces how long its task waited. */
export function attemptBegan(
  tracing: DeploymentTracing,
  task: Task,
  { storage, log, now }: TracedFrom,
): OpenSpan {
  const { endpoint, taskId, attempt, trace: parent } = task;
  waited(tracing, task, { storage, nowMs: now() }).catch((err: unknown) => {
    const about = { err, endpoint, taskId, attempt, ...loggedTrace(parent) };
    log.debug(about, "when a task came back to the queue could not be read");
  });
  return tracing.attemptBegan({ endpoint, kind: "task", parent, taskId, attempt });
}

/**
 * Traces how long a claimed task waited, up to now. A task with earlier attempts
 * has waited since its return to the queue: the event before the claim in its
 * event log.
 */
async function waited(
  tracing: DeploymentTracing,
  task: Task,
  { storage, nowMs }: { readonly storage: Storage; readonly nowMs: number },
): Promise<void> {
  const { deploymentId, taskId, endpoint, attempt, trace: parent, runAtMs, lastSequence } = task;
  const wait = { endpoint, kind: "task" as const, taskId, attempt, parent, toMs: nowMs };
  if (attempt === 1) {
    tracing.waited({ ...wait, fromMs: runAtMs });
    return;
  }
  const afterSequence = lastSequence - 2;
  const history = await storage.getHistory({ deploymentId, taskId, afterSequence, limit: 1 });
  const returnedMs = history?.stored[0]?.timeMs ?? nowMs;
  tracing.waited({ ...wait, fromMs: Math.max(returnedMs, runAtMs) });
}

/** How an attempt ended, as a value of the attribute `tessera.outcome`. */
export function attemptEnd(end: ExecutionEnd, recorded: AttemptEnd): SpanEnd {
  const error = errorOf(end);
  if (recorded.status !== "queued") {
    return { outcome: recorded.status, error };
  }
  return { outcome: recorded.failed ? "retried" : "returned", error };
}

/** How the call of an api ended. */
export function callEnd(end: ExecutionEnd): SpanEnd {
  return { outcome: end.kind === "result" ? "success" : "failure", error: errorOf(end) };
}

function errorOf(end: ExecutionEnd): string | undefined {
  switch (end.kind) {
    case "result":
      return undefined;
    case "failure":
      return end.failure.code;
    case "lost":
      return "worker_lost";
    case "cut_off":
    case "displaced":
    case "unavailable":
      return "unavailable";
    case "aborted":
      return end.reason === "timeout" ? "deadline_exceeded" : end.reason;
  }
}
