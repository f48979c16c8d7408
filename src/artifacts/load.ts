/** Loads artifacts: packed ones into a temporary folder, and those that are a manifest only. */
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ArtifactError } from "./artifact-error.ts";
import type { BuiltArtifact } from "./build-options.ts";
import { createRemoteIndex, digestOf, MAX_INDEX_BYTES, writeIndex } from "./index-file.ts";
import { unpackArtifact } from "./unpack.ts";

/** An artifact in a temporary folder, which is removed on disposal. */
type LoadedArtifact = BuiltArtifact & AsyncDisposable;

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

/**
 * Makes the artifact of a service whose workers bring their own code, from a file with its
 * manifest as JSON. Rejects with an `ArtifactError` that says what is wrong with it.
 */
export async function loadManifest(path: string): Promise<BuiltArtifact> {
  const index = createRemoteIndex(await readJson(path));
  return { index, digest: digestOf(writeIndex(index)), files: new Map(), warnings: [] };
}

async function readJson(path: string): Promise<unknown> {
  try {
    if ((await stat(path)).size > MAX_INDEX_BYTES) {
      throw new ArtifactError(`${path} is larger than ${MAX_INDEX_BYTES} bytes`);
    }
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    if (cause instanceof ArtifactError) {
      throw cause;
    }
    const { code } = cause as NodeJS.ErrnoException;
    const fault = code === undefined ? "it is not JSON" : `it cannot be read: ${code}`;
    throw new ArtifactError(`${path}: ${fault}`, { cause });
  }
}
