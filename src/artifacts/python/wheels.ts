/**
 * The packages that an artifact brings, as its files `wheels/<name>`. A large one is in
 * parts, `wheels/<name>/000` and on, each of which is uploaded by itself.
 */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { FileSource } from "../content.ts";
import type { Wheel } from "../environments/environment.ts";
import { type ArtifactIndex, type IndexedFile, WHEELS_FOLDER } from "../index-file.ts";

/** Part of a package that is uploaded by itself, and again from its start after a broken connection. */
const MAX_WHEEL_PART_BYTES = 64 * 1024 ** 2;

/** The content of an artifact for the packages in these files. */
export async function wheelFiles(paths: readonly string[]): Promise<Map<string, FileSource>> {
  const content = new Map<string, FileSource>();
  for (const path of paths) {
    const { size } = await stat(path);
    const name = `${WHEELS_FOLDER}${basename(path)}`;
    if (size <= MAX_WHEEL_PART_BYTES) {
      content.set(name, path);
      continue;
    }
    for (let start = 0; start < size; start += MAX_WHEEL_PART_BYTES) {
      const number = String(start / MAX_WHEEL_PART_BYTES).padStart(3, "0");
      const end = Math.min(start + MAX_WHEEL_PART_BYTES, size);
      content.set(`${name}/${number}`, { path, start, end });
    }
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
