/**
 * The large files of calls on another machine. Nothing is moved when a call begins: the worker
 * asks for a file of its arguments, and stores its result before it names it. A result can name
 * only what was stored for its own call.
 */
import { problem } from "../../errors.ts";
import {
  type FileOnDisk,
  type FileValue,
  headsOf,
  jsonOf,
  type Payload,
  type SentPayload,
  type StoredFile,
} from "../../protocol/messages.ts";
import type { Execution } from "../calls/execution.ts";
import type { Keepers, TransferHost, Transfers } from "../calls/transfers.ts";

/** UTF-8 bytes per UTF-16 code unit. */
const MAX_BYTES_PER_CHARACTER = 3;

export interface RemoteTransfersOptions {
  readonly keepers: Keepers;
  /** Limit of a result that is a file, in bytes. */
  readonly maxFileBytes: number;
  /** Limit of any other result, in UTF-16 code units. */
  readonly maxResultBytes: number;
}

interface CallFiles {
  readonly kind: Execution["call"]["kind"];
  readonly arguments: Payload["files"];
  /** What was stored as its result, the last one. */
  result: StoredFile | undefined;
}

export class RemoteTransfers implements Transfers {
  readonly #options: RemoteTransfersOptions;
  readonly #host: TransferHost;
  readonly #calls = new Map<number, CallFiles>();

  constructor(options: RemoteTransfersOptions, host: TransferHost) {
    this.#options = options;
    this.#host = host;
  }

  holds(): boolean {
    return false;
  }

  isCollecting(): boolean {
    return false;
  }

  stage({ call }: Execution, payload: Payload, begin: (sent: SentPayload) => void): void {
    this.#calls.set(call.id, { kind: call.kind, arguments: payload.files, result: undefined });
    begin({ json: jsonOf(payload), files: payload.files.map(sentFile), ...headsOf(payload) });
  }

  /** The bytes of a file of the arguments, from an offset on. Throws for one that is not there. */
  read(callId: number, index: number, range: { readonly offset: number; readonly length: number }) {
    const call = this.#calls.get(callId);
    const file = call?.arguments[index];
    if (call === undefined || file === undefined || !("blob" in file)) {
      throw problem("REQUEST_INVALID", `call ${callId} has no large file ${index}`);
    }
    const { blob } = file;
    const end = range.length === 0 ? blob.size : range.offset + range.length;
    if (range.offset > blob.size || end > blob.size) {
      throw problem("BLOB_RANGE_INVALID", `the file has ${blob.size} bytes`);
    }
    return this.#options.keepers[call.kind].read(blob, { start: range.offset, end });
  }

  /** Stores the result of a call. Throws for a call that is not under way, or when it is too large. */
  async write(execution: Execution | undefined, chunks: AsyncIterable<Uint8Array>) {
    if (execution === undefined) {
      throw problem("REQUEST_INVALID", "the call is not under way");
    }
    const { id, kind } = execution.call;
    const keeper = this.#options.keepers[kind];
    const { maxFileBytes, maxResultBytes } = this.#options;
    const maxBytes = Math.max(maxFileBytes, maxResultBytes * MAX_BYTES_PER_CHARACTER);
    const stored = await keeper.keep({ contentType: "" }, bounded(chunks, maxBytes), 0);
    if (!("blob" in stored) || !this.#host.isUnderWay(id)) {
      await keeper.release({ json: "", files: [stored] });
      throw problem("REQUEST_INVALID", "the call is not under way, or the result is empty");
    }
    const call = this.#calls.get(id) ?? { kind, arguments: [], result: undefined };
    const before = call.result;
    this.#calls.set(id, { ...call, result: stored });
    if (before) {
      await keeper.release({ json: "", files: [before] });
    }
    return stored.blob;
  }

  collect(execution: Execution | undefined, sent: SentPayload): void {
    if (execution === undefined) {
      return;
    }
    const { id } = execution.call;
    const stored = this.#calls.get(id)?.result;
    const [file] = sent.files;
    const named = sent.text ?? file;
    if (stored === undefined || named === undefined || "data" in named || sent.files.length > 1) {
      this.#fail(id, "OUTPUT_INVALID", "the worker named a result that it had not stored");
      return;
    }
    const { maxFileBytes, maxResultBytes } = this.#options;
    const maxBytes = sent.text ? maxResultBytes * MAX_BYTES_PER_CHARACTER : maxFileBytes;
    const { size } = stored.blob;
    if (size > maxBytes) {
      const message = `the result has ${size} bytes, which is more than the limit of ${maxBytes}: return less`;
      this.#fail(id, "RESULT_TOO_LARGE", message);
      return;
    }
    // From here on it belongs to the result.
    this.#calls.delete(id);
    const { contentType, filename } = named;
    const kept = { contentType, ...(filename !== undefined && { filename }), blob: stored.blob };
    const result: Payload = sent.text
      ? { json: "", files: [], text: kept, ...headsOf(sent) }
      : { json: sent.json, files: [kept], ...headsOf(sent) };
    this.#host.settle(id)?.succeed(result);
  }

  ended(callId: number): void {
    const call = this.#calls.get(callId);
    this.#calls.delete(callId);
    if (call?.result) {
      void this.#options.keepers[call.kind].release({ json: "", files: [call.result] });
    }
  }

  #fail(id: number, reason: "OUTPUT_INVALID" | "RESULT_TOO_LARGE", message: string): void {
    this.#host.settle(id)?.fail({ code: "internal", reason, message });
  }
}

function sentFile(file: FileValue | StoredFile): FileValue | FileOnDisk {
  if ("data" in file) {
    return file;
  }
  const { blob, ...facts } = file;
  return { ...facts, size: blob.size };
}

async function* bounded(chunks: AsyncIterable<Uint8Array>, maxBytes: number) {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw problem("RESULT_TOO_LARGE", `the result has more than ${maxBytes} bytes: return less`);
    }
    yield chunk;
  }
}
