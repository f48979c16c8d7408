/** Maps error responses to the classes of `errors.ts`. */
import {
  AccessDeniedError,
  BusyError,
  CallFailedError,
  ConflictError,
  DeploymentError,
  type DeploymentErrorOptions,
  DeploymentNotFoundError,
  DeploymentStartingError,
  DeploymentStoppedError,
  ForeignAnswerError,
  InvalidArgumentsError,
  QueueFullError,
  ServerError,
  TaskCancelledError,
  TaskFailedError,
  TaskFinishedError,
  TaskNotFinishedError,
  TaskNotFoundError,
  TaskRestartedError,
  TaskStartedError,
  TokenError,
  UnknownEndpointError,
  type Violation,
} from "./errors.ts";

type ErrorClass = new (message: string, options: DeploymentErrorOptions) => DeploymentError;

const CLASSES: Readonly<Record<string, ErrorClass>> = {
  ARGUMENTS_INVALID: InvalidArgumentsError,
  REQUEST_INVALID: InvalidArgumentsError,
  BODY_MALFORMED: InvalidArgumentsError,
  BODY_TOO_LARGE: InvalidArgumentsError,
  CONTENT_TYPE_UNSUPPORTED: InvalidArgumentsError,
  ROUTE_NOT_FOUND: UnknownEndpointError,
  METHOD_NOT_ALLOWED: UnknownEndpointError,
  ENDPOINT_NOT_FOUND: UnknownEndpointError,
  ENDPOINT_NOT_A_TASK: UnknownEndpointError,
  DEPLOYMENT_NOT_FOUND: DeploymentNotFoundError,
  NO_REVISION: DeploymentStoppedError,
  DEPLOYMENT_STOPPED: DeploymentStoppedError,
  DEPLOYMENT_FAILED: DeploymentStoppedError,
  NO_WORKER: DeploymentStartingError,
  TASK_NOT_FOUND: TaskNotFoundError,
  TASK_NOT_FINISHED: TaskNotFinishedError,
  TASK_CANCELLED: TaskCancelledError,
  TASK_FAILED: TaskFailedError,
  CALL_FAILED: CallFailedError,
  CALL_TIMEOUT: CallFailedError,
  WORKER_LOST: CallFailedError,
  OUTPUT_INVALID: CallFailedError,
  RESULT_TOO_LARGE: CallFailedError,
  TASK_ALREADY_STARTED: TaskStartedError,
  TASK_FINISHED: TaskFinishedError,
  TASK_RESTARTED: TaskRestartedError,
  IDEMPOTENCY_KEY_REUSED: ConflictError,
  QUEUE_FULL: QueueFullError,
  KEY_LIMITED: BusyError,
  RATE_LIMITED: BusyError,
  TOO_MANY_WAITING: BusyError,
  SERVER_BUSY: BusyError,
  SHUTTING_DOWN: BusyError,
  STORAGE_UNAVAILABLE: BusyError,
  TOKEN_INVALID: TokenError,
  TOKEN_MISSING: TokenError,
  ACCESS_DENIED: AccessDeniedError,
  INTERNAL: ServerError,
};

/** Advice that the server cannot give, by reason. */
const ADVICE: Readonly<Record<string, string>> = {
  TOKEN_MISSING: "give the client a token",
  TOKEN_INVALID: "give a token that is valid; if this one worked before, it expired or was revoked",
  ENDPOINT_NOT_FOUND:
    "if it was there before, the service has changed: generate the client again, or take its new types",
  ENDPOINT_NOT_A_TASK:
    "if it was a task before, the service has changed: generate the client again, or take its new types",
  ROUTE_NOT_FOUND: "is the URL that of a deployment?",
};

/** An error on the wire, https://connectrpc.com/docs/protocol#error-end-stream. */
interface WireError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly details?: readonly { readonly type?: unknown; readonly debug?: unknown }[];
}

/** Characters of a foreign response that an error of the client quotes. */
const MAX_QUOTED_CHARACTERS = 200;

/** Thrown when a response is cut off; `cause` says how. */
export class ReadError extends Error {
  override readonly name = "ReadError";
}

/** Wraps the rejection of a read in a `ReadError`. */
export async function reading<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (cause) {
    throw new ReadError("an answer ended too early", { cause });
  }
}

