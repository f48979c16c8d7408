/** Writes errors as JSON, in the format of the Connect protocol. */
import { create, type DescMessage, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { Code, type ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { FastifyReply } from "fastify";
import { RequestInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import type { Problem } from "../../errors.ts";
import { httpStatus } from "./error-status.ts";
import { lingerAfterRefusal } from "./lingering-close.ts";
import { requestLog } from "./request-log.ts";

export const JSON_TYPE = "application/json; charset=utf-8";

/** An error as the Connect protocol writes it, https://connectrpc.com/docs/protocol#error-end-stream. */
interface ErrorJson {
  readonly code: string;
  readonly message: string;
  readonly details: readonly {
    readonly type: string;
    readonly value: string;
    readonly debug?: JsonValue;
  }[];
}

/** The JSON of an error. `requestId`, if given, is added to its details. */
export function errorJson(err: ConnectError, requestId?: string): ErrorJson {
  const details = requestId === undefined ? err.details : [...err.details, requestInfo(requestId)];
  return {
    code: codeToString(err.code),
    message: err.rawMessage,
    details: details.map((detail) => {
      if (!("desc" in detail)) {
        return { type: detail.type, value: base64Encode(detail.value, "std_raw") };
      }
      const desc: DescMessage = detail.desc;
      const message = create(desc, detail.value);
      return {
        type: desc.typeName,
        value: base64Encode(toBinary(desc, message), "std_raw"),
        debug: toJson(desc, message),
      };
    }),
  };
}

/** The error detail that names the request. */
export function requestInfo(requestId: string) {
  return { desc: RequestInfoSchema, value: { requestId } };
}

interface SendOptions {
  /** Default: the error's status on plain HTTP. */
  readonly status?: number;
  /** Content type; default `application/json; charset=utf-8`. */
  readonly type?: string;
}

/**
 * Answers with an error: status, headers such as `Retry-After`, and JSON.
 * Defects of the server are logged with their cause.
 */
export function sendProblem(
  reply: FastifyReply,
  found: Problem,
  { status = httpStatus(found), type = JSON_TYPE }: SendOptions = {},
): FastifyReply {
  reportProblem(reply, found);
  lingerAfterRefusal(reply.request.raw);
  for (const [name, value] of found.metadata) {
    reply.header(name, value);
  }
  return reply
    .code(status)
    .header("content-type", type)
    .send(Buffer.from(JSON.stringify(errorJson(found, reply.request.id))));
}

/** True for a defect of the server, which is logged in full; a caller that went away is not a defect. */
export function isDefect(found: Problem): boolean {
  return found.reason === "INTERNAL" && found.code === Code.Internal;
}

/** Logs the cause of a defect, which callers do not get. */
export function reportProblem(reply: FastifyReply, found: Problem): void {
  if (isDefect(found)) {
    requestLog(reply.request).error({ err: found.cause ?? found }, found.rawMessage);
  }
}
