/** Builds the `CallFailure` of a call without a result. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  type AbortReason,
  type CallFailure,
  MAX_FAILURE_VIOLATIONS,
} from "../protocol/messages.ts";
import { errorCodeOf } from "../sdk/errors.ts";
import { issuePath } from "../sdk/schema.ts";
import { deniedMessage } from "./permission-errors.ts";
import { stackOf } from "./stack.ts";

/** Message of an error that a call reports. */
const MAX_FAILURE_MESSAGE_CHARACTERS = 8192;

/** Thrown for what a function made and that cannot be sent. */
export class OutputRefused extends Error {
  override readonly name = "OutputRefused";
  readonly failure: CallFailure;

  constructor(failure: CallFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** The failure of a call whose arguments the schema refused. */
export function argumentsInvalid(
  endpoint: string,
  issues: readonly StandardSchemaV1.Issue[],
): CallFailure {
  const violations = violationsOf(issues);
  return {
    code: "invalid_argument",
    reason: "ARGUMENTS_INVALID",
    message: clip(`arguments of ${endpoint} are invalid: ${listed(violations, issues.length)}`),
    violations,
  };
}

/** The failure of a call whose result the schema refused. */
export function outputRefused(
  endpoint: string,
  issues: readonly StandardSchemaV1.Issue[],
): CallFailure {
  const violations = violationsOf(issues);
  return outputInvalid(
    `${endpoint} returned what its output schema refuses: ${listed(violations, issues.length)}`,
  );
}

/** The failure of a call whose result cannot be sent. */
export function outputInvalid(message: string): CallFailure {
  return { code: "internal", reason: "OUTPUT_INVALID", message: clip(message) };
}

/** The failure of a call whose result is above the limit. */
export function resultTooLarge(endpoint: string, maxBytes: number): CallFailure {
  const message = `the result of ${endpoint} is larger than the limit of ${maxBytes} bytes: return less, or a link to it`;
  return { code: "internal", reason: "RESULT_TOO_LARGE", message };
}

/** The failure of a call that yielded a piece above the limit, such as `262144 bytes`. */
export function pieceTooLarge(endpoint: string, limit: string): CallFailure {
  const message = `a piece of the result of ${endpoint} is larger than ${limit}: yield smaller ones`;
  return { code: "internal", reason: "RESULT_TOO_LARGE", message };
}

/** The failure of each call of a batch that failed as a whole. */
export function batchFailed(failure: CallFailure, endpoint: string, size: number): CallFailure {
  const message = `the function of ${endpoint} failed for a batch of ${size}: ${failure.message}`;
  return { ...failure, reason: "BATCH_FAILED", message: clip(message) };
}

/** The failure of a call whose function or schema threw. */
export function callFailed(thrown: unknown, aborted: AbortReason | undefined): CallFailure {
  const code = errorCodeOf(thrown) ?? abortCode(thrown, aborted) ?? "internal";
  const stack = stackOf(thrown);
  return {
    code,
    reason: "CALL_FAILED",
    message: clip(deniedMessage(thrown) ?? messageOf(thrown)),
    ...(stack !== undefined && { stack }),
  };
}

/** The message of a thrown value, which need not be an error. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) {
    return thrown.message === "" ? thrown.name : thrown.message;
  }
  try {
    return String(thrown);
  } catch {
    // An object without a prototype, or one whose toString throws, has no text.
    return "something was thrown that is not an error";
  }
}

/** The code of a function that ended with the error of its own abort. */
function abortCode(thrown: unknown, aborted: AbortReason | undefined): string | undefined {
  const gaveUp =
    aborted !== undefined &&
    thrown instanceof Error &&
    (thrown.name === "AbortError" || thrown.name === "TimeoutError");
  if (!gaveUp) {
    return undefined;
  }
  return aborted === "timeout" ? "deadline_exceeded" : "canceled";
}

function violationsOf(issues: readonly StandardSchemaV1.Issue[]) {
  return issues.slice(0, MAX_FAILURE_VIOLATIONS).map((issue) => ({
    path: issuePath(issue).slice(0, 1024),
    message: issue.message.slice(0, 1024),
  }));
}

function listed(
  violations: readonly { readonly path: string; readonly message: string }[],
  count: number,
): string {
  const texts = violations.map(({ path, message }) =>
    path === "" ? message : `${path}: ${message}`,
  );
  return texts.join("; ") + (count > texts.length ? `; and ${count - texts.length} more` : "");
}

export function clip(text: string): string {
  return text.length > MAX_FAILURE_MESSAGE_CHARACTERS
    ? `${text.slice(0, MAX_FAILURE_MESSAGE_CHARACTERS - 1)}…`
    : text;
}
