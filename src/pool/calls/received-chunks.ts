/**
 * The chunks of one call as the node receives them: in their order, within the window of the call,
 * in the form that the endpoint declares.
 */
import type { StreamManifest } from "../../protocol/manifest.ts";
import {
  type Chunk,
  MAX_INLINE_FILE_BYTES,
  type PackedPayload,
  unpackPayload,
} from "../../protocol/messages.ts";
import { STREAM_WINDOW_BYTES, StreamWindow } from "../../protocol/stream-window.ts";

/** A piece of a streamed result: the JSON text of a value, a text, or bytes. */
export type Piece = string | Uint8Array;

/** Consumed chunks that are told to the worker together: each message costs more than a piece. */
const TOLD_TOGETHER_BYTES = STREAM_WINDOW_BYTES / 2;

export class ReceivedChunks {
  readonly #form: StreamManifest["pieces"];
  #received = 0;
  /** As the worker knows it: what it was not told is not consumed. */
  readonly #window = new StreamWindow();
  /** Consumed, and not told to the worker yet. */
  #consumed = 0;

  constructor({ pieces }: StreamManifest) {
    this.#form = pieces;
  }

  /** The piece in a chunk; undefined for a forged one. */
  take({ sequence, data }: Chunk): Piece | undefined {
    if (sequence !== this.#received + 1 || !this.#window.isOpen) {
      return undefined;
    }
    this.#received = sequence;
    this.#window.sent(data);
    if (this.#form !== "bytes") {
      return typeof data === "string" ? data : textOf(data);
    }
    return typeof data === "string" || data.byteLength > MAX_INLINE_FILE_BYTES ? undefined : data;
  }

  /** These many were consumed. Returns how many to report to the worker; 0 for none yet. */
  consumed(count: number): number {
    this.#consumed += count;
    if (this.#window.costOf(this.#consumed) < TOLD_TOGETHER_BYTES) {
      return 0;
    }
    const told = this.#consumed;
    this.#consumed = 0;
    this.#window.consumed(told);
    return told;
  }

  /** True for the result of a call that sent as many chunks as arrived. */
  isEnd(result: PackedPayload): boolean {
    // Beside it can stand what the function says of an answer without pieces.
    const { json, ...rest } = unpackPayload(result);
    const isBareOrSaid = typeof result === "string" || rest.response !== undefined;
    const isCount = rest.files.length === 0 && rest.text === undefined && isBareOrSaid;
    return isCount && json === String(this.#received);
  }
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
