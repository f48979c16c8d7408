/** Packs an artifact into one file: a compressed tar of its index and then its files. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { ArtifactError } from "./artifact-error.ts";
import type { BuiltArtifact } from "./build-options.ts";
import { openSource } from "./content.ts";
import { INDEX_NAME, type IndexedFile, writeIndex } from "./index-file.ts";
import { type TarEntry, writeTar } from "./tar.ts";
import { verified } from "./verified.ts";

/**
 * Writes the artifact to a file atomically. Rejects with an `ArtifactError` when a
 * source file has changed since the build.
 */
export async function packArtifact(
  built: BuiltArtifact,
  path: string,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.partial`;
  try {
    await pipeline(
      Readable.from(writeTar(entriesOf(built)), { objectMode: false }),
      createGzip(),
      createWriteStream(unfinished, { flags: "wx" }),
      { ...(signal && { signal }) },
    );
    await rename(unfinished, path);
  } catch (err) {
    await rm(unfinished, { force: true });
    throw err;
  }
}

/** The content of one file of a built artifact, verified while it is read. */
export function openFile(built: BuiltArtifact, file: IndexedFile): AsyncIterable<Uint8Array> {
  const source = built.files.get(file.path);
  if (source === undefined) {
    throw new ArtifactError(`the artifact has no file ${file.path}`);
  }
  return verified(openSource(source), file);
}

async function* entriesOf(built: BuiltArtifact): AsyncGenerator<TarEntry, void, undefined> {
  const text = Buffer.from(writeIndex(built.index));
  const head = { path: INDEX_NAME, size: text.length, executable: false };
  yield { ...head, content: Readable.from([text]) };
  for (const file of built.index.files) {
    yield { ...file, content: openFile(built, file) };
  }
}
