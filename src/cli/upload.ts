/**
 * Uploads the files of an artifact or a model that the platform does not have, a few at a
 * time. The platform keeps uploaded files for 36 hours, so a repeated upload
 * resumes where an interrupted one stopped.
 */
import type { ArtifactIndex, IndexedFile } from "../artifacts/index-file.ts";
import { errorFacts, type TesseraClient } from "../client/index.ts";
import { isPassing } from "./describe.ts";
import { CliError } from "./failure.ts";

/** Chunk of a file's upload: what the platform takes in one message. */
const UPLOAD_CHUNK_BYTES = 256 * 1024;
/** Files uploaded at a time: small ones cost a round trip each, and others go on meanwhile. */
const MAX_PARALLEL_UPLOADS = 6;
/** How long an upload may stand still before its connection counts as lost. */
const UPLOAD_STALL_TIMEOUT_MS = 60_000;
/** Attempts at one file before the upload is given up. */
const MAX_UPLOAD_ATTEMPTS = 3;
/**
 * Pause before an upload's next attempt, times the number of attempts, where the server names
 * none.
 */
const UPLOAD_RETRY_PAUSE_MS = 1_000;

/** The progress of an upload. */
export interface UploadProgress {
  readonly files: number;
  readonly totalFiles: number;
  /** Uploaded bytes, of `totalBytes`. */
  readonly bytes: number;
  readonly totalBytes: number;
}

interface UploadOptions {
  readonly client: TesseraClient;
  readonly organization: string;
  readonly index: Pick<ArtifactIndex, "files">;
  /** Opens the content of one file. */
  open(file: IndexedFile): AsyncIterable<Uint8Array>;
  readonly onProgress: (progress: UploadProgress) => void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
  readonly signal: AbortSignal;
}

/** Uploads missing files; resolves with their totals. */
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
  const uploads = Array.from({ length: MAX_PARALLEL_UPLOADS }, () =>
    uploadInTurn().catch((err) => {
      // The other uploads end too; their errors are only consequences.
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

/** Finds the missing files; each content counts once, even when it is at several paths. */
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

/** Retries after a broken connection, but not after a refusal. */
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
      if (!isPassing(err) || attempt === MAX_UPLOAD_ATTEMPTS) {
        throw err;
      }
      onBytes(-sent);
      await wait(errorFacts(err).retryAfterMs ?? UPLOAD_RETRY_PAUSE_MS * attempt, signal);
    }
  }
}

/** The local file could not be read, or has changed. */
class LocalFault extends Error {}

async function uploadFile(file: IndexedFile, options: FileOptions): Promise<void> {
  const { client, organization, open, onBytes } = options;
  const { sha256, size } = file;
  const stalled = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const moved = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => stalled.abort(), UPLOAD_STALL_TIMEOUT_MS);
  };
  let fault: LocalFault | undefined;
  async function* messages() {
    moved();
    yield {
      organization,
      part: { case: "header" as const, value: { sha256, sizeBytes: BigInt(size) } },
    };
    // Iterates by hand: an error that the connection throws into this generator is
    // not the file's.
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
        for (let at = 0; at < bytes.length; at += UPLOAD_CHUNK_BYTES) {
          const value = bytes.slice(at, at + UPLOAD_CHUNK_BYTES);
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
    // No timeout: files may be large, and only need to make progress.
    await client.deployments.uploadFile(messages(), { signal, timeoutMs: 0 });
  } catch (err) {
    if (stalled.signal.aborted) {
      throw new CliError(
        `the upload does not move on: nothing was taken for ${UPLOAD_STALL_TIMEOUT_MS / 1000} s`,
        {
          hint: "the same command goes on from there: what has arrived is kept for 36 hours",
          cause: err,
        },
      );
    }
    throw fault ?? err;
  } finally {
    clearTimeout(timer);
  }
}
