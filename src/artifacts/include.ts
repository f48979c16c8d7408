import { glob, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { ArtifactError } from "./artifact-error.ts";
import { MAX_ARTIFACT_FILES } from "./index-file.ts";

/**
 * The files that match glob patterns from a folder, for files that tracing cannot
 * find. A folder includes everything in it. Rejects with an `ArtifactError` for a
 * pattern without a match, and for a file outside the folder, also through a link: a folder that
 * somebody else made would bring what is on this machine to the platform.
 *
 * @param options.around whether files that a pattern names outside the folder are taken, as of the
 * project that it is a part of, and those of the packages that Node finds from there.
 */
export async function includedFiles(
  patterns: readonly string[],
  folder: string,
  { around = false } = {},
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
        files.add(await located(path, folder, around));
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
async function located(path: string, folder: string, around: boolean): Promise<string> {
  const [real, root] = [await realpath(path), await realpath(folder)];
  if (around && isOfPackages(real, root)) {
    return real;
  }
  if (!isWithin(path, folder)) {
    if (around) {
      return path;
    }
    throw new ArtifactError(
      `${path} is outside ${folder}, the folder of the service: copy it there`,
    );
  }
  if (!isWithin(real, root)) {
    throw new ArtifactError(
      `${path} is, or is under, a link to ${real}, outside the folder of the service: put the file itself there (a hard link takes no space), or push weights by tessera model push`,
    );
  }
  return path;
}

/** Whether Node finds packages there: in `node_modules` of the folder, or of one above it. */
function isOfPackages(real: string, root: string): boolean {
  const start = real.indexOf("/node_modules/");
  return start >= 0 && join(root, "/").startsWith(real.slice(0, start + 1));
}

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(join(folder, "/"));
}
