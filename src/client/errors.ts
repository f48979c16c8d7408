/**
 * What calls of a deployment fail with: one class for each situation that a
 * caller can do something about. `message` says what was wrong and what to do.
 */

/** One field and what is wrong with it. */
export interface Violation {
  /** Path in dots, such as `texts.0`; empty for the whole. */
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

/** Whatever a call failed with. An aborted signal is not among it: its own reason is thrown. */
export class DeploymentError extends Error {
  override readonly name: string = "DeploymentError";
  /** The server's reason, such as `TASK_NOT_FOUND`. Undefined: no server of ours answered. */
  readonly reason: string | undefined;
  /** The code that came with it, in Connect's spelling, such as `not_found`. */
  readonly code: string | undefined;
  /** HTTP status, if there was an answer. */
  readonly status: number | undefined;
  /** The fields that were refused, and why. */
  readonly violations: readonly Violation[];
  /** How long the server asks to wait before the same call. */
  readonly retryAfterMs: number | undefined;
  /** Facts that the server adds, such as `task_id`. */
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

/** No answer came. */
export class ConnectionError extends DeploymentError {
  override readonly name: string = "ConnectionError";
}

/** There is no server at the URL: nothing was sent. */
export class UnreachableError extends ConnectionError {
  override readonly name = "UnreachableError";
}

/** The connection broke after the call may have reached the server, or in the middle of the answer. */
export class ConnectionLostError extends ConnectionError {
  override readonly name = "ConnectionLostError";
}

/** The client's own `timeout` is over. */
export class TimeoutError extends DeploymentError {
  override readonly name = "TimeoutError";
}

/** Something else than a deployment answered: a web page, a proxy, another program. */
export class ForeignAnswerError extends DeploymentError {
  override readonly name = "ForeignAnswerError";
}

/** The deployment has no worker yet, or none any more. */
export class DeploymentStartingError extends DeploymentError {
  override readonly name = "DeploymentStartingError";
}

/** The deployment was stopped, has nothing deployed, or cannot start. */
export class DeploymentStoppedError extends DeploymentError {
  override readonly name = "DeploymentStoppedError";
}

/** There is no such deployment, or the token may not see it. */
export class DeploymentNotFoundError extends DeploymentError {
  override readonly name = "DeploymentNotFoundError";
}

/** The service has no such endpoint, or it is no task: it changed since the client was written. */
export class UnknownEndpointError extends DeploymentError {
  override readonly name = "UnknownEndpointError";
}

/** The arguments, or the options of the call, were refused; nothing ran. */
export class InvalidArgumentsError extends DeploymentError {
  override readonly name = "InvalidArgumentsError";
}

/** No token, or one that is unknown, revoked or expired. */
export class TokenError extends DeploymentError {
  override readonly name = "TokenError";
}

/** The token has too little access. */
export class AccessDeniedError extends DeploymentError {
  override readonly name = "AccessDeniedError";
}

/** A limit of rate is reached, or the server is busy or shutting down: nothing is wrong with the call. */
export class BusyError extends DeploymentError {
  override readonly name: string = "BusyError";
}

/** As many calls or tasks wait as may. */
export class QueueFullError extends BusyError {
  override readonly name = "QueueFullError";
}

/** There is no such task. */
export class TaskNotFoundError extends DeploymentError {
  override readonly name: string = "TaskNotFoundError";
}

/** The task was there, and its time is over: its result was deleted. */
export class TaskExpiredError extends TaskNotFoundError {
  override readonly name = "TaskExpiredError";
}

/** The task has not ended yet. */
export class TaskNotFinishedError extends DeploymentError {
  override readonly name = "TaskNotFinishedError";
}

/** The task was cancelled and has no result. */
export class TaskCancelledError extends DeploymentError {
  override readonly name = "TaskCancelledError";
}

/** The function failed: the message is its own. */
export class CallFailedError extends DeploymentError {
  override readonly name: string = "CallFailedError";
}

/** The task's function failed: `retry()` runs it again. `metadata.failure_reason` is `error`, `timeout` or the like. */
export class TaskFailedError extends CallFailedError {
  override readonly name = "TaskFailedError";
}

/** What was asked does not go together with how things stand. */
export class ConflictError extends DeploymentError {
  override readonly name: string = "ConflictError";
}

/** The task runs already: `cancel({ abort: true })` stops it nevertheless. */
export class TaskStartedError extends ConflictError {
  override readonly name = "TaskStartedError";
}

/** The task has ended, and cannot be cancelled any more. */
export class TaskFinishedError extends ConflictError {
  override readonly name = "TaskFinishedError";
}

/** A defect of the server. */
export class ServerError extends DeploymentError {
  override readonly name = "ServerError";
}
