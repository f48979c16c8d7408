/** The source files of a service in Python, and which of them it is imported from. */
import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import type { ServiceEntry } from "../../protocol/messages.ts";
import { ArtifactError } from "../artifact-error.ts";
import { ServiceFileError } from "../bundle.ts";
import type { FileSource } from "../content.ts";
import { includedFiles } from "../include.ts";
import { LOCK_NAME, MAX_ARTIFACT_FILES, WHEELS_FOLDER } from "../index-file.ts";
import { findFile, sourcesIn } from "./service.ts";

export interface PythonSources {
  /** The folder that becomes the artifact's root. */
  readonly root: string;
  /** The path of the service's file, from the root. */
  readonly entry: string;
  /** By path in the artifact. */
  readonly content: ReadonlyMap<string, FileSource>;
}

/** Rejects with a `ServiceFileError` or an `ArtifactError` that names what is wrong. */
export async function pythonSources(
  { module }: ServiceEntry,
  include: readonly string[],
): Promise<PythonSources> {
  const isFile = module.endsWith(".py");
  const file = isFile ? await findFile(module) : undefined;
  const root = file === undefined ? await realpath(process.cwd()) : dirname(file);
  const entry = file === undefined ? fileOfModule(module, root) : basename(file);
  const found = await sourcesIn(root, MAX_ARTIFACT_FILES + 1);
  const content = new Map<string, FileSource>([[entry, join(root, entry)]]);
  for (const path of [...found, ...(await includedFiles(include, root))]) {
    const place = relative(root, path).split(sep).join("/");
    if (place.startsWith("../")) {
      throw new ArtifactError(
        `${path} is outside ${root}, the folder of the service; copy it there`,
      );
    }
    if (place === LOCK_NAME || place.startsWith(WHEELS_FOLDER)) {
      throw new ArtifactError(
        `${path} has the name of a file of the artifact's own; give it another name`,
      );
    }
    content.set(place, path);
  }
  return { root, entry, content };
}

function fileOfModule(module: string, root: string): string {
  const path = module.replaceAll(".", "/");
  const found = [`${path}.py`, `${path}/__init__.py`].find((each) => existsSync(join(root, each)));
  if (found === undefined) {
    throw new ServiceFileError(`there is no module ${module} in ${root}`);
  }
  return found;
}
