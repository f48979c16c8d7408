/**
 * The reader of packed artifacts, from an untrusted file or stream. The index comes
 * first and lists what follows. The reader takes the files in that order, and refuses
 * anything else before reading it. So nothing is kept that was not announced and
 * within the limits.
 */
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { ArtifactError, quoted } from "./artifact-error.ts";
import { ByteReader } from "./bytes.ts";
import {
  type ArtifactIndex,
  digestOf,
  INDEX_NAME,
  type IndexedFile,
  MAX_INDEX_BYTES,
  verifyIndex,
} from "./index-file.ts";
import { readHeader, skipPadding } from "./tar.ts";

interface ArtifactReader extends AsyncDisposable {
  readonly index: ArtifactIndex;
  /** The text of the index. */
  readonly text: string;
  readonly digest: string;
  /** The content of the next file, which must be this one. Read it to the end. Not verified. */
  open(file: IndexedFile): AsyncIterable<Uint8Array>;
  /** Rejects with an `ArtifactError` when something follows that is not in the index. */
  end(): Promise<void>;
}

/** Reads the index of an artifact from a file or a stream. Rejects with an `ArtifactError`. */
export async function readArtifact(
  source: string | AsyncIterable<Uint8Array>,
): Promise<ArtifactReader> {
  const bytes = new ByteReader(decompress(source));
  try {
    const text = await readIndexText(bytes);
    const index = verifyIndex(text);
    return {
      index,
      text,
      digest: digestOf(text),
      open: (file) => readFile(bytes, file),
      end: async () => {
        const more = await readHeader(bytes);
        if (more !== undefined) {
          throw new ArtifactError(`${quoted(more.path)} is in the artifact, but not in its index`);
        }
      },
      [Symbol.asyncDispose]: () => bytes[Symbol.asyncDispose](),
    };
  } catch (err) {
    await bytes[Symbol.asyncDispose]();
    throw err;
  }
}

async function readIndexText(bytes: ByteReader): Promise<string> {
  const header = await readHeader(bytes);
  if (header?.path !== INDEX_NAME) {
    throw new ArtifactError(`this is no artifact of tessera: it does not begin with ${INDEX_NAME}`);
  }
  if (header.size > MAX_INDEX_BYTES) {
    throw new ArtifactError(`${INDEX_NAME} is larger than ${MAX_INDEX_BYTES} bytes`);
  }
  const text = await bytes.take(header.size);
  await skipPadding(bytes, header.size);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
  } catch (err) {
    throw new ArtifactError(`${INDEX_NAME} is not UTF-8`, { cause: err });
  }
}

async function* readFile(
  bytes: ByteReader,
  file: IndexedFile,
): AsyncGenerator<Uint8Array, void, undefined> {
  const header = await readHeader(bytes);
  if (header === undefined) {
    throw new ArtifactError(`the artifact lacks ${quoted(file.path)}, which its index has`);
  }
  if (header.path !== file.path) {
    throw new ArtifactError(
      `${quoted(header.path)} is in the artifact where its index has ${quoted(file.path)}`,
    );
  }
  if (header.size !== file.size) {
    throw new ArtifactError(
      `${quoted(file.path)} has ${header.size} bytes, and ${file.size} by the index`,
    );
  }
  yield* bytes.stream(file.size);
  await skipPadding(bytes, file.size);
}

async function* decompress(
  source: string | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const gunzip = createGunzip();
  pipeline(typeof source === "string" ? createReadStream(source) : source, gunzip, () => {
    // The error also comes out of `gunzip`, which is read below.
  });
  try {
    yield* gunzip;
  } catch (err) {
    throw explained(err);
  }
}

function explained(err: unknown): unknown {
  const { code } = err as NodeJS.ErrnoException;
  switch (code) {
    case "Z_BUF_ERROR":
      return new ArtifactError("the artifact is truncated: it ends in the middle", { cause: err });
    case "Z_DATA_ERROR":
      return new ArtifactError("the artifact is damaged, or was not made by tessera build", {
        cause: err,
      });
    default:
      return err;
  }
}
