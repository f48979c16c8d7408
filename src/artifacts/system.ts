/**
 * The system packages or the image of a service that does not load without them where it is built:
 * what the build names, or in Python the module, which is read without running it, is made ready in
 * the cache of builds, as a node makes it.
 */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Sandbox } from "../pool/sandbox/sandbox.ts";
import { ArtifactError } from "./artifact-error.ts";
import type { BuildOptions, PythonBuildOptions } from "./build-options.ts";
import { openSource } from "./content.ts";
import type { SystemNeeds } from "./environments/bentoml.ts";
import { EnvironmentError } from "./environments/environment.ts";
import {
  FolderStore,
  type FolderStoreOptions,
  type HeldFolder,
} from "./environments/folder-store.ts";
import { ANYWHERE, lockedImage } from "./images/build.ts";
import { Images } from "./images/images.ts";
import { type BuiltLock, lockedPackages } from "./layers/build.ts";
import { Layers } from "./layers/layers.ts";
import type { SystemFiles } from "./probe.ts";

/** Disk space of the images of builds, and of their system packages. */
const MAX_BUILD_SYSTEM_BYTES = 50 * 1024 ** 3;
/** Images and system packages of builds that were not used for this long are removed. */
const UNUSED_SYSTEM_TTL_MS = 7 * 24 * 60 * 60 * 1000;

interface SystemOptions {
  readonly sandbox: Sandbox;
  readonly options: BuildOptions;
}

/** Both, on a machine that can have them. */
interface HoldOptions {
  readonly sandbox: Extract<Sandbox, { readonly level: "kernel" }>;
  readonly options: BuildOptions & { readonly python: PythonBuildOptions };
}

/** It stays until it is disposed of. */
type HeldSystem = SystemFiles & AsyncDisposable;

/**
 * What a service needs of a system that failed to load without. Throws why it failed, where it needs
 * nothing, or where this machine cannot have it, and says so.
 */
export async function systemFor(
  failure: unknown,
  { packages, image, declared }: Pick<SystemNeeds, "packages" | "image" | "declared">,
  { sandbox, options }: SystemOptions,
): Promise<HeldSystem> {
  const wanted = {
    ...options,
    packages: [...(options.packages ?? []), ...packages, ...declared.packages],
  };
  const root = options.image ?? declared.image ?? image;
  if (!(failure instanceof ArtifactError) || (wanted.packages.length === 0 && root === undefined)) {
    throw failure;
  }
  const what = root === undefined ? "system packages" : "image";
  try {
    const { python } = options;
    if (sandbox.level !== "kernel" || python === undefined) {
      throw new EnvironmentError("SANDBOX_UNAVAILABLE", "it has no sandbox of the kernel");
    }
    const given: HoldOptions = { sandbox, options: { ...options, python } };
    return root === undefined
      ? await holdPackages(await lockedPackages({}, wanted), given)
      : await holdImage(await lockedImage({ image: root }, options), given);
  } catch (err) {
    if (!(err instanceof EnvironmentError)) {
      throw err;
    }
    throw new ArtifactError(
      `${failure.message}\n(it was loaded without its ${what}, which this machine cannot have: ${err.message})`,
      { cause: err },
    );
  }
}

async function holdPackages(lock: BuiltLock, { options }: HoldOptions): Promise<HeldSystem> {
  const { cacheFolder, searchPath, env } = options.python;
  const folders = new FolderStore(await storeIn(cacheFolder, "layers"));
  await folders.sweep({ unusedForMs: UNUSED_SYSTEM_TTL_MS });
  const aptFolder = await madeFolder(join(cacheFolder, "apt"));
  const layers = new Layers({ folders, aptFolder, searchPath, env, now: Date.now });
  const held = await layers.hold({ lock: await textOf(lock) }, progressOf(options));
  return heldUntilDisposed(held, { layer: held.folder });
}

async function holdImage(lock: BuiltLock, { sandbox, options }: HoldOptions): Promise<HeldSystem> {
  const { cacheFolder, searchPath, env } = options.python;
  const store = await storeIn(cacheFolder, "images");
  const images = new Images({ ...store, sandbox, searchPath, env, allowed: ANYWHERE });
  await images.sweep({ unusedForMs: UNUSED_SYSTEM_TTL_MS });
  const held = await images.hold({ lock: await textOf(lock) }, progressOf(options));
  return heldUntilDisposed(held, { image: held.image });
}

async function storeIn(cacheFolder: string, name: string): Promise<FolderStoreOptions> {
  return {
    folder: await madeFolder(join(cacheFolder, name)),
    maxBytesPerOrganization: MAX_BUILD_SYSTEM_BYTES,
    log: { info() {}, warn() {} },
    now: Date.now,
  };
}

async function madeFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  return await realpath(path);
}

async function textOf({ content }: BuiltLock): Promise<string> {
  const [source = ""] = content.values();
  return await text(openSource(source));
}

function progressOf({ signal }: BuildOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function heldUntilDisposed(held: HeldFolder, files: SystemFiles): HeldSystem {
  return { ...files, [Symbol.asyncDispose]: async () => held.release() };
}
