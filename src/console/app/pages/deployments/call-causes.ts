/** Failed calls by why they failed: the code of their error, and their endpoint. */
import type { DeploymentTaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";

/** What explains a code: the arguments of the endpoint, who may call, the log, or the load over time. */
export type Explained = "arguments" | "tokens" | "log" | "metrics";

/** The codes of errors in plain words, and what explains them. */
const CODES: Readonly<Record<string, readonly [text: string, explained: Explained]>> = {
  invalid_argument: ["invalid arguments", "arguments"],
  out_of_range: ["arguments out of range", "arguments"],
  not_found: ["not found", "arguments"],
  unimplemented: ["no such function", "arguments"],
  unauthenticated: ["no valid API token", "tokens"],
  permission_denied: ["an API token without access", "tokens"],
  resource_exhausted: ["a limit was reached", "metrics"],
  deadline_exceeded: ["too slow: the time was up", "metrics"],
  canceled: ["the caller went away", "metrics"],
  unavailable: ["the service was not available", "log"],
  internal: ["the function failed", "log"],
  unknown: ["the function failed", "log"],
  data_loss: ["data was lost", "log"],
  aborted: ["stopped", "log"],
  already_exists: ["exists already", "log"],
  failed_precondition: ["not possible in this state", "log"],
};

/** The calls of an endpoint that failed with one code. */
export interface CallCause {
  readonly code: string;
  /** The code in plain words. */
  readonly text: string;
  readonly explained: Explained;
  /** Empty for calls of endpoints that do not exist. */
  readonly endpoint: string;
  readonly count: number;
  /** How many calls the endpoint had. */
  readonly calls: number;
}

/** The most frequent cause first. */
export function callCausesOf({
  endpointCalls = [],
}: DeploymentTaskStatsJson): readonly CallCause[] {
  return endpointCalls
    .flatMap(({ endpoint = "", calls = 0, failures = [] }) =>
      failures.map(({ code = "", calls: count = 0 }): CallCause => {
        const [text, explained] = CODES[code] ?? ["another error", "log"];
        // The platform knows no arguments of a mounted server.
        const isRoute = endpoint.startsWith("/");
        const shown = isRoute && explained === "arguments" ? "log" : explained;
        return { code, text, explained: shown, endpoint, count, calls };
      }),
    )
    .toSorted((one, other) => other.count - one.count);
}
