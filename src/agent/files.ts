/**
 * The large files of calls, and the files of the artifact: read from the node from where the last
 * try broke off, and written to it again as a whole. A result is kept on this machine until it is
 * acknowledged, because a node that takes over has nothing of what was written to the one before.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { ArtifactError } from "../artifacts/artifact-error.ts";
import { MAX_INDEX_BYTES } from "../artifacts/index-file.ts";
import { errorFacts } from "../client/error.ts";
import type { Keepers } from "../pool/calls/transfers.ts";
import type { StoredFile } from "../protocol/messages.ts";
import { blobsUnavailable } from "../storage/blobs.ts";
import type { FileKeeper } from "../storage/files/keeper.ts";
import type { WorkerClient } from "./connection.ts";
import { readFileKey } from "./messages.ts";

/** Bytes of one message of a blob. */
const MAX_BLOB_CHUNK_BYTES = 256 * 1024;
/** How long a file is asked for again when nothing of it comes. */
const BLOB_PATIENCE_MS = 60_000;
/** Pause before a file is asked for, or written, again. */
const BLOB_RETRY_PAUSE_MS = 500;

/** How the node is reached now, and by which session. */
export interface SessionAccess {
  readonly client: WorkerClient;
  readonly session: string;
}

export interface BlobSource {
  /** The current access: it changes when the session goes on over another connection. */
  readonly access: () => SessionAccess;
  /** Aborts when the session is over. */
  readonly signal: AbortSignal;
}

type Wanted =
  | { readonly case: "artifactSha256"; readonly value: string }
  | {
      readonly case: "model";
      readonly value: { readonly digest: string; readonly sha256: string };
    }
  | { readonly case: "argument"; readonly value: { readonly id: bigint; readonly index: number } };

/** Reads the index of a model as a whole. */
export async function readModelIndex(
  { access, signal }: BlobSource,
  digest: string,
): Promise<string> {
  const { client, session } = access();
  const source = { case: "model" as const, value: { digest, sha256: "" } };
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const { data } of client.readBlob({ session, source }, { signal })) {
    bytes += data.length;
    if (bytes > MAX_INDEX_BYTES) {
      throw new ArtifactError(`the list of the files of model ${digest} is too large`);
    }
    pieces.push(data);
  }
  return Buffer.concat(pieces).toString();
}

/** Reads a file of `size` bytes. Rejects with STORAGE_UNAVAILABLE when it does not come. */
export async function* readBlob(
  { access, signal }: BlobSource,
  source: Wanted,
  size: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let offset = 0;
  let cameMs = performance.now();
  while (offset < size) {
    try {
      const { client, session } = access();
      const request = { session, source, offset: BigInt(offset) };
      for await (const { data } of client.readBlob(request, { signal })) {
        offset += data.length;
        cameMs = performance.now();
        yield data;
      }
    } catch (err) {
      if (!isPassing(err)) {
        throw err;
      }
      if (signal.aborted || performance.now() - cameMs > BLOB_PATIENCE_MS) {
        throw blobsUnavailable(err);
      }
      await pause(signal);
    }
  }
}

interface RemoteFilesOptions extends BlobSource {
  /** Keeps results on this machine. */
  readonly local: FileKeeper;
}

export class RemoteFiles {
  readonly #options: RemoteFilesOptions;
  readonly keepers: Keepers;

  constructor(options: RemoteFilesOptions) {
    const { local } = options;
    this.#options = options;
    const keeper = {
      keep: local.keep.bind(local),
      release: local.release.bind(local),
      read: ({ blobId, size }: StoredFile["blob"]) => this.#read(blobId, size),
    };
    this.keepers = { task: keeper, api: keeper };
  }

  /** Writes the result of a call to the node. Resolves with its id there. */
  async write(callId: bigint, { blob }: StoredFile): Promise<string> {
    const { access, signal, local } = this.#options;
    for (;;) {
      try {
        const { client, session } = access();
        const written = await client.writeBlob(partsOf({ session, id: callId }, local.read(blob)), {
          signal,
        });
        return written.blobId;
      } catch (err) {
        if (!isPassing(err) || signal.aborted) {
          throw err;
        }
        await pause(signal);
      }
    }
  }

  #read(blobId: string, size: number): AsyncGenerator<Uint8Array, void, undefined> {
    const key = readFileKey(blobId);
    return key
      ? readBlob(this.#options, { case: "argument", value: key }, size)
      : this.#options.local.read({ blobId, size, sha256: "" });
  }
}

async function* partsOf(
  header: { readonly session: string; readonly id: bigint },
  chunks: AsyncIterable<Uint8Array>,
) {
  yield { header };
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += MAX_BLOB_CHUNK_BYTES) {
      yield { data: chunk.subarray(at, at + MAX_BLOB_CHUNK_BYTES) };
    }
  }
}

/** Whether the same may work later: the node was not reached, is busy, or another one goes on. */
function isPassing(err: unknown): boolean {
  const { reason } = errorFacts(err);
  return reason === undefined
    ? err instanceof ConnectError
    : reason.startsWith("WORKER_") ||
        [Code.Unavailable, Code.DeadlineExceeded].includes(ConnectError.from(err).code);
}

async function pause(signal: AbortSignal): Promise<void> {
  await sleep(BLOB_RETRY_PAUSE_MS, undefined, { signal }).catch(() => {
    // Who waits looks at the signal.
  });
}
