/** Errors of calls, as the API describes them: code, reason, message and violations of fields. */

interface FieldFault {
  readonly field: string;
  readonly description: string;
}

interface Facts {
  readonly status?: number;
  readonly reason?: string;
  readonly violations?: readonly FieldFault[];
  readonly cause?: unknown;
}

export class CallError extends Error {
  /** The HTTP status; 0 if nothing answered. */
  readonly status: number;
  /** The reason of the API's catalogue, such as `TOKEN_NOT_FOUND`. */
  readonly reason: string;
  readonly violations: readonly FieldFault[];

  constructor(message: string, { status = 0, reason = "", violations = [], cause }: Facts = {}) {
    super(message, { cause });
    this.status = status;
    this.reason = reason;
    this.violations = violations;
  }
}

interface Detail {
  readonly type?: string;
  readonly debug?: {
    readonly reason?: string;
    readonly fieldViolations?: readonly FieldFault[];
  };
}

/** Reads the error of an answer whose status is not 2xx. */
export function readError(
  { status, statusText }: Pick<Response, "status" | "statusText">,
  text: string,
): CallError {
  try {
    const { message, details = [] } = JSON.parse(text) as {
      readonly message?: string;
      readonly details?: readonly Detail[];
    };
    const debugOf = (type: string) => details.find((detail) => detail.type === type)?.debug;
    return new CallError(message || statusText || `HTTP ${status}`, {
      status,
      reason: debugOf("google.rpc.ErrorInfo")?.reason ?? "",
      violations: debugOf("google.rpc.BadRequest")?.fieldViolations ?? [],
    });
  } catch {
    // A proxy answered in its own format.
    return new CallError(statusText || `HTTP ${status}`, { status });
  }
}

export function unreachable(cause: unknown): CallError {
  return new CallError("The server cannot be reached. It may be restarting.", { cause });
}

/** What to show of anything that was thrown. */
export function messageOf(err: unknown): string {
  if (err instanceof CallError) {
    return err.violations.length > 0
      ? err.violations.map(({ field, description }) => `${field}: ${description}`).join("\n")
      : err.message;
  }
  return err instanceof Error ? err.message : String(err);
}

/** True when nothing answered. */
export function isUnreachable(err: unknown): boolean {
  return err instanceof CallError && err.status === 0;
}

/** True when what was asked for is not there, or not for this person. */
export function isMissing(err: unknown): boolean {
  return err instanceof CallError && [403, 404].includes(err.status);
}

/** True when the same call may succeed a little later. */
export function isTransient(err: unknown): boolean {
  return err instanceof CallError && [0, 429, 502, 503, 504].includes(err.status);
}

/** True when nobody is signed in any more. A wrong password has the same status. */
export function isSignedOut(err: unknown): boolean {
  return err instanceof CallError && err.status === 401 && err.reason !== "SIGN_IN_FAILED";
}