/** Reads an error response and returns the error to throw. */
export async function refusalOf(response: Response): Promise<DeploymentError> {
  const text = await reading(response.text());
  const taskId = response.headers.get("tessera-task-id");
  if (taskId !== null) {
    return serverRefused(response, taskId, text);
  }
  const json = parseObject(text);
  const known = json && fromWire(json, retryOptions(response));
  return known ?? foreignAnswer(response, text);
}

/** The error of a task that a mounted server has answered with an error, in words of its own. */
function serverRefused(response: Response, taskId: string, text: string): TaskFailedError {
  const said = text === "" ? "" : `: ${text.slice(0, MAX_QUOTED_CHARACTERS)}`;
  return new TaskFailedError(`the server answered with ${response.status}${said}`, {
    ...retryOptions(response),
    reason: "TASK_FAILED",
    metadata: { task_id: taskId },
  });
}

function retryOptions({ status, headers }: Response) {
  const retryAfterMs = retryAfter(headers.get("retry-after"));
  return { status, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

/** The error in the data of an event `error`. */
export function errorOfEvent(data: string): Error {
  const json = parseObject(data) ?? {};
  const status = json.code === "unavailable" ? 503 : json.code === "resource_exhausted" ? 429 : 500;
  return fromWire(json, { status }) ?? new ForeignAnswerError(String(json.message));
}

/** Converts an error from the wire; undefined when it is not a Tessera error. */
function fromWire(
  { code, message, details }: WireError,
  options: DeploymentErrorOptions,
): DeploymentError | undefined {
  const list = Array.isArray(details) ? details : [];
  const info = detail(list, "google.rpc.ErrorInfo");
  if (info?.domain !== "tessera" || typeof info.reason !== "string") {
    return undefined;
  }
  const { reason } = info;
  const Found = CLASSES[reason] ?? DeploymentError;
  const violations = violationsOf(detail(list, "google.rpc.BadRequest"));
  return new Found(explained(String(message ?? ""), reason, violations), {
    ...options,
    reason,
    code: String(code ?? "unknown"),
    violations,
    metadata: { ...(info.metadata as Record<string, string> | undefined) },
  });
}

function explained(said: string, reason: string, violations: readonly Violation[]): string {
  const faults = violations
    .filter(({ description }) => !said.includes(description))
    .map(({ field, description }) => `${field} ${description}`.trim());
  const advice = ADVICE[reason];
  return [said, ...faults, ...(advice === undefined ? [] : [advice])].join("; ");
}

function detail(
  details: readonly { readonly type?: unknown; readonly debug?: unknown }[],
  type: string,
): Record<string, unknown> | undefined {
  const found = details.find((one) => one?.type === type)?.debug;
  return typeof found === "object" && found !== null ? { ...found } : undefined;
}

function violationsOf(request: Record<string, unknown> | undefined): Violation[] {
  const list = request?.fieldViolations;
  return (Array.isArray(list) ? list : []).map((one: Partial<Violation>) => ({
    field: String(one?.field ?? ""),
    description: String(one?.description ?? ""),
  }));
}

/** Returns the error for a response that did not come from a Tessera deployment. */
export function foreignAnswer(response: Response, text = ""): ForeignAnswerError {
  const advice = PROXY_STATUS.has(response.status)
    ? "a proxy before the server says so, which may be away or starting: try again later"
    : "is the URL that of a deployment, and does nothing in between answer in its place?";
  return new ForeignAnswerError(
    `${describeForeign(response, text)} (HTTP ${response.status}): ${advice}`,
    retryOptions(response),
  );
}

const PROXY_STATUS = new Set([429, 502, 503, 504]);

function describeForeign({ headers, status, type }: Response, text: string): string {
  const location = headers.get("location");
  if (type === "opaqueredirect" || (location !== null && status >= 300 && status < 400)) {
    return `the server sends callers on to ${location?.slice(0, MAX_QUOTED_CHARACTERS) ?? "another address"}`;
  }
  const contentType = headers.get("content-type") ?? "no content type";
  return contentType.startsWith("text/html")
    ? "a web page came back"
    : `what came back is not a deployment's answer: ${contentType} ${JSON.stringify(text.slice(0, MAX_QUOTED_CHARACTERS))}`;
}

/** Parses `Retry-After` (RFC 9110, 10.2.3), seconds or a date, into milliseconds. */
function retryAfter(text: string | null, nowMs = Date.now()): number | undefined {
  if (text === null) {
    return undefined;
  }
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null
      ? (json as Record<string, unknown>)
      : undefined;
  } catch {
    // Not JSON: the caller decides what that means.
    return undefined;
  }
}
