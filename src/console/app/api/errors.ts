/** Errors of calls, as the API describes them: code, reason, message and violations of fields. */

interface FieldFault {
  readonly field: string;
  readonly description: string;
}

interface Facts {
  readonly status?: number;
  readonly code?: string;
  readonly reason?: string;
  readonly retryAfter?: string | undefined;
  readonly violations?: readonly FieldFault[];
  readonly cause?: unknown;
}

export class CallError extends Error {
  /** The HTTP status; 0 if nothing answered. */
  readonly status: number;
  /** One of Connect's codes, such as `not_found`; empty where none was told. */
  readonly code: string;
  /** The reason of the API's catalogue, such as `TOKEN_NOT_FOUND`. */
  readonly reason: string;
  readonly violations: readonly FieldFault[];
  /** When to try again, as the server says it: seconds. */
  readonly retryAfter: string | undefined;

  constructor(message: string, facts: Facts = {}) {
    super(message, { cause: facts.cause });
    this.status = facts.status ?? 0;
    this.code = facts.code ?? "";
    this.reason = facts.reason ?? "";
    this.violations = facts.violations ?? [];
    this.retryAfter = facts.retryAfter;
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
  { status, statusText, headers }: Partial<Pick<Response, "headers" | "status" | "statusText">>,
  text: string,
): CallError {
  const retryAfter = headers?.get("retry-after") ?? undefined;
  try {
    const {
      code,
      message,
      details = [],
    } = JSON.parse(text) as {
      readonly code?: string;
      readonly message?: string;
      readonly details?: readonly Detail[];
    };
    const debugOf = (type: string) => details.find((detail) => detail.type === type)?.debug;
    return new CallError(message || statusText || `HTTP ${status}`, {
      status: status ?? 0,
      code: code ?? "",
      retryAfter,
      reason: debugOf("google.rpc.ErrorInfo")?.reason ?? "",
      violations: debugOf("google.rpc.BadRequest")?.fieldViolations ?? [],
    });
  } catch {
    // A proxy answered in its own format.
    return new CallError(statusText || `HTTP ${status}`, { status: status ?? 0, retryAfter });
  }
}

export function unreachable(cause: unknown): CallError {
  return new CallError("The server cannot be reached. It may be restarting.", { cause });
}

/** A fault as a sentence: `Max workers must be at most 100`. */
export function sentenceOf({ field, description }: FieldFault): string {
  const name = field.slice(field.lastIndexOf(".") + 1).replaceAll("_", " ");
  const joins = /^(?:must|may|is|are|has|have|cannot|needs?)\b/.test(description) ? " " : ": ";
  return capitalized(name === "" ? description : `${name}${joins}${description}`);
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What to show of anything that was thrown. */
export function messageOf(err: unknown): string {
  if (err instanceof CallError) {
    return err.violations.length > 0 ? err.violations.map(sentenceOf).join("\n") : err.message;
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

/** True when somebody else has changed what was to be changed, since it was read. */
export function isConflict(err: unknown): boolean {
  return err instanceof CallError && err.reason === "VERSION_CONFLICT";
}

/** True when the same call may succeed a little later. */
export function isTransient(err: unknown): boolean {
  return err instanceof CallError && [0, 429, 502, 503, 504].includes(err.status);
}

/** True when nobody is signed in any more. A wrong password has the same status. */
export function isSignedOut(err: unknown): boolean {
  return err instanceof CallError && err.status === 401 && err.reason !== "SIGN_IN_FAILED";
}
