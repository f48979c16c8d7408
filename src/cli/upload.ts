/**
 * Brings the files of an artifact to the platform: those that it does not have
 * yet, a few at a time. What has arrived is kept for an hour, so an upload
 * that was broken off goes on where it was, by doing the same again.
 */
import type { ArtifactIndex, IndexedFile } from "../artifacts/index-file.ts";
import { errorFacts, type TesseraClient } from "../client/index.ts";
import { CliError, isPassing } from "./failure.ts";

/** What the platform takes in one message. */
const CHUNK_BYTES = 256 * 1024;
/** Small files cost a round trip each, which others go on during. */
const AT_A_TIME = 6;
/** Nothing moves for so long: the connection is lost. */
const STALL_MS = 60_000;
/** A file is begun again so often before the upload is given up. */
const ATTEMPTS = 3;
const PAUSE_MS = 1_000;

/** How far an upload is. */
export interface UploadProgress {
  readonly files: number;
  readonly totalFiles: number;
  /** Of what has to be uploaded. */
  readonly bytes: number;
  readonly totalBytes: number;
}

export interface UploadOptions {
  readonly client: TesseraClient;
  readonly organization: string;
  readonly index: ArtifactIndex;
  /** The content of one file. */
  open(file: IndexedFile): AsyncIterable<Uint8Array>;
  readonly onProgress: (progress: UploadProgress) => void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
  readonly signal: AbortSignal;
}

/** Uploads what is missing; resolves with what that was. */
export async function uploadMissing(options: UploadOptions): Promise<UploadProgress> {
  const missing = await findMissing(options);
  const total = {
    totalFiles: missing.length,
    totalBytes: missing.reduce((sum, { size }) => sum + size, 0),
  };
  let [files, bytes] = [0, 0];
  const report = (): void => options.onProgress({ files, bytes, ...total });
  report();
  const failed = new AbortController();
  const signal = AbortSignal.any([options.signal, failed.signal]);
  const queue = missing.values();
  const uploadInTurn = async (): Promise<void> => {
    for (const file of queue) {
      const onBytes = (count: number): void => {
        bytes += count;
        report();
      };
      await uploadPatiently(file, { ...options, signal, onBytes });
      files += 1;
      report();
    }
  };
  const uploads = Array.from({ length: AT_A_TIME }, () =>
    uploadInTurn().catch((err) => {
      // The others end too; what they say about it is no news.
      failed.abort(err);
      throw err;
    }),
  );
  const outcomes = await Promise.allSettled(uploads);
  options.signal.throwIfAborted();
  if (outcomes.some(({ status }) => status === "rejected")) {
    throw failed.signal.reason;
  }
  return { files, bytes, ...total };
}

/** Each content once: the same one may lie at many places. */
async function findMissing({
  client,
  organization,
  index,
  signal,
}: UploadOptions): Promise<IndexedFile[]> {
  const byDigest = new Map(index.files.map((file) => [file.sha256, file]));
  const { sha256 } = await client.deployments.findMissingFiles(
    { organization, sha256: [...byDigest.keys()] },
    { signal },
  );
  return sha256.flatMap((digest) => byDigest.get(digest) ?? []);
}

type FileOptions = UploadOptions & { readonly onBytes: (count: number) => void };

/** Begins again when the connection broke, not when the platform refused. */
async function uploadPatiently(file: IndexedFile, options: FileOptions): Promise<void> {
  const { onBytes, wait, signal } = options;
  for (let attempt = 1; ; attempt += 1) {
    let sent = 0;
    try {
      await uploadFile(file, {
        ...options,
        onBytes: (count) => {
          sent += count;
          onBytes(count);
        },
      });
      return;
    } catch (err) {
      signal.throwIfAborted();
      if (err instanceof LocalFault) {
        throw err.cause;
      }
      if (!isPassing(err) || attempt === ATTEMPTS) {
        throw err;
      }
      onBytes(-sent);
      await wait(errorFacts(err).retryAfterMs ?? PAUSE_MS * attempt, signal);
    }
  }
}

/** The file on this side could not be read, or has changed. */
class LocalFault extends Error {}

async function uploadFile(file: IndexedFile, options: FileOptions): Promise<void> {
  const { client, organization, open, onBytes } = options;
  const { sha256, size } = file;
  const stalled = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const moved = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => stalled.abort(), STALL_MS);
  };
  let fault: LocalFault | undefined;
  async function* messages() {
    moved();
    yield {
      organization,
      part: { case: "header" as const, value: { sha256, sizeBytes: BigInt(size) } },
    };
    // By hand, because what the connection throws into this generator is no fault of the file.
    const content = open(file)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { done, value: bytes } = await content.next().catch((err) => {
          fault = new LocalFault("the file cannot be sent", { cause: err });
          throw err;
        });
        if (done === true) {
          return;
        }
        for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
          const value = bytes.slice(at, at + CHUNK_BYTES);
          yield { part: { case: "chunk" as const, value } };
          moved();
          onBytes(value.length);
        }
      }
    } finally {
      await content.return?.();
    }
  }
  const signal = AbortSignal.any([options.signal, stalled.signal]);
  try {
    // Without the time limit of other calls: files may be large, and only have to move on.
    await client.deployments.uploadFile(messages(), { signal, timeoutMs: 0 });
  } catch (err) {
    if (stalled.signal.aborted) {
      throw new CliError(
        `the upload does not move on: nothing was taken for ${STALL_MS / 1000} s`,
        { hint: "deploy again: what has arrived is kept for an hour", cause: err },
      );
    }
    throw fault ?? err;
  } finally {
    clearTimeout(timer);
  }
}
