/**
 * Results in the blob store. A protocol that can stream gets them beside its
 * message; for the others, a result has to fit into a message.
 */
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  ResultFormat,
  type TaskResult,
  TaskResultSchema,
} from "../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../errors.ts";
import type { FileFacts, Payload, StoredFile } from "../../protocol/messages.ts";
import { bodyMessage, NO_BYTES } from "../../server/http/body.ts";
import type { StreamedBodies } from "../../server/http/streamed-bodies.ts";
import { BlobMissing } from "../../storage/blobs.ts";
import type { FileKeeper } from "../../storage/files/keeper.ts";
import { type Elsewhere, refuseLarge, toValue } from "./value.ts";

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
  /** The method and the path by which larger results can be had. */
  readonly from: string;
}

/** A JSON value as a result. Throws RESULT_TOO_LARGE for one that a message cannot hold. */
export function valueMessage(text: string, elsewhere: Elsewhere): TaskResult {
  const value = toValue(text, elsewhere);
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
  { format, keeper, bodies, noun = "result", temporary = false, from }: ResultMessageOptions,
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
    const elsewhere = { what: `the ${noun}`, from };
    refuseLarge(blob.size, elsewhere);
    const data = await readAll(keeper.read(blob));
    if (format === ResultFormat.BODY || result.text === undefined) {
      return resultMessage(file, data);
    }
    const text = data.toString();
    const isJson = file.contentType === "application/json";
    return valueMessage(isJson ? text : JSON.stringify(text), elsewhere);
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

function lost(cause: BlobMissing, noun: "result" | "file"): Error {
  const remedy = noun === "result" ? "retry the task to run it again" : "submit the call again";
  const message = `the ${noun} is no longer in the blob store: ${remedy}`;
  return problem("INTERNAL", message, { code: Code.DataLoss, cause });
}
