/** The errors of the SDK: those an endpoint throws, and the one for a faulty definition. */
import { ERROR_CODE } from "./symbols.ts";

/**
 * The error codes of an endpoint: those of Connect and gRPC, in Connect's spelling
 * (https://connectrpc.com/docs/protocol#error-codes).
 */
const ERROR_CODES = [
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
 * Throw it from an endpoint to fail with a code of your choice, with `new` or without. The caller
 * gets the message; the stack trace and the `cause` stay in the log.
 */
export const EndpointError = withoutNew(
  class EndpointError extends Error {
    override readonly name: string = "EndpointError";
    readonly code: ErrorCode;

    constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
      super(message, options);
      this.code = code;
      Object.defineProperty(this, ERROR_CODE, { value: code });
    }
  },
);
export type EndpointError = InstanceType<typeof EndpointError>;

/**
 * Throw it from an endpoint when its arguments are wrong, with `new` or without:
 * `invalid_argument`, HTTP 400.
 */
export const BadInput = withoutNew(
  class BadInput extends EndpointError {
    override readonly name = "BadInput";

    constructor(message: string, options?: ErrorOptions) {
      super("invalid_argument", message, options);
    }
  },
);
export type BadInput = InstanceType<typeof BadInput>;

/** The same class of errors, which makes one when it is called as a function, too. */
function withoutNew<Args extends readonly unknown[], Made extends Error>(
  of: new (...args: Args) => Made,
): { new (...args: Args): Made; (...args: Args): Made } {
  const apply = (made: typeof of, _this: unknown, args: unknown[]): Made => {
    const error = new made(...(args as unknown as Args));
    // The stack begins where it was thrown.
    Error.captureStackTrace(error, apply);
    return error;
  };
  const callable: unknown = new Proxy(of, { apply });
  return callable as { new (...args: Args): Made; (...args: Args): Made };
}

/** The code of an `EndpointError`; undefined for any other thrown value. */
export function errorCodeOf(thrown: unknown): ErrorCode | undefined {
  if (typeof thrown !== "object" || thrown === null || !(ERROR_CODE in thrown)) {
    return undefined;
  }
  const code = thrown[ERROR_CODE];
  return ERROR_CODES.find((known) => known === code) ?? "internal";
}

/** Thrown for a service that is defined wrongly. The message begins with the place. */
export class ServiceDefinitionError extends Error {
  override readonly name = "ServiceDefinitionError";

  constructor(place: string, message: string, options?: ErrorOptions) {
    super(`${place}: ${message}`, options);
  }
}
