/** What user code throws, and what is thrown at a service that is defined wrongly. */
import { ERROR_CODE } from "./symbols.ts";

/**
 * The codes a function can fail with: those of Connect and gRPC, in Connect's
 * spelling (https://connectrpc.com/docs/protocol#error-codes).
 */
export const ERROR_CODES = [
  "canceled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/**
 * Thrown by an endpoint to fail with a code of its choice. The message goes to
 * the caller; the stack trace and the `cause` stay in the log.
 */
export class EndpointError extends Error {
  override readonly name: string = "EndpointError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    Object.defineProperty(this, ERROR_CODE, { value: code });
  }
}

/** Thrown by an endpoint whose arguments are wrong: `invalid_argument`, HTTP 400. */
export class BadInput extends EndpointError {
  override readonly name = "BadInput";

  constructor(message: string, options?: ErrorOptions) {
    super("invalid_argument", message, options);
  }
}

/** The code that a thrown value asks for; undefined for anything but an `EndpointError`. */
export function errorCodeOf(thrown: unknown): ErrorCode | undefined {
  if (typeof thrown !== "object" || thrown === null || !(ERROR_CODE in thrown)) {
    return undefined;
  }
  const code = thrown[ERROR_CODE];
  return ERROR_CODES.find((known) => known === code) ?? "internal";
}

/** A service that is defined wrongly; the message begins with the place. */
export class ServiceDefinitionError extends Error {
  override readonly name = "ServiceDefinitionError";

  constructor(place: string, message: string, options?: ErrorOptions) {
    super(`${place}: ${message}`, options);
  }
}
