/**
 * Error classes of deployment calls, one for each situation that a caller can
 * act on. `message` says what was wrong and what to do.
 */

/** One invalid field. */
export interface Violation {
  /** Dotted path, such as `texts.0`; empty for the arguments as a whole. */
  readonly field: string;
  readonly description: string;
}

export interface DeploymentErrorOptions {
  readonly reason?: string;
  readonly code?: string;
  readonly status?: number;
  readonly violations?: readonly Violation[];
  readonly retryAfterMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/**
 * The base class of all errors of deployment calls. A call with an aborted
 * signal throws the signal's reason instead.
 */
export class DeploymentError extends Error {
  override readonly name: string = "DeploymentError";
  /** The server's reason, such as `TASK_NOT_FOUND`. Undefined when no Tessera server responded. */
  readonly reason: string | undefined;
  /** The error code in Connect's spelling, such as `not_found`. */
  readonly code: string | undefined;
  /** HTTP status, if there was a response. */
  readonly status: number | undefined;
  /** The invalid fields, and what is wrong with each. */
  readonly violations: readonly Violation[];
  /** How long the server asks to wait before a retry, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Additional facts from the server, such as `task_id`. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(message: string, options: DeploymentErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.reason = options.reason;
    this.code = options.code;
    this.status = options.status;
    this.violations = options.violations ?? [];
    this.retryAfterMs = options.retryAfterMs;
    this.metadata = options.metadata ?? {};
  }
}

/** No response arrived. */
export class ConnectionError extends DeploymentError {
  override readonly name: string = "ConnectionError";
}

/** No server is reachable at the URL; nothing was sent. */
export class UnreachableError extends ConnectionError {
  override readonly name = "UnreachableError";
}

/** The connection broke after the call may have reached the server, or during the response. */
export class ConnectionLostError extends ConnectionError {
  override readonly name = "ConnectionLostError";
}

/** The client's own `timeout` elapsed. */
export class TimeoutError extends DeploymentError {
  override readonly name = "TimeoutError";
}

/** Something other than a deployment responded: a web page, a proxy, another program. */
export class ForeignAnswerError extends DeploymentError {
  override readonly name = "ForeignAnswerError";
}

/** The deployment has no ready worker at the moment. */
export class DeploymentStartingError extends DeploymentError {
  override readonly name = "DeploymentStartingError";
}

/** The deployment is stopped, has no revision, or cannot start. */
export class DeploymentStoppedError extends DeploymentError {
  override readonly name = "DeploymentStoppedError";
}

/** The deployment does not exist, or the token may not see it. */
export class DeploymentNotFoundError extends DeploymentError {
  override readonly name = "DeploymentNotFoundError";
}

/**
 * The service has no such endpoint, or the endpoint is not a task. Perhaps the
 * service has changed since the client was written.
 */
export class UnknownEndpointError extends DeploymentError {
  override readonly name = "UnknownEndpointError";
}

/** The arguments or the options of the call are invalid; nothing ran. */
export class InvalidArgumentsError extends DeploymentError {
  override readonly name = "InvalidArgumentsError";
}

/** The token is missing, unknown, revoked or expired. */
export class TokenError extends DeploymentError {
  override readonly name = "TokenError";
}

/** The token lacks the required access. */
export class AccessDeniedError extends DeploymentError {
  override readonly name = "AccessDeniedError";
}

/**
 * A rate limit was reached, or the server is busy or shutting down. The same
 * call can succeed later.
 */
export class BusyError extends DeploymentError {
  override readonly name: string = "BusyError";
}

/** The queue of calls or tasks is full. */
export class QueueFullError extends BusyError {
  override readonly name = "QueueFullError";
}

/** The task does not exist. */
export class TaskNotFoundError extends DeploymentError {
  override readonly name: string = "TaskNotFoundError";
}

/** The task existed, but it has expired and its result was deleted. */
export class TaskExpiredError extends TaskNotFoundError {
  override readonly name = "TaskExpiredError";
}

/** The task has not ended yet. */
export class TaskNotFinishedError extends DeploymentError {
  override readonly name = "TaskNotFinishedError";
}

/** The task was cancelled, so it has no result. */
export class TaskCancelledError extends DeploymentError {
  override readonly name = "TaskCancelledError";
}

/** The function failed; `message` is its own. */
export class CallFailedError extends DeploymentError {
  override readonly name: string = "CallFailedError";
}

/**
 * The task failed; `retry()` runs it again. `metadata.failure_reason` is
 * `error`, `timeout` or the like.
 */
export class TaskFailedError extends CallFailedError {
  override readonly name = "TaskFailedError";
}

/** The request conflicts with the current state. */
export class ConflictError extends DeploymentError {
  override readonly name: string = "ConflictError";
}

/** The task is running already; `cancel({ abort: true })` stops it. */
export class TaskStartedError extends ConflictError {
  override readonly name = "TaskStartedError";
}

/** The task has ended and can no longer be cancelled. */
export class TaskFinishedError extends ConflictError {
  override readonly name = "TaskFinishedError";
}

/** The task began anew: the pieces of its result that were read are void. */
export class TaskRestartedError extends ConflictError {
  override readonly name = "TaskRestartedError";
}

/** An internal error of the server. */
export class ServerError extends DeploymentError {
  override readonly name = "ServerError";
}
