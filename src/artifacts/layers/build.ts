/** The system packages of a service that is built. */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import type { BuildOptions } from "../build-options.ts";
import { type FileSource, indexFiles } from "../content.ts";
import { EnvironmentError } from "../environments/environment.ts";
import { type IndexedFile, SYSTEM_LOCK_NAME } from "../index-file.ts";
import { Apt } from "./apt.ts";

/** A lock as a part of the artifact; empty without one. */
export interface BuiltLock {
  /** By its path in the artifact. */
  readonly content: ReadonlyMap<string, FileSource>;
  readonly files: readonly IndexedFile[];
}

/**
 * The lock of the system packages that the code or the build names, as a file of the artifact;
 * nothing without any. Rejects with an `EnvironmentError`.
 */
export async function lockedPackages(
  { packages: declared = [] }: Pick<ServiceManifest, "packages">,
  options: BuildOptions,
): Promise<BuiltLock> {
  const { packages = [], lockSystem, onStep } = options;
  const names = [...new Set([...declared, ...packages])].toSorted();
  if (names.length === 0) {
    return { content: new Map(), files: [] };
  }
  onStep?.("packages");
  const lock = (await lockSystem?.(names)) ?? (await lockHere(names, options));
  const content = new Map([[SYSTEM_LOCK_NAME, Buffer.from(lock)]]);
  return { content, files: await indexFiles(content) };
}

/** Locks by the apt of this machine. */
async function lockHere(
  names: readonly string[],
  { python, signal }: BuildOptions,
): Promise<string> {
  if (python === undefined) {
    throw new EnvironmentError("ENVIRONMENT_UNAVAILABLE", "system packages are not locked here");
  }
  const { cacheFolder, searchPath, env } = python;
  const folder = join(cacheFolder, "apt");
  await mkdir(folder, { recursive: true });
  const apt = new Apt({ folder: await realpath(folder), searchPath, env, now: Date.now });
  return await apt.lock(names, { signal });
}
