/**
 * Validates the chunks of streamed results that a worker sends. Whether a chunk is of a call
 * under way, in its order and within its window, only the execution knows (`received-chunks.ts`).
 */
import type { Attachments } from "../protocol/attachments.ts";
import {
  type Chunk,
  MAX_CHUNKS_PER_MESSAGE,
  MAX_INLINE_RESULT_BYTES,
} from "../protocol/messages.ts";
import { readHead } from "./check-head.ts";
import { isFields, listOf } from "./untrusted.ts";

export function readChunks(chunks: unknown, attachments: Attachments): Chunk[] | undefined {
  return listOf(chunks, MAX_CHUNKS_PER_MESSAGE, (one) => readChunk(one, attachments));
}

function readChunk(value: unknown, attachments: Attachments): Chunk | undefined {
  if (!isFields(value) || !isCount(value.id) || !isCount(value.sequence)) {
    return undefined;
  }
  const { id, sequence } = value;
  const data = readData(value.data, attachments);
  if (data === undefined || value.response === undefined) {
    return data === undefined ? undefined : { id, sequence, data };
  }
  const response = readHead(value.response, attachments);
  return response && sequence === 1 ? { id, sequence, data, response } : undefined;
}

function readData(value: unknown, attachments: Attachments): Chunk["data"] | undefined {
  if (typeof value === "string") {
    return value;
  }
  const data = attachments.take(value, MAX_INLINE_RESULT_BYTES);
  // A copy, because the bytes that came are a view that would keep the whole message alive.
  return data && new Uint8Array(data);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
