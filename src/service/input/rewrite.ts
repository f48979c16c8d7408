/**
 * Encodes large messages anew, with their arguments as a body: the code that decodes them then
 * makes one object of a hundred thousand values, which are read on a thread of their own.
 */
import {
  create,
  createRegistry,
  fromBinary,
  type JsonObject,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { file_tessera_v1_endpoint } from "../../../gen/tessera/v1/endpoint_pb.js";
import { file_tessera_v1_task } from "../../../gen/tessera/v1/task_pb.js";
import { MAX_JSON_VALUES } from "../../collections/json-bounds.ts";
import { problem } from "../../errors.ts";
import { ARGUMENTS_TYPE } from "./arguments-type.ts";
import { faultOfBinary } from "./binary-scan.ts";
import { liftArguments } from "./lift.ts";
import { textOfStruct } from "./struct-text.ts";

const REGISTRY = createRegistry(file_tessera_v1_endpoint, file_tessera_v1_task);

/**
 * The message with its arguments, and those of its tasks, as bodies.
 *
 * @param typeName of a message in binary form; undefined for one in JSON. Throws BODY_MALFORMED.
 */
export function rewritten(data: Uint8Array, typeName: string | undefined): Uint8Array {
  return typeName === undefined ? rewrittenJson(data) : rewrittenBinary(data, typeName);
}

function rewrittenJson(data: Uint8Array): Uint8Array {
  const { json, own, tasks } = liftArguments(data);
  const message = JSON.parse(json);
  if (own !== undefined) {
    message.body = bodyOf(own);
  }
  for (const [index, task] of tasks.entries()) {
    if (task !== undefined) {
      message.tasks[index].body = bodyOf(task);
    }
  }
  return Buffer.from(JSON.stringify(message));
}

function bodyOf(text: string) {
  return { contentType: ARGUMENTS_TYPE, data: Buffer.from(text).toString("base64") };
}

interface Call extends Message {
  input?: { readonly case?: string; readonly value?: unknown };
  readonly tasks?: readonly Call[];
}

function rewrittenBinary(data: Uint8Array, typeName: string): Uint8Array {
  const type = REGISTRY.getMessage(typeName);
  if (type === undefined) {
    throw new Error(`there is no message ${typeName} that takes arguments`);
  }
  const fault = faultOfBinary(data, type, MAX_JSON_VALUES);
  if (fault !== undefined) {
    throw problem("BODY_MALFORMED", `the message ${fault}`);
  }
  let message: Call;
  try {
    message = fromBinary(type, data) as Call;
  } catch {
    // The library says why it cannot be decoded.
    return data;
  }
  for (const call of [message, ...(message.tasks ?? [])]) {
    if (call.input?.case === "arguments") {
      const text = textOfStruct(call.input.value as JsonObject, true);
      const value = create(HttpBodySchema, {
        contentType: ARGUMENTS_TYPE,
        data: Buffer.from(text),
      });
      call.input = { case: "body", value };
    }
  }
  return toBinary(type, message);
}
