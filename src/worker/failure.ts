/** Why a call has no result, in the words of the protocol. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type AbortReason, type CallFailure, MAX_VIOLATIONS } from "../protocol/messages.ts";
import { errorCodeOf } from "../sdk/errors.ts";
import { issuePath } from "../sdk/schema.ts";
import { deniedMessage } from "./denied.ts";

const MAX_MESSAGE_LENGTH = 8192;
const MAX_STACK_LENGTH = 16_384;

/** The arguments that the schema refused. */
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

/** The result that the schema refused. */
export function outputRefused(
  endpoint: string,
  issues: readonly StandardSchemaV1.Issue[],
): CallFailure {
  const violations = violationsOf(issues);
  return outputInvalid(
    `${endpoint} returned what its output schema refuses: ${listed(violations, issues.length)}`,
  );
}

/** A result that cannot be sent. */
export function outputInvalid(message: string): CallFailure {
  return { code: "internal", reason: "OUTPUT_INVALID", message: clip(message) };
}

/** A result that is larger than the node takes. */
export function resultTooLarge(endpoint: string, maxBytes: number): CallFailure {
  const message = `the result of ${endpoint} is larger than the limit of ${maxBytes} bytes: return less, or a link to it`;
  return { code: "internal", reason: "RESULT_TOO_LARGE", message };
}

/** What a function, or one of its schemas, threw. */
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

/** The message of whatever was thrown, which need not be an error. */
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

/** The stack trace with those of its causes, as far as they are errors. */
function stackOf(thrown: unknown): string | undefined {
  const stacks: string[] = [];
  let current = thrown;
  while (current instanceof Error && stacks.length < 5) {
    const denied = deniedMessage(current);
    stacks.push(denied === undefined ? String(current.stack) : `${denied}\n${current.stack}`);
    current = current.cause;
  }
  return stacks.length > 0 ? stacks.join("\ncaused by: ").slice(0, MAX_STACK_LENGTH) : undefined;
}

/** A function that gives up because it was told to did not fail by itself. */
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
  return issues.slice(0, MAX_VIOLATIONS).map((issue) => ({
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

function clip(text: string): string {
  return text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH - 1)}…` : text;
}
