/** The OpenAPI error responses of the data plane, as components and as references to them. */
import type { Reason } from "../../errors.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { componentReference } from "./hoist.ts";

interface Failure {
  readonly description: string;
  readonly code: string;
  /** The reason in the example. */
  readonly reason: Reason;
  /** All reasons with this status. */
  readonly reasons: readonly Reason[];
  readonly message: string;
  readonly violations?: readonly { readonly field: string; readonly description: string }[];
  readonly header?: "Retry-After" | "WWW-Authenticate";
}

const FAILURES: { readonly [status: string]: Failure } = {
  400: {
    description: "The arguments or the request are wrong, or the task is not in the right state.",
    code: "invalid_argument",
    reason: "ARGUMENTS_INVALID",
    reasons: [
      "ARGUMENTS_INVALID",
      "REQUEST_INVALID",
      "BODY_MALFORMED",
      "TASK_NOT_FINISHED",
      "TASK_CANCELLED",
    ],
    message: "the arguments do not fit the input schema",
    violations: [{ field: "sentences", description: "must be at least 1" }],
  },
  401: {
    description: "No valid token came with the request.",
    code: "unauthenticated",
    reason: "TOKEN_INVALID",
    reasons: ["TOKEN_MISSING", "TOKEN_INVALID"],
    message: "no valid token; send one as 'Authorization: Bearer <token>'",
    header: "WWW-Authenticate",
  },
  403: {
    description: "The token does not have the access that is needed.",
    code: "permission_denied",
    reason: "ACCESS_DENIED",
    reasons: ["ACCESS_DENIED"],
    message: "the token does not have access to this deployment",
  },
  404: {
    description: "No such endpoint or task, or the task has expired.",
    code: "not_found",
    reason: "TASK_NOT_FOUND",
    reasons: ["ENDPOINT_NOT_FOUND", "ENDPOINT_NOT_A_TASK", "TASK_NOT_FOUND"],
    message: "task 019a0b5e-7c1d-800f-8f21-5b0c6f1d2e3a does not exist or has expired",
  },
  409: {
    description:
      "The task has started or ended already, or began anew, or the idempotency key was used before.",
    code: "aborted",
    reason: "TASK_ALREADY_STARTED",
    reasons: ["TASK_ALREADY_STARTED", "TASK_FINISHED", "TASK_RESTARTED", "IDEMPOTENCY_KEY_REUSED"],
    message: "the task is running; cancel it with abort=true",
  },
  413: {
    description: "The body is larger than the limit.",
    code: "resource_exhausted",
    reason: "BODY_TOO_LARGE",
    reasons: ["BODY_TOO_LARGE"],
    message: "the body is larger than the limit",
  },
  415: {
    description: "The content type of the body is not one that this path reads.",
    code: "invalid_argument",
    reason: "CONTENT_TYPE_UNSUPPORTED",
    reasons: ["CONTENT_TYPE_UNSUPPORTED"],
    message: "send application/json or multipart/form-data",
  },
  429: {
    description: "The queue is full, too many callers wait, or a budget is spent; try again later.",
    code: "resource_exhausted",
    reason: "QUEUE_FULL",
    reasons: ["QUEUE_FULL", "KEY_LIMITED", "TOO_MANY_WAITING", "RATE_LIMITED", "BUDGET_SPENT"],
    message: "the queue of this endpoint is full; try again in 2 s",
    header: "Retry-After",
  },
  500: {
    description: "The function failed; code and message are its own.",
    code: "internal",
    reason: "CALL_FAILED",
    reasons: [
      "CALL_FAILED",
      "TASK_FAILED",
      "WORKER_LOST",
      "OUTPUT_INVALID",
      "RESULT_TOO_LARGE",
      "INTERNAL",
    ],
    message: "the function failed",
  },
  503: {
    description: "The server cannot serve the request now; try again later.",
    code: "unavailable",
    reason: "STORAGE_UNAVAILABLE",
    reasons: [
      "NO_WORKER",
      "SERVER_BUSY",
      "STORAGE_UNAVAILABLE",
      "SHUTTING_DOWN",
      "DEPLOYMENT_STOPPED",
      "DEPLOYMENT_FAILED",
    ],
    message: "the storage is away; try again in 1 s",
    header: "Retry-After",
  },
  504: {
    description: "The function did not end within its timeout.",
    code: "deadline_exceeded",
    reason: "CALL_TIMEOUT",
    reasons: ["CALL_TIMEOUT"],
    message: "the function did not end within 60 s",
  },
};

/** Reasons that any operation may answer with when tokens are required. */
const AUTHORIZATION: readonly Reason[] = [
  ...(["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED", "RATE_LIMITED"] as const),
];

/** Reasons that any operation except health may answer with. */
const ALWAYS: readonly Reason[] = [
  ...(["SERVER_BUSY", "STORAGE_UNAVAILABLE", "SHUTTING_DOWN", "INTERNAL"] as const),
];

/** Statuses that occur only when tokens are required. */
const OF_TOKENS = new Set(["401", "403"]);

/** The components; those about tokens only when tokens are required. */
export function failureComponents(authorization: boolean): { [name: string]: JsonSchema } {
  const entries = Object.entries(FAILURES)
    .filter(([status]) => authorization || !OF_TOKENS.has(status))
    .map(([status, failure]) => [componentName(status), failureResponse(failure)]);
  return Object.fromEntries([...entries, ["Error", anyFailure()]]);
}

/**
 * References to shared error responses for these reasons and those that any
 * operation may have, each with the reasons that this operation has, and
 * `default` for the code of any error that a function throws.
 */
export function failures(reasons: readonly Reason[], authorization: boolean): JsonSchema {
  const all = new Set([...reasons, ...ALWAYS, ...(authorization ? AUTHORIZATION : [])]);
  const entries = Object.entries(FAILURES).flatMap(([status, failure]) => {
    const own = failure.reasons.filter((reason) => all.has(reason));
    const description = `${failure.description} Reasons: ${own.join(", ")}.`;
    return own.length === 0 ? [] : [[status, { ...reference(componentName(status)), description }]];
  });
  return Object.fromEntries([...entries, ["default", reference("Error")]]);
}

/** Each status with the reasons that answer with it. */
export function reasonsByStatus(): [status: number, reasons: readonly Reason[]][] {
  return Object.entries(FAILURES).map(([status, { reasons }]) => [Number(status), reasons]);
}

function componentName(status: string): string {
  return `Error${status}`;
}

function reference(component: string): JsonSchema {
  return { $ref: `#/components/responses/${component}` };
}

function failureResponse(failure: Failure): JsonSchema {
  const { code, message, reason, violations, header } = failure;
  const info = { type: "google.rpc.ErrorInfo", debug: { reason, domain: "tessera" } };
  const details: unknown[] = [info];
  if (violations) {
    details.push({ type: "google.rpc.BadRequest", debug: { fieldViolations: violations } });
  }
  const schema = header === "Retry-After" ? { type: "integer", minimum: 0 } : { type: "string" };
  return {
    description: failure.description,
    ...(header ? { headers: { [header]: { schema } } } : {}),
    content: {
      "application/json": {
        schema: { $ref: componentReference("tessera.Error") },
        example: { code, message, details },
      },
    },
  };
}

function anyFailure(): JsonSchema {
  return {
    description: "Any other error; a function may fail with a code of its own.",
    content: { "application/json": { schema: { $ref: componentReference("tessera.Error") } } },
  };
}
