/**
 * The tar format of packed artifacts: ustar (IEEE Std 1003.1, pax) with regular files
 * only. Owner, time and all other metadata are 0.
 */
import { Header, Pax } from "tar";
import { ArtifactError, quoted } from "./artifact-error.ts";
import type { ByteReader } from "./bytes.ts";

const BLOCK = 512;
/** Two empty blocks end an archive. */
const END = Buffer.alloc(2 * BLOCK);
/**
 * Zeros after the end of a tar archive: tar programs fill the last record, of 20 blocks, with
 * them.
 */
const MAX_TAR_PADDING_BYTES = 20 * BLOCK;
/** Extended header of a tar entry, which holds a path that is too long for the ordinary header. */
const MAX_TAR_EXTENDED_HEADER_BYTES = 8 * 1024;

interface TarFile {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly executable: boolean;
}

export interface TarEntry extends TarFile {
  readonly content: AsyncIterable<Uint8Array>;
}

/** Writes entries. The content of each must have exactly `size` bytes. */
export async function* writeTar(
  entries: AsyncIterable<TarEntry>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const entry of entries) {
    yield headerOf(entry);
    yield* entry.content;
    yield Buffer.alloc(padding(entry.size));
  }
  yield END;
}

function headerOf({ path, size, executable }: TarFile): Buffer {
  const header = new Header({
    path,
    size,
    mode: executable ? 0o755 : 0o644,
    type: "File",
    uid: 0,
    gid: 0,
    mtime: new Date(0),
  });
  const needsMore = header.encode();
  const block = header.block ?? Buffer.alloc(BLOCK);
  return needsMore ? Buffer.concat([new Pax({ path }).encode(), block]) : block;
}

/** The header of the next file; undefined at the end. Rejects with an `ArtifactError` for any other entry. */
export async function readHeader(bytes: ByteReader): Promise<TarFile | undefined> {
  const block = await bytes.take(BLOCK);
  if (block.every((byte) => byte === 0)) {
    await readEnd(bytes);
    return undefined;
  }
  const header = decode(block);
  if (header.type !== "ExtendedHeader") {
    return fileOf(header);
  }
  const size = header.size ?? 0;
  if (size > MAX_TAR_EXTENDED_HEADER_BYTES) {
    throw new ArtifactError(`an extended header in the artifact has ${size} bytes`);
  }
  const { path } = Pax.parse((await bytes.take(size)).toString("utf8"));
  await skipPadding(bytes, size);
  const file = fileOf(decode(await bytes.take(BLOCK)));
  return path === undefined ? file : { ...file, path };
}

/** Skips the padding after a file's content. */
export async function skipPadding(bytes: ByteReader, size: number): Promise<void> {
  await bytes.take(padding(size));
}

function decode(block: Buffer): Header {
  let header: Header | undefined;
  try {
    header = new Header(block);
  } catch {
    // An unreadable field; the checksum would be wrong as well.
  }
  if (header?.cksumValid !== true) {
    throw new ArtifactError("the artifact is damaged, or no tar: a header's checksum is wrong");
  }
  return header;
}

function fileOf({ type, path = "", size = 0, mode = 0 }: Header): TarFile {
  if (type !== "File" && type !== "OldFile") {
    throw new ArtifactError(
      `${quoted(path)} in the artifact is of the kind ${type}; it may have regular files only`,
    );
  }
  return { path, size, executable: (mode & 0o100) !== 0 };
}

async function readEnd(bytes: ByteReader): Promise<void> {
  let read = 0;
  for (;;) {
    const chunk = await bytes.takeUpTo(BLOCK);
    if (chunk === undefined) {
      return;
    }
    read += chunk.length;
    if (read > MAX_TAR_PADDING_BYTES || chunk.some((byte) => byte !== 0)) {
      throw new ArtifactError("the artifact goes on after its end");
    }
  }
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}
