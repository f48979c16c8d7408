/** The origin of a call: its request and its trace, and what the log says of them. */
import type { HandlerContext } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { Deployment } from "../../deployments/deployment.ts";
import { toProblem } from "../../errors.ts";
import { isTaskId } from "../../tasks/id.ts";
import { loggedTrace, type Origin, readTrace } from "../../tracing/context.ts";
import type { DeploymentTracing } from "../../tracing/tracing.ts";
import { arrivalOf } from "./engine/caller.ts";

type Context = Pick<HandlerContext, "requestHeader" | "values">;

/** The trace and the request id that a call came with. */
export function originOf({ requestHeader, values }: Context): Origin {
  const { requestId, note } = arrivalOf(values);
  const trace = readTrace(requestHeader);
  if (note && trace !== undefined) {
    Object.assign(note, loggedTrace(trace));
  }
  return { trace, requestId };
}

/** Adds a task to the call's line in the access log. */
export function noteTask(
  { values }: Pick<HandlerContext, "values">,
  { taskId, trace }: { readonly taskId: string; readonly trace?: string | undefined },
): void {
  const { note } = arrivalOf(values);
  if (note && isTaskId(taskId)) {
    Object.assign(note, { taskId, ...loggedTrace(trace) });
  }
}

/**
 * Runs a synchronous call in a span of its own. `run` gets the origin of what
 * happens within, below that span.
 */
export function tracedCall<Result>(
  ctx: HandlerContext,
  { tracing }: Pick<Deployment, "tracing">,
  call: TracedCall<Result>,
): Promise<Result> {
  const origin = originOf(ctx);
  return tracing === undefined ? call.run(origin) : inSpan(ctx, tracing, { ...call, origin });
}

interface TracedCall<Result> {
  readonly endpoint: string;
  run(origin: Origin): Promise<Result>;
}

async function inSpan<Result>(
  ctx: HandlerContext,
  tracing: DeploymentTracing,
  { endpoint, origin, run }: TracedCall<Result> & { readonly origin: Origin },
): Promise<Result> {
  const { protocol, atMs, requestId, note } = arrivalOf(ctx.values);
  const span = tracing.callBegan({
    endpoint,
    protocol,
    requestId,
    parent: origin.trace,
    method: `${ctx.service.typeName}/${ctx.method.name}`,
    atMs: Date.now() - (performance.now() - atMs),
  });
  if (note) {
    Object.assign(note, loggedTrace(span.trace));
  }
  try {
    const result = await run({ ...origin, trace: span.trace });
    span.end({ outcome: "ok" });
    return result;
  } catch (thrown) {
    span.end({ outcome: "failure", error: codeToString(toProblem(thrown).code) });
    throw thrown;
  }
}
