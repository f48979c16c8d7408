/**
 * Where a worker finds its models: by name in a variable, at `/models/<name>` in a sandbox, and as
 * the libraries keep them that they are of, which so find them without the network:
 *
 * - Hugging Face's, for `from_pretrained("org/name", revision="v1.0")`: in the cache of
 *   `huggingface_hub`, `refs/<revision>` has a commit and `snapshots/<commit>` its files.
 * - BentoML's, for `bentoml.models.get("reader:v3")`: in its store, `<name>/<version>` has the
 *   files and `<name>/latest` a version.
 */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A model on this machine. */
export interface WorkerModel {
  /** What the service calls it. */
  readonly name: string;
  /** The folder with its files. */
  readonly path: string;
  /** At Hugging Face, such as `Qwen/Qwen3-0.6B`, with its commit. Default: it is of no repository. */
  readonly repository?: string;
  readonly commit?: string;
  /** In BentoML's store, such as `reader:v3`. Default: it is of none. */
  readonly tag?: string;
  /** What the code calls this version: a branch or tag, or BentoML's `latest`. */
  readonly revision?: string;
}

interface Variables {
  readonly [name: string]: string;
}

/** Folders in the worker's own one that libraries take for theirs. */
const HUB_FOLDER = "hub";
const BENTOML_FOLDER = "bentoml";

/** The path of a model in a sandbox, whatever it is outside. */
export function modelPathInside(name: string): string {
  return `/models/${name}`;
}

/** The variables by which a worker finds its models. Makes the libraries' folders in its own one. */
export function modelEnvironment(models: readonly WorkerModel[], scratchFolder: string): Variables {
  if (models.length === 0) {
    return {};
  }
  return {
    TESSERA_MODELS: JSON.stringify(
      Object.fromEntries(models.map(({ name, path }) => [name, path])),
    ),
    ...hubEnvironment(models, join(scratchFolder, HUB_FOLDER)),
    ...bentomlEnvironment(models, join(scratchFolder, BENTOML_FOLDER)),
  };
}

function hubEnvironment(models: readonly WorkerModel[], hub: string): Variables {
  const ofHub = models.flatMap(({ path, repository, commit, revision = "main" }) =>
    repository && commit
      ? [{ path, folder: `models--${repository.replaceAll("/", "--")}`, of: commit, revision }]
      : [],
  );
  for (const [folder, versions] of Map.groupBy(ofHub, (model) => model.folder)) {
    for (const { path, of } of versions) {
      link(path, join(hub, folder, "snapshots", of));
    }
    const refs = unambiguous(versions, "main");
    for (const [ref, commit] of refs) {
      // Git has no branch below another one, either.
      if (!refs.some(([other]) => other.startsWith(`${ref}/`))) {
        write(commit, join(hub, folder, "refs", ref));
      }
    }
  }
  return ofHub.length === 0 ? {} : { HF_HUB_CACHE: hub, HF_HUB_OFFLINE: "1" };
}

function bentomlEnvironment(models: readonly WorkerModel[], home: string): Variables {
  const ofStore = models.flatMap(({ path, tag, revision }) => {
    const [name = "", of = ""] = tag?.split(":") ?? [];
    return tag === undefined ? [] : [{ path, name, of, revision }];
  });
  for (const [name, versions] of Map.groupBy(ofStore, (model) => model.name)) {
    const folder = join(home, "models", name);
    for (const { path, of } of versions) {
      link(path, join(folder, of));
    }
    for (const [ref, version] of unambiguous(versions, "latest")) {
      write(version, join(folder, ref));
    }
  }
  return ofStore.length === 0 ? {} : { BENTOML_HOME: home };
}

interface Version {
  /** The commit, or the version in BentoML's store. */
  readonly of: string;
  readonly revision: string | undefined;
}

/**
 * Revisions with what they are of. One that two of them claim is left out, rather than to be the
 * wrong weights; the default is that of all where the code names it for none.
 */
function unambiguous(versions: readonly Version[], byDefault: string) {
  const named = versions.some(({ revision }) => revision === byDefault)
    ? versions
    : [...versions, ...versions.map(({ of }) => ({ of, revision: byDefault }))];
  return [...Map.groupBy(named, ({ revision }) => revision)].flatMap(
    ([revision, [first, ...others]]): (readonly [string, string])[] =>
      revision !== undefined && first !== undefined && others.every(({ of }) => of === first.of)
        ? [[revision, first.of]]
        : [],
  );
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  // Two names may be of one version.
  if (!existsSync(path)) {
    symlinkSync(target, path);
  }
}

function write(text: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
