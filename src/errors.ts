/**
 * The closed catalogue of errors: every reason a caller can see, with its
 * Connect code, which also decides the HTTP status. The reasons are those of
 * `tessera.v1.ErrorReason`; a test keeps the two lists equal.
 *
 * `problem("TASK_NOT_FOUND", "task … does not exist")` makes an error.
 * `toProblem` is the one conversion from anything thrown: an error from
 * outside the catalogue becomes INTERNAL, and its detail stays in `cause` for
 * the log.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.js";

export const CATALOGUE = {
  ARGUMENTS_INVALID: Code.InvalidArgument,
  REQUEST_INVALID: Code.InvalidArgument,
  BODY_MALFORMED: Code.InvalidArgument,
  CONTENT_TYPE_UNSUPPORTED: Code.InvalidArgument,
  BODY_TOO_LARGE: Code.ResourceExhausted,
  ROUTE_NOT_FOUND: Code.NotFound,
  METHOD_NOT_ALLOWED: Code.Unimplemented,
  DEPLOYMENT_NOT_FOUND: Code.NotFound,
  ENDPOINT_NOT_FOUND: Code.NotFound,
  ENDPOINT_NOT_A_TASK: Code.NotFound,
  TASK_NOT_FOUND: Code.NotFound,
  TASK_NOT_FINISHED: Code.FailedPrecondition,
  TASK_CANCELLED: Code.FailedPrecondition,
  TASK_FAILED: Code.Internal,
  TASK_ALREADY_STARTED: Code.Aborted,
  TASK_FINISHED: Code.Aborted,
  IDEMPOTENCY_KEY_REUSED: Code.AlreadyExists,
  CALL_FAILED: Code.Internal,
  CALL_TIMEOUT: Code.DeadlineExceeded,
  WORKER_LOST: Code.Internal,
  OUTPUT_INVALID: Code.Internal,
  RESULT_TOO_LARGE: Code.Internal,
  QUEUE_FULL: Code.ResourceExhausted,
  TOO_MANY_WAITING: Code.ResourceExhausted,
  TOKEN_INVALID: Code.Unauthenticated,
  ACCESS_DENIED: Code.PermissionDenied,
  STORAGE_UNAVAILABLE: Code.Unavailable,
  SHUTTING_DOWN: Code.Unavailable,
  NO_WORKER: Code.Unavailable,
  INTERNAL: Code.Internal,
  CALLER_GONE: Code.Canceled,
  SERVER_BUSY: Code.Unavailable,
  ORGANIZATION_NOT_FOUND: Code.NotFound,
  ORGANIZATION_EXISTS: Code.AlreadyExists,
  MEMBER_NOT_FOUND: Code.NotFound,
  MEMBER_EXISTS: Code.AlreadyExists,
  LAST_ADMIN: Code.FailedPrecondition,
  INVITATION_NOT_FOUND: Code.NotFound,
  TOKEN_NOT_FOUND: Code.NotFound,
  MONITORING_DISABLED: Code.FailedPrecondition,
  REVEAL_DISABLED: Code.FailedPrecondition,
  DEPLOYMENT_EXISTS: Code.AlreadyExists,
  ADMIN_REQUIRED: Code.PermissionDenied,
  SIGN_IN_REQUIRED: Code.PermissionDenied,
  SIGN_IN_FAILED: Code.Unauthenticated,
  RATE_LIMITED: Code.ResourceExhausted,
  SETUP_INVALID: Code.FailedPrecondition,
  LOGIN_INVALID: Code.FailedPrecondition,
  LOGIN_NOT_FOUND: Code.NotFound,
  LOGIN_PENDING: Code.FailedPrecondition,
  LOGIN_SLOW_DOWN: Code.ResourceExhausted,
  LOGIN_DENIED: Code.PermissionDenied,
  VERSION_CONFLICT: Code.Aborted,
  LIMIT_REACHED: Code.ResourceExhausted,
  ARTIFACT_INVALID: Code.InvalidArgument,
  FILES_MISSING: Code.FailedPrecondition,
  REVISION_NOT_FOUND: Code.NotFound,
  NO_REVISION: Code.FailedPrecondition,
  TASKS_QUEUED: Code.FailedPrecondition,
  DEPLOYMENT_STOPPED: Code.Unavailable,
  DEPLOYMENT_FAILED: Code.Unavailable,
  OPERATOR_REQUIRED: Code.PermissionDenied,
  INVITATION_LINKS_DISABLED: Code.FailedPrecondition,
  MAIL_FAILED: Code.Unavailable,
  SANDBOX_UNAVAILABLE: Code.FailedPrecondition,
  SESSION_NOT_FOUND: Code.NotFound,
  BATCH_FAILED: Code.Internal,
  TASK_RESTARTED: Code.Aborted,
  ENVIRONMENT_UNAVAILABLE: Code.FailedPrecondition,
  LOCK_INVALID: Code.InvalidArgument,
  WORKER_INCOMPATIBLE: Code.FailedPrecondition,
  WORKER_SESSION_EXPIRED: Code.Aborted,
  WORKER_REPLACED: Code.Aborted,
  MANIFEST_CONFLICT: Code.FailedPrecondition,
  NO_MATCHING_WORKER: Code.Unavailable,
  BLOB_RANGE_INVALID: Code.OutOfRange,
  TOKEN_MISSING: Code.Unauthenticated,
  SCHEDULE_NOT_FOUND: Code.NotFound,
  SCHEDULE_EXISTS: Code.AlreadyExists,
  MODEL_NOT_FOUND: Code.NotFound,
  MODEL_NOT_READY: Code.FailedPrecondition,
  MODEL_IN_USE: Code.FailedPrecondition,
  SOURCE_REFUSED: Code.FailedPrecondition,
  SOURCE_UNAVAILABLE: Code.Unavailable,
  WEBHOOK_NOT_FOUND: Code.NotFound,
  WEBHOOK_EXISTS: Code.AlreadyExists,
  WEBHOOK_DISABLED: Code.FailedPrecondition,
  ALERT_NOT_FOUND: Code.NotFound,
  ALERT_EXISTS: Code.AlreadyExists,
  ALERT_RECEIVER_IN_USE: Code.FailedPrecondition,
  LAUNCHER_REPLACED: Code.Aborted,
  MACHINE_NOT_FOUND: Code.NotFound,
  BUDGET_SPENT: Code.ResourceExhausted,
  BUDGET_NOT_FOUND: Code.NotFound,
  BUDGET_EXISTS: Code.AlreadyExists,
  KEY_LIMITED: Code.ResourceExhausted,
} as const satisfies Record<string, Code>;

export type Reason = keyof typeof CATALOGUE;

/** How to authenticate. RFC 6750 §3.1: without a credential, a challenge has no error. */
const CHALLENGES: { readonly [reason in Reason]?: string } = {
  TOKEN_MISSING: 'Bearer realm="tessera"',
  TOKEN_INVALID: 'Bearer realm="tessera", error="invalid_token"',
};

