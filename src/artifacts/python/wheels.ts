/**
 * The packages that an artifact brings, as its files `wheels/<name>`. A large one is in
 * parts, `wheels/<name>/0000` and on, each of which is uploaded by itself.
 */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { addParts, type FileSource } from "../content.ts";
import type { Wheel } from "../environments/environment.ts";
import { type ArtifactIndex, type IndexedFile, WHEELS_FOLDER } from "../index-file.ts";
import { MAX_PART_BYTES } from "../parts.ts";

/** The content of an artifact for the packages in these files. */
export async function wheelFiles(paths: readonly string[]): Promise<Map<string, FileSource>> {
  const content = new Map<string, FileSource>();
  for (const path of paths) {
    const { size } = await stat(path);
    const name = `${WHEELS_FOLDER}${basename(path)}`;
    if (size <= MAX_PART_BYTES) {
      content.set(name, path);
      continue;
    }
    addParts(content, { path: name, source: path, size });
  }
  return content;
}

/** The packages of an artifact, each from all of its parts. */
export function vendoredWheels(
  { files }: Pick<ArtifactIndex, "files">,
  open: (file: IndexedFile) => AsyncIterable<Uint8Array>,
): readonly Wheel[] {
  const parts = Map.groupBy(
    files.filter(({ path }) => path.startsWith(WHEELS_FOLDER)),
    ({ path }) => path.slice(WHEELS_FOLDER.length).split("/")[0] ?? "",
  );
  // The files of an index are in the order of their paths, and so are the parts.
  return [...parts].map(([name, files]) => ({
    name,
    sha256: files.map(({ sha256 }) => sha256),
    async *open() {
      for (const file of files) {
        yield* open(file);
      }
    },
  }));
}
