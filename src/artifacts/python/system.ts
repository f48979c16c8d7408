/**
 * The system packages or the image of a service that does not load without them where it is built:
 * what its module names is read without running it, and is made ready in the cache of builds, as a
 * node makes it.
 */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Sandbox } from "../../pool/sandbox/sandbox.ts";
import { ArtifactError } from "../artifact-error.ts";
import type { BuildOptions, PythonBuildOptions } from "../build-options.ts";
import { openSource } from "../content.ts";
import type { SystemNeeds } from "../environments/bentoml.ts";
import { EnvironmentError } from "../environments/environment.ts";
import type { HeldFolder } from "../environments/folder-store.ts";
import type { EnvironmentStore } from "../environments/store.ts";
import { ANYWHERE, lockedImage } from "../images/build.ts";
import { Images } from "../images/images.ts";
import { type BuiltLock, lockedPackages } from "../layers/build.ts";
import { Layers } from "../layers/layers.ts";
import type { SystemFiles } from "../probe.ts";

/** Disk space of the images of builds. */
const MAX_BUILD_IMAGES_BYTES = 50 * 1024 ** 3;
/** Images of builds that were not used for this long are removed. */
const UNUSED_IMAGE_TTL_MS = 7 * 24 * 60 * 60 * 1000;

interface SystemOptions {
  readonly sandbox: Sandbox;
  readonly environments: Pick<EnvironmentStore, "folders">;
  /** The folder of the cache. */
  readonly folder: string;
  readonly python: PythonBuildOptions;
  readonly options: BuildOptions;
}

/** It stays until it is disposed of. */
type HeldSystem = SystemFiles & AsyncDisposable;

/**
 * What a service needs of a system that failed to load without. Throws why it failed, where it needs
 * nothing, or where this machine cannot have it, and says so.
 */
export async function systemFor(
  failure: unknown,
  { packages, image, declared }: SystemNeeds,
  given: SystemOptions,
): Promise<HeldSystem> {
  const { sandbox, options } = given;
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
    if (sandbox.level !== "kernel") {
      throw new EnvironmentError("SANDBOX_UNAVAILABLE", "it has no sandbox of the kernel");
    }
    return root === undefined
      ? await holdPackages(await lockedPackages({}, wanted), given)
      : await holdImage(await lockedImage({ image: root }, options), { ...given, sandbox });
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

async function holdPackages(
  lock: BuiltLock,
  { environments, folder, python, options }: SystemOptions,
): Promise<HeldSystem> {
  const aptFolder = join(folder, "apt");
  await mkdir(aptFolder, { recursive: true });
  const layers = new Layers({
    ...{ folders: environments.folders, aptFolder: await realpath(aptFolder) },
    ...{ searchPath: python.searchPath, env: python.env, now: Date.now },
  });
  const held = await layers.hold({ lock: await textOf(lock) }, progressOf(options));
  return heldUntilDisposed(held, { layer: held.folder });
}

async function holdImage(
  lock: BuiltLock,
  {
    sandbox,
    folder,
    python,
    options,
  }: SystemOptions & { readonly sandbox: Extract<Sandbox, { readonly level: "kernel" }> },
): Promise<HeldSystem> {
  const imagesFolder = join(folder, "images");
  await mkdir(imagesFolder, { recursive: true });
  const images = new Images({
    ...{ sandbox, searchPath: python.searchPath, env: python.env, allowed: ANYWHERE },
    ...{ folder: imagesFolder, maxBytesPerOrganization: MAX_BUILD_IMAGES_BYTES },
    ...{ log: { info() {}, warn() {} }, now: Date.now },
  });
  await images.sweep({ unusedForMs: UNUSED_IMAGE_TTL_MS });
  const held = await images.hold({ lock: await textOf(lock) }, progressOf(options));
  return heldUntilDisposed(held, { image: held.image });
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