/** One field and what is wrong with it. */
export interface FieldViolation {
  /** Dotted path, such as `texts.0`; empty for the whole request. */
  readonly field: string;
  readonly description: string;
}

/** A quota of a caller, as draft-ietf-httpapi-ratelimit-headers-10 tells it. */
export interface Quota {
  /** Its name, of printable ASCII without quotes and backslashes. */
  readonly name: string;
  /** What a window has. */
  readonly quota: number;
  readonly windowMs: number;
  /** What the caller may still use. */
  readonly left: number;
  /** Until there is more. */
  readonly resetMs: number;
}

/** Writes `RateLimit` and `RateLimit-Policy`. */
export function tellQuota(to: Headers, { name, quota, windowMs, left, resetMs }: Quota): void {
  const windowS = Math.round(windowMs / 1000);
  to.set("ratelimit-policy", `"${name}";q=${Math.floor(quota)};w=${windowS}`);
  to.set("ratelimit", `"${name}";r=${left};t=${Math.ceil(resetMs / 1000)}`);
}

export interface ProblemOptions {
  /** Overrides the catalogue's code, for errors that a function threw, or where a protocol has another. */
  readonly code?: Code;
  /** HTTP status on a deployment's paths, where a function chose one; absent: that of the code. */
  readonly status?: number;
  readonly violations?: readonly FieldViolation[];
  /** How long a caller should wait before it repeats the call; becomes `Retry-After`. */
  readonly retryAfterMs?: number;
  /** Becomes `RateLimit` and `RateLimit-Policy`. */
  readonly spentQuota?: Omit<Quota, "left">;
  /** Public facts for programs, such as the task's id. */
  readonly metadata?: { readonly [key: string]: string };
  /** Private detail, for the log only. */
  readonly cause?: unknown;
}

