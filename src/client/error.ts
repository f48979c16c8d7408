import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";

/** What an error of a call says to programs. */
export interface ErrorFacts {
  /** From `ErrorReason`, without its prefix: `TASK_NOT_FOUND`. Undefined: it is not the server's. */
  readonly reason: string | undefined;
  /** The fields that were refused, and why. */
  readonly violations: readonly { readonly field: string; readonly description: string }[];
  /** How long to wait before the same call. */
  readonly retryAfterMs: number | undefined;
  /** Facts that the server adds, such as `task_id`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Reads the details of whatever a call threw. */
export function errorFacts(thrown: unknown): ErrorFacts {
  if (!(thrown instanceof ConnectError)) {
    return { reason: undefined, violations: [], retryAfterMs: undefined, metadata: {} };
  }
  const info = thrown.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "tessera");
  const [retry] = thrown.findDetails(RetryInfoSchema);
  return {
    reason: info?.reason,
    violations: thrown
      .findDetails(BadRequestSchema)
      .flatMap(({ fieldViolations }) => fieldViolations)
      .map(({ field, description }) => ({ field, description })),
    retryAfterMs:
      retry?.retryDelay === undefined ? undefined : Number(retry.retryDelay.seconds) * 1000,
    metadata: info?.metadata ?? {},
  };
}
