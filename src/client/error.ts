/** Reads the reason and the details of errors that platform calls reject with. */
import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";

/** The machine-readable part of an error. */
export interface ErrorFacts {
  /**
   * A value of `ErrorReason` without its prefix, such as `TASK_NOT_FOUND`.
   * Undefined when the error did not come from the server.
   */
  readonly reason: string | undefined;
  /** The invalid fields, and what is wrong with each. */
  readonly violations: readonly { readonly field: string; readonly description: string }[];
  /** How long to wait before a retry of the same call, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Additional facts from the server, such as `task_id`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Reads the details of anything that a call threw. */
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
