import { glob, realpath, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { ArtifactError } from "./artifact-error.ts";
import { MAX_ARTIFACT_FILES } from "./index-file.ts";

/**
 * The files that match glob patterns from a folder, for files that tracing cannot
 * find. A folder includes everything in it. Rejects with an `ArtifactError` for a
 * pattern without a match.
 */
export async function includedFiles(
  patterns: readonly string[],
  folder: string,
): Promise<string[]> {
  const files = new Set<string>();
  for (const pattern of patterns) {
    if (isAbsolute(pattern)) {
      throw new ArtifactError(
        `--include ${pattern} is absolute; it is read from the service's folder, ${folder}`,
      );
    }
    const before = files.size;
    for await (const name of glob([pattern, `${pattern.replace(/\/+$/, "")}/**`], {
      cwd: folder,
    })) {
      const path = resolve(folder, name);
      if ((await stat(path)).isFile()) {
        files.add(await located(path));
      }
      if (files.size > MAX_ARTIFACT_FILES) {
        throw new ArtifactError(`--include ${pattern} fits more than ${MAX_ARTIFACT_FILES} files`);
      }
    }
    if (files.size === before) {
      throw new ArtifactError(
        `--include ${pattern} fits no file; it is read from the service's folder, ${folder}`,
      );
    }
  }
  return [...files];
}

/** The path under which a file is known: the real path for files of packages. */
async function located(path: string): Promise<string> {
  return path.includes("/node_modules/") ? await realpath(path) : path;
}