/** An error from the catalogue, ready for every protocol: gRPC, Connect and REST. */
export class Problem extends ConnectError {
  readonly reason: Reason;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  readonly violations: readonly FieldViolation[];

  /** Connect's own check accepts every ConnectError, for copies of the library; this one does not. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Function.prototype[Symbol.hasInstance].call(Problem, value);
  }

  constructor(reason: Reason, message: string, options: ProblemOptions = {}) {
    super(message, options.code ?? CATALOGUE[reason], undefined, undefined, options.cause);
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
    this.violations = options.violations ?? [];
    this.details.push({
      desc: ErrorInfoSchema,
      value: { reason, domain: "tessera", metadata: { ...options.metadata } },
    });
    if (this.violations.length > 0) {
      this.details.push({
        desc: BadRequestSchema,
        value: { fieldViolations: [...this.violations] },
      });
    }
    if (options.retryAfterMs !== undefined) {
      const seconds = Math.ceil(options.retryAfterMs / 1000);
      this.metadata.set("retry-after", String(seconds));
      this.details.push({
        desc: RetryInfoSchema,
        value: { retryDelay: { seconds: BigInt(seconds), nanos: 0 } },
      });
    }
    if (options.spentQuota !== undefined) {
      tellQuota(this.metadata, { ...options.spentQuota, left: 0 });
    }
    const challenge = CHALLENGES[reason];
    if (challenge !== undefined) {
      this.metadata.set("www-authenticate", challenge);
    }
  }
}

/** Makes an error from the catalogue. The message says what is wrong and what to do. */
export function problem(reason: Reason, message: string, options?: ProblemOptions): Problem {
  return new Problem(reason, message, options);
}

/** The same error with details and metadata of its own. */
export function copyOf(found: Problem): Problem {
  const { reason, rawMessage, code, cause, violations, retryAfterMs, status } = found;
  const copy = new Problem(reason, rawMessage, {
    ...{ code, cause, violations },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(status !== undefined && { status }),
  });
  copy.details = [...found.details];
  for (const name of [...copy.metadata.keys()]) {
    copy.metadata.delete(name);
  }
  for (const [name, value] of found.metadata) {
    copy.metadata.append(name, value);
  }
  return copy;
}

/** The answer to new work while the node shuts down. */
export function shuttingDown(): Problem {
  return problem("SHUTTING_DOWN", "the server is shutting down: try again", {
    retryAfterMs: 1_000,
  });
}

/** Converts anything thrown to what a caller may see. */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) {
    return thrown;
  }
  if (
    thrown instanceof ConnectError &&
    thrown.code !== Code.Internal &&
    thrown.code !== Code.Unknown
  ) {
    return fromConnectError(thrown);
  }
  return new Problem("INTERNAL", "internal error; the server's log has the details", {
    cause: thrown,
  });
}

/** Gives errors of the Connect library and of request validation their reason. */
function fromConnectError(err: ConnectError): Problem {
  const violations = err
    .findDetails(BadRequestSchema)
    .flatMap((detail) => detail.fieldViolations)
    .map(({ field, description }) => ({ field, description }));
  const reason = REASON_BY_CODE.get(err.code) ?? "INTERNAL";
  return new Problem(reason, err.rawMessage, { code: err.code, violations, cause: err });
}

const REASON_BY_CODE = new Map<Code, Reason>([
  [Code.Canceled, "CALLER_GONE"],
  [Code.InvalidArgument, "REQUEST_INVALID"],
  [Code.NotFound, "ROUTE_NOT_FOUND"],
  [Code.Unimplemented, "ROUTE_NOT_FOUND"],
  [Code.ResourceExhausted, "BODY_TOO_LARGE"],
  [Code.DeadlineExceeded, "CALL_TIMEOUT"],
  [Code.Unauthenticated, "TOKEN_INVALID"],
  [Code.PermissionDenied, "ACCESS_DENIED"],
  [Code.Unavailable, "STORAGE_UNAVAILABLE"],
]);
