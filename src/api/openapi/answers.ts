/** The answers of the platform's operations: what the method returns, and every status of an error. */

import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Access, access } from "../../../gen/tessera/v1/access_pb.js";
import { problem, type Reason } from "../../errors.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { httpStatus } from "../../server/http/error-status.ts";
import type { Binding } from "../../server/rest/binding.ts";
import { componentReference } from "../../service/openapi/hoist.ts";
import { openEnum } from "../../service/openapi/open-enum.ts";
import { errorsOf } from "./comments.ts";
import type { MessageSchemas } from "./schemas.ts";

/** Reasons that follow from who may call. */
const REFUSALS: { readonly [access in Access]?: readonly Reason[] } = {
  [Access.PUBLIC]: ["ACCESS_DENIED"],
  [Access.AUTHENTICATED]: ["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED"],
  [Access.SESSION]: ["TOKEN_MISSING", "TOKEN_INVALID", "SIGN_IN_REQUIRED", "ACCESS_DENIED"],
  [Access.ADMIN]: [
    "TOKEN_MISSING",
    "TOKEN_INVALID",
    "ACCESS_DENIED",
    "ADMIN_REQUIRED",
    "ORGANIZATION_NOT_FOUND",
  ],
  [Access.DEVELOPER]: ["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED", "ORGANIZATION_NOT_FOUND"],
  [Access.ENDPOINT]: [
    ...(["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED", "DEPLOYMENT_NOT_FOUND"] as const),
    ...(["DEPLOYMENT_STOPPED", "DEPLOYMENT_FAILED", "NO_WORKER"] as const),
  ],
  [Access.MONITORING]: ["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED"],
  [Access.OPERATOR]: ["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED", "OPERATOR_REQUIRED"],
  [Access.WORKER]: ["TOKEN_MISSING", "TOKEN_INVALID", "ACCESS_DENIED"],
};

/** Reasons of every operation. */
const ALWAYS: readonly Reason[] = [
  ...(["REQUEST_INVALID", "ROUTE_NOT_FOUND", "RATE_LIMITED", "INTERNAL"] as const),
  ...(["SERVER_BUSY", "STORAGE_UNAVAILABLE", "SHUTTING_DOWN"] as const),
];

/** Reasons of operations with a body. */
const OF_BODIES: readonly Reason[] = [
  ...(["BODY_MALFORMED", "CONTENT_TYPE_UNSUPPORTED", "BODY_TOO_LARGE"] as const),
];

const REPLAYED: JsonSchema = {
  "Idempotent-Replayed": {
    description: "`true` if the answer is an earlier task with the same key.",
    schema: openEnum(["true"]),
  },
};

const TAGGED: JsonSchema = {
  ETag: {
    description: "The version, for `If-Match`.",
    schema: { type: "string", pattern: '^"[1-9][0-9]*"$' },
  },
};

const HEADERS: { readonly [status: number]: JsonSchema } = {
  401: { "WWW-Authenticate": { schema: { type: "string" } } },
  429: {
    "Retry-After": { schema: { type: "integer", minimum: 0 } },
    RateLimit: { schema: { type: "string" } },
    "RateLimit-Policy": { schema: { type: "string" } },
  },
  503: { "Retry-After": { schema: { type: "integer", minimum: 0 } } },
};

/** Component schemas of errors, which the documents of deployments have too. */
export const ERROR = "tessera.Error";

/** The component of answers with this status; `default` for all that are not listed. */
function componentOf(status: number | "default"): string {
  return status === "default" ? "Error" : `Error${status}`;
}

/** The answers of errors that operations refer to. */
export function errorComponents(statuses: Iterable<number>): { [name: string]: JsonSchema } {
  const answer = (description: string, headers?: JsonSchema): JsonSchema => ({
    description,
    ...(headers ? { headers } : {}),
    content: { "application/json": { schema: { $ref: componentReference(ERROR) } } },
  });
  const listed = [...statuses]
    .sort((one, other) => one - other)
    .map((status) => [
      componentOf(status),
      answer(`An error with status ${status}.`, HEADERS[status]),
    ]);
  return Object.fromEntries([...listed, [componentOf("default"), answer("Any other error.")]]);
}

/** All answers of an operation, by status. */
export function answersOf(binding: Binding, schemas: MessageSchemas): JsonSchema {
  const { method, body, expected } = binding;
  const reasons = new Set([
    ...errorsOf(method),
    ...(REFUSALS[getOption(method, access)] ?? []),
    ...(body.kind === "none" ? [] : OF_BODIES),
    ...ALWAYS,
  ]);
  const byStatus = Map.groupBy(reasons, (reason) => httpStatus(problem(reason, "")));
  if (expected !== undefined) {
    byStatus.set(412, ["VERSION_CONFLICT"]);
  }
  const reference = (status: number | "default") => ({
    $ref: `#/components/responses/${componentOf(status)}`,
  });
  const errors = [...byStatus]
    .sort(([one], [other]) => one - other)
    .map(([status, some]) => [
      status,
      { ...reference(status), description: `Reasons: ${some.join(", ")}.` },
    ]);
  return {
    200: answerOf(binding, schemas),
    ...Object.fromEntries(errors),
    default: reference("default"),
  };
}

function answerOf(binding: Binding, schemas: MessageSchemas): JsonSchema {
  const { method, rawResponse, responseField, key, tag } = binding;
  if (rawResponse) {
    return { description: "The text.", content: { "text/plain": { schema: { type: "string" } } } };
  }
  const schema = responseField
    ? schemas.ofField(responseField, "server")
    : schemas.of(method.output, "server");
  if (method.methodKind === "server_streaming") {
    return {
      description: "A stream: lines of JSON, or Server-Sent Events where `Accept` asks for them.",
      content: {
        "application/x-ndjson": { schema },
        "text/event-stream": {
          schema: { type: "object", properties: { data: { type: "string" } } },
        },
      },
    };
  }
  return {
    description: "Done.",
    ...(key.kind === "field" ? { headers: REPLAYED } : {}),
    ...(tag ? { headers: TAGGED } : {}),
    content: { "application/json": { schema } },
  };
}

/** Every status of an operation's errors. */
export function statusesOf(operations: Iterable<JsonSchema>): Set<number> {
  const all = [...operations].flatMap(({ responses }) => Object.keys(responses as object));
  return new Set(all.map(Number).filter((status) => status >= 400));
}

/** Names of the credentials. Generated code has types of these names, beside those of messages. */
export const TOKEN_SCHEME = "bearerToken";
export const SESSION_SCHEME = "sessionCookie";

/** Whether a call needs a token, a session, either or neither, as OpenAPI writes it. */
export function securityOf(method: DescMethod): JsonSchema[] {
  const token = { [TOKEN_SCHEME]: [] };
  const session = { [SESSION_SCHEME]: [] };
  switch (getOption(method, access)) {
    case Access.PUBLIC:
      return [];
    case Access.SESSION:
    case Access.OPERATOR:
      return [session];
    case Access.MONITORING:
    case Access.WORKER:
      return [token];
    case Access.ENDPOINT:
      return [token, session, {}];
    default:
      return [token, session];
  }
}
