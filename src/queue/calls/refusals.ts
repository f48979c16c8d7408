/** What callers of apis hear where their call has no result. */
import { Code } from "@connectrpc/connect";
import { problem, shuttingDown } from "../../errors.ts";
import type { ExecutionEnd } from "../../pool/calls/execution.ts";
import type { Pool } from "../../pool/pool.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";

/** An end that is nothing of the function's own. */
type OtherEnd = Exclude<ExecutionEnd, { readonly kind: "result" | "failure" }>;

/** Why a call has no result that ended like this, at the last of so many tries. */
export function problemOf(end: OtherEnd, endpoint: EndpointManifest, tries: number): Error {
  const { name, timeoutMs } = endpoint;
  const times = tries > 1 ? `, at the last of ${tries} tries` : "";
  switch (end.kind) {
    case "lost":
      return problem(
        "WORKER_LOST",
        end.alone
          ? `the worker died while endpoint ${name} ran alone in it${times}: ${end.message}`
          : `the worker died while endpoint ${name} ran in it beside other calls, one of which may have ended it${times}: ${end.message}; try again`,
        { retryAfterMs: 1_000 },
      );
    case "cut_off":
    case "displaced": {
      const message = `the worker was ended while endpoint ${name} ran in it${times}: ${end.message}; try again`;
      return problem("WORKER_LOST", message, { code: Code.Unavailable, retryAfterMs: 1_000 });
    }
    case "unavailable":
      return end.problem;
    case "aborted":
      if (end.reason === "timeout") {
        const message = `endpoint ${name} did not end within its timeout of ${timeoutMs} ms`;
        return problem("CALL_TIMEOUT", message);
      }
      return end.reason === "shutdown" ? shuttingDown() : callerGone();
  }
}

/** What a caller hears of a deployment that finds no room in its node's budget. */
export function forRoom({ waiting }: Pick<Pool, "waiting">): string {
  return waiting === undefined ? "" : ", because the deployment is waiting for room on a node";
}

/** Nothing that the node could start would take the call. */
export function noMatchingWorker({ name }: EndpointManifest, awaited: string): Error {
  const message = `no worker that runs endpoint ${name} is connected to this node; it waits for ${awaited}`;
  return problem("NO_MATCHING_WORKER", message, { retryAfterMs: 5_000 });
}

export function noWorkerStarts(reason: string): Error {
  const message = `no worker of the deployment could be started: ${reason}`;
  return problem("NO_WORKER", message, { retryAfterMs: 5_000 });
}

/** Ends the call. Nobody reads it, because the caller has gone. */
export function callerGone(): Error {
  return problem("CALLER_GONE", "the caller has gone");
}
