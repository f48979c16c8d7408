/** The arguments that a task was submitted with, and the files in them. */
import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  ResultFormat,
  type TaskArgumentFile,
  TaskArgumentFileSchema,
  type TaskArguments,
  TaskArgumentsSchema,
} from "../../../gen/tessera/v1/task_pb.js";
import { parseLenient } from "../../collections/exact-json.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import { problem } from "../../errors.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { SubmittedArguments } from "../../queue/tasks.ts";
import type { StreamedBodies } from "../../server/http/streamed-bodies.ts";
import { pathBelow } from "../../service/mounts.ts";
import { resultMessage, toStoredResult } from "./stored.ts";
import { refuseLarge, toValue } from "./value.ts";

/**
 * The arguments as a message; their JSON is a text beside it if the protocol can
 * stream. Throws RESULT_TOO_LARGE.
 */
export function toArgumentsMessage(
  { task, payload }: SubmittedArguments,
  deployment: Deployment,
  bodies: StreamedBodies | undefined,
): TaskArguments {
  const { taskId, endpoint } = task;
  const names = namesOfFiles(payload, deployment.find(endpoint));
  const files = payload.files.map((file, number) => ({
    argument: names.get(number) ?? "",
    filename: file.filename ?? "",
    contentType: file.contentType,
    size: BigInt("blob" in file ? file.blob.size : file.data.byteLength),
  }));
  if (bodies !== undefined) {
    bodies.text = payload.json;
    return create(TaskArgumentsSchema, { files });
  }
  const elsewhere = { what: "the object of arguments", from: `GET ${pathOf(endpoint, taskId)}` };
  refuseLarge(Buffer.byteLength(payload.json), elsewhere);
  const values = toJson(ValueSchema, toValue(payload.json, elsewhere)) as JsonObject;
  return create(TaskArgumentsSchema, { arguments: values, files });
}

/**
 * One file as a message; its bytes are a stream beside it if the protocol can
 * stream. Rejects with REQUEST_INVALID if there is no such file, RESULT_TOO_LARGE
 * or STORAGE_UNAVAILABLE.
 */
export async function toFileMessage(
  { task, payload }: SubmittedArguments,
  number: number,
  {
    deployment,
    bodies,
  }: { readonly deployment: Deployment; readonly bodies: StreamedBodies | undefined },
): Promise<TaskArgumentFile> {
  const { taskId, endpoint } = task;
  const file = payload.files[number];
  if (file === undefined) {
    const { length } = payload.files;
    const files = length === 1 ? "one file, 0" : length === 0 ? "none" : `files 0 to ${length - 1}`;
    const description = `is no file in the arguments of task ${taskId}, which have ${files}`;
    const violations = [{ field: "file", description }];
    throw problem("REQUEST_INVALID", `file: ${number} ${description}`, { violations });
  }
  const { result, filename } =
    "blob" in file
      ? await toStoredResult(payload, file, {
          format: ResultFormat.BODY,
          noun: "file",
          keeper: deployment.files.task,
          bodies,
          from: `GET ${pathOf(endpoint, taskId)}&file=${number}`,
        })
      : resultMessage(file, file.data);
  return create(TaskArgumentFileSchema, {
    filename,
    ...(result.case === "body" && { body: result.value }),
  });
}

function pathOf(endpoint: string, taskId: string): string {
  return `${pathBelow({ name: endpoint }, "arguments")}?task_id=${taskId}`;
}

/**
 * The argument that each file was given for, by the file's number. The endpoint may be that
 * of a later revision, with other arguments: then some have no name.
 */
function namesOfFiles(
  { json, files }: Payload,
  endpoint: EndpointManifest | undefined,
): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  if (files.length === 0 || endpoint === undefined) {
    return names;
  }
  const values = parseLenient(json).value as JsonObject;
  for (const name of Object.keys(endpoint.files)) {
    for (const number of Object.hasOwn(values, name) ? [values[name]].flat() : []) {
      if (typeof number === "number") {
        names.set(number, name);
      }
    }
  }
  return names;
}
