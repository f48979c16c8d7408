/**
 * Where a worker finds its models: by name in a variable, at `/models/<name>` in a sandbox, and
 * those of Hugging Face's hub as its libraries keep them, so that `from_pretrained("org/name")`
 * finds them without the network (the layout of `huggingface_hub`'s cache: `refs/<branch>` has the
 * commit, `snapshots/<commit>` the files).
 */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A model on this machine. */
export interface WorkerModel {
  /** What the service calls it. */
  readonly name: string;
  /** The folder with its files. */
  readonly path: string;
  /** At Hugging Face, such as `Qwen/Qwen3-0.6B`, with its commit. Default: it is of no repository. */
  readonly repository?: string;
  readonly commit?: string;
}

/** The folder, in the worker's own one, that libraries take for their cache. */
const HUB_FOLDER = "hub";

/** The path of a model in a sandbox, whatever it is outside. */
export function modelPathInside(name: string): string {
  return `/models/${name}`;
}

/** The variables by which a worker finds its models. Makes the layout of the hub in its own folder. */
export function modelEnvironment(
  models: readonly WorkerModel[],
  scratchFolder: string,
): { readonly [name: string]: string } {
  if (models.length === 0) {
    return {};
  }
  const hub = join(scratchFolder, HUB_FOLDER);
  const ofHub = models.filter(({ repository, commit }) => repository && commit);
  for (const { path, repository = "", commit = "" } of ofHub) {
    const folder = join(hub, `models--${repository.replaceAll("/", "--")}`);
    mkdirSync(join(folder, "refs"), { recursive: true });
    mkdirSync(join(folder, "snapshots"), { recursive: true });
    writeFileSync(join(folder, "refs/main"), commit);
    const snapshot = join(folder, "snapshots", commit);
    if (!existsSync(snapshot)) {
      symlinkSync(path, snapshot);
    }
  }
  return {
    TESSERA_MODELS: JSON.stringify(
      Object.fromEntries(models.map(({ name, path }) => [name, path])),
    ),
    ...(ofHub.length > 0 && { HF_HUB_CACHE: hub, HF_HUB_OFFLINE: "1" }),
  };
}
