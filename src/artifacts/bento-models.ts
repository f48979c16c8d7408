/**
 * BentoML's store of models on this machine: in the home of BentoML, `models/<name>/<version>` has
 * the files of a version and `models/<name>/latest` which one is the newest.
 *
 * (BentoML's `Store` and `Tag`.)
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { ArtifactError } from "./artifact-error.ts";

const NAME = "[a-z0-9](?:[-._a-z0-9]{0,61}[a-z0-9])?";
const ONE_NAME = new RegExp(`^${NAME}$`);
const SOURCE = new RegExp(`^bentoml://(${NAME})(?::(${NAME}))?$`);
/** A name of 63 characters. */
const MAX_LATEST_BYTES = 256;

export interface BentoModel {
  readonly name: string;
  readonly version: string;
  /** The folder with its files. */
  readonly folder: string;
}

/** The folder of the store. */
export function bentoStore(env: NodeJS.ProcessEnv): string {
  return join(env.BENTOML_HOME || join(env.HOME || homedir(), "bentoml"), "models");
}

/** The name and the version of `bentoml://NAME:VERSION`, `latest` without one; undefined for other text. */
export function parseBentoSource(
  source: string,
): { readonly name: string; readonly version: string } | undefined {
  const [, name, version = "latest"] = SOURCE.exec(source) ?? [];
  return name === undefined ? undefined : { name, version };
}

/**
 * Finds a version in the store as BentoML does: the newest for `latest`, otherwise the one that
 * has this name or alone begins so. Rejects with an `ArtifactError`.
 */
export async function findBentoModel(
  { name, version }: { readonly name: string; readonly version: string },
  env: NodeJS.ProcessEnv,
): Promise<BentoModel> {
  const store = bentoStore(env);
  const folder = join(store, name);
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const versions = entries.flatMap((each) =>
    each.isDirectory() && ONE_NAME.test(each.name) ? [each.name] : [],
  );
  const found = (version: string): BentoModel => ({ name, version, folder: join(folder, version) });
  if (versions.length === 0) {
    throw new ArtifactError(`BentoML has no model ${name} here: ${store} does not have it`);
  }
  if (version === "latest") {
    const newest = versions.length === 1 ? versions[0] : await latestIn(folder);
    if (newest === undefined || !versions.includes(newest)) {
      throw new ArtifactError(
        `${folder}/latest does not say which version of ${name} is the latest`,
      );
    }
    return found(newest);
  }
  const matching = versions.filter((each) => each.startsWith(version));
  const [only] = versions.includes(version) ? [version] : matching;
  if (only === undefined || (only !== version && matching.length > 1)) {
    throw new ArtifactError(
      only === undefined
        ? `BentoML has no version ${version} of the model ${name} here: ${folder} does not have it`
        : `several versions of the model ${name} begin with ${version}: ${matching.toSorted().join(", ")}`,
    );
  }
  return found(only);
}

async function latestIn(folder: string): Promise<string | undefined> {
  try {
    const path = join(folder, "latest");
    const { size } = await stat(path);
    return size > MAX_LATEST_BYTES ? undefined : (await readFile(path, "utf8")).trim();
  } catch {
    return undefined;
  }
}
