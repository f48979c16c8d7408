/** Loads a packed artifact into a temporary folder. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BuiltArtifact } from "./build-options.ts";
import { digestOf, writeIndex } from "./index-file.ts";
import { unpackArtifact } from "./unpack.ts";

/** An artifact in a temporary folder, which is removed on disposal. */
export type LoadedArtifact = BuiltArtifact & AsyncDisposable;

/**
 * Reads and verifies an artifact from a file that `packArtifact` wrote. Rejects with
 * an `ArtifactError` when the file is invalid.
 */
export async function loadArtifact(path: string): Promise<LoadedArtifact> {
  const temporary = await mkdtemp(join(tmpdir(), "tessera-artifact-"));
  const remove = () => rm(temporary, { recursive: true, force: true });
  try {
    const folder = join(temporary, "artifact");
    const index = await unpackArtifact(path, folder);
    return {
      index,
      digest: digestOf(writeIndex(index)),
      files: new Map(index.files.map((file) => [file.path, join(folder, file.path)])),
      warnings: [],
      [Symbol.asyncDispose]: remove,
    };
  } catch (err) {
    await remove();
    throw err;
  }
}
