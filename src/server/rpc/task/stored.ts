/**
 * Results in the blob store. A protocol that can stream gets them beside its
 * message; for the others, a result has to fit into a message.
 */
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
  ResultFormat,
  type TaskResult,
  TaskResultSchema,
} from "../../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../../errors.ts";
import type { FileKeeper } from "../../../files/keeper.ts";
import type { FileFacts, Payload, StoredFile } from "../../../protocol/messages.ts";
import { BlobMissing } from "../../../storage/blobs.ts";
import { bodyMessage, NO_BYTES } from "../../http/body.ts";
import type { StreamedBodies } from "../../http/streamed-bodies.ts";

/** Result, or arguments, in one RPC message: what gRPC clients take unless they are configured otherwise. */
export const MAX_RESULT_MESSAGE_BYTES = 4 * 1024 * 1024;

/** How a result becomes a message. */
export interface ResultMessageOptions {
  readonly format: ResultFormat;
  /** What errors call it. Default: `result`. */
  readonly noun?: "result" | "file";
  readonly keeper: FileKeeper;
  /** Undefined if the protocol cannot stream. */
  readonly bodies: StreamedBodies | undefined;
  /** True for a result that belongs to this call only and is removed with it. */
  readonly temporary?: boolean;
  /** The path from which larger results can be fetched. */
  readonly path?: string;
}

/** A JSON value as a result. */
export function valueMessage(json: JsonValue): TaskResult {
  const value = fromJson(ValueSchema, json);
  return create(TaskResultSchema, { result: { case: "value", value } });
}

/** A body as a result; `data` is left out if it is streamed beside the message. */
export function resultMessage(
  { contentType, filename = "" }: FileFacts,
  data = NO_BYTES,
): TaskResult {
  const value = bodyMessage(contentType, data);
  return { $typeName: "tessera.v1.TaskResult", result: { case: "body", value }, filename };
}

/**
 * A stored result as a message, or a stream beside it. Rejects with
 * RESULT_TOO_LARGE, STORAGE_UNAVAILABLE, or INTERNAL (data loss) if the blob
 * is missing.
 */
export async function toStoredResult(
  result: Payload,
  file: StoredFile,
  {
    format,
    keeper,
    bodies,
    noun = "result",
    temporary = false,
    path = "its path",
  }: ResultMessageOptions,
): Promise<TaskResult> {
  const { blob } = file;
  const done = (): void => {
    if (temporary) {
      void keeper.release(result);
    }
  };
  if (bodies && format === ResultFormat.BODY) {
    const { size, sha256 } = blob;
    bodies.response = { size, sha256, read: (range) => keeper.read(blob, range), done };
    return resultMessage(file);
  }
  try {
    if (blob.size > MAX_RESULT_MESSAGE_BYTES) {
      throw tooLargeForMessage(`the ${noun}`, blob.size, path);
    }
    const data = await readAll(keeper.read(blob));
    if (format === ResultFormat.BODY || result.text === undefined) {
      return resultMessage(file, data);
    }
    const text = data.toString();
    const isJson = file.contentType === "application/json";
    return valueMessage(isJson ? (JSON.parse(text) as JsonValue) : text);
  } catch (err) {
    throw err instanceof BlobMissing ? lost(err, noun) : err;
  } finally {
    done();
  }
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) {
    all.push(chunk);
  }
  return Buffer.concat(all);
}

/** The error for content that a message cannot hold; `path` is where it can be fetched from. */
export function tooLargeForMessage(what: string, bytes: number, path: string): Error {
  const message = `${what} has ${bytes} bytes, more than a message may have (${MAX_RESULT_MESSAGE_BYTES}): fetch it over HTTP, GET ${path}`;
  return problem("RESULT_TOO_LARGE", message, { code: Code.OutOfRange });
}

function lost(cause: BlobMissing, noun: "result" | "file"): Error {
  const remedy = noun === "result" ? "retry the task to run it again" : "submit the call again";
  const message = `the ${noun} is no longer in the blob store: ${remedy}`;
  return problem("INTERNAL", message, { code: Code.DataLoss, cause });
}
