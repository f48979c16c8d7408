/**
 * Container images on this machine: each fetched and unpacked once by its digest, and kept and
 * removed as the environments of services in Python are, in the same quota.
 */

import { hash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SharedBound } from "../../collections/shared-bound.ts";
import { removeTree } from "../../deployments/scratch.ts";
import { machineLibraries } from "../../pool/sandbox/bubblewrap.ts";
import { fitLibraries, type WorkerImage } from "../../pool/sandbox/image.ts";
import { EnvironmentError, type EnvironmentProgress } from "../environments/environment.ts";
import {
  FolderStore,
  type FolderStoreOptions,
  type HeldFolder,
  type MakeLimits,
} from "../environments/folder-store.ts";
import { MAX_ENVIRONMENT_FILES, overQuota, withinDisk } from "../environments/install.ts";
import type { LockOptions } from "../layers/apt.ts";
import { Downloads, type ImageLayer } from "./downloads.ts";
import { ownArchitecture, type PinnedImage, readImageLock, writeImageLock } from "./lock.ts";
import { Registry, type RegistryOptions } from "./registry.ts";
import { type ImageVariables, unpackImage } from "./unpack.ts";

/** Why a machine has no images for services. */
export const IMAGES_UNAVAILABLE =
  "its image (image) needs the kernel's sandbox, and this machine has none: its operator installs bubblewrap, or the service does without";

/** Images that are asked for at a time, each by a program that takes some 100 MB for seconds. */
const MAX_PARALLEL_PINS = 8;
/** Images that are fetched and unpacked at a time; a slow registry holds up those of others no more. */
const MAX_PARALLEL_FETCHES = 4;

/** The root in its folder of the store, beside the list of its contents. */
const ROOT_NAME = "root";
/** The variables of the image, there. */
const VARIABLES_NAME = "variables.json";
/** The digests of its layers, there. */
const LAYERS_NAME = "layers.json";
/** Layers as they are downloaded, beside the images. */
const DOWNLOADS_NAME = "downloads";

const MEBIBYTE = 1024 ** 2;

export interface ImagesOptions
  extends RegistryOptions,
    Pick<FolderStoreOptions, "folder" | "maxBytesPerOrganization" | "log" | "now"> {
  /** Files of an image. Default: 250,000. */
  readonly maxFiles?: number;
}

/** A lock, and for whom it is. */
interface ImageSpec {
  readonly lock: string;
  /** Whose quota of disk space it takes. Default: nobody's. */
  readonly organizationId?: string;
}

/** An image that stays until it is released. */
export interface HeldImage extends HeldFolder {
  readonly image: WorkerImage;
}

export class Images {
  readonly #options: ImagesOptions;
  readonly #registry: Registry;
  readonly #folders: FolderStore;
  readonly #downloads: Downloads;
  readonly #pins = new SharedBound(MAX_PARALLEL_PINS);
  readonly #fetches = new SharedBound(MAX_PARALLEL_FETCHES);

  constructor(options: ImagesOptions) {
    this.#options = options;
    this.#registry = new Registry(options);
    this.#folders = new FolderStore({ ...options, maxParallel: MAX_PARALLEL_FETCHES });
    this.#downloads = new Downloads({ ...options, folder: join(options.folder, DOWNLOADS_NAME) });
  }

  /** Removes what was left unfinished. */
  async start(): Promise<void> {
    await this.#folders.start();
    await this.#downloads.start();
  }

  /** Removes images that nobody has held for a while, and layers that no image has; see `FolderStore`. */
  async sweep(options: { readonly unusedForMs: number }): Promise<number> {
    const removed = await this.#folders.sweep(options);
    await this.#downloads.sweep({ ...options, used: await this.#usedLayers() });
    return removed;
  }

  /** The layers of all images that are there. */
  async #usedLayers(): Promise<Set<string>> {
    const { folder } = this.#options;
    const texts = await Promise.all(
      (await readdir(folder).catch(() => [])).map((name) =>
        readFile(join(folder, name, LAYERS_NAME), "utf8").catch(() => "[]"),
      ),
    );
    return new Set(texts.flatMap((text) => JSON.parse(text) as readonly string[]));
  }

  /**
   * Locks an image to what its registry has under this name now, for an organization. Rejects with
   * an `EnvironmentError`.
   */
  async lock(image: string, { organizationId = "", signal }: LockOptions = {}): Promise<string> {
    const pinned = await within(this.#pins, organizationId, () =>
      this.#registry.pin(image, signal),
    );
    const { maxBytesPerOrganization: maxBytes } = this.#options;
    if (pinned.size > maxBytes) {
      throw overQuota(maxBytes);
    }
    return writeImageLock(pinned);
  }

  /** Holds the image of a lock, which is made first if it is not there. Rejects with an `EnvironmentError`. */
  async hold(
    { lock, organizationId = "" }: ImageSpec,
    { onProgress, signal: until }: EnvironmentProgress = {},
  ): Promise<HeldImage> {
    const pinned = readImageLock(lock);
    const machine = machineLibraries();
    if (machine === undefined) {
      throw new EnvironmentError(
        "ENVIRONMENT_UNAVAILABLE",
        "its image is for machines with the GNU C library, such as Debian or Ubuntu, and this one has another",
      );
    }
    const { architecture, name } = pinned;
    if (architecture !== ownArchitecture()) {
      throw new EnvironmentError(
        "LOCK_INVALID",
        `the image ${name} is for linux/${architecture}, and this machine is linux/${ownArchitecture()}: deploy where the workers run on that`,
        { isFinal: true },
      );
    }
    // With its name: who knows a digest has not thereby been given the image by its registry.
    const digest = hash("sha256", `image\n${name}@sha256:${pinned.digest}`, "hex");
    const held = await this.#folders.hold(
      digest,
      {
        what: "an image",
        organizationId,
        make: (unfinished, limits) =>
          within(this.#fetches, organizationId, () =>
            this.#make(pinned, unfinished, { ...limits, organizationId, onProgress }),
          ),
      },
      until,
    );
    try {
      const root = join(held.folder, ROOT_NAME);
      const text = await readFile(join(held.folder, VARIABLES_NAME), "utf8");
      const variables = JSON.parse(text) as ImageVariables;
      return { ...held, image: { root, variables, libraries: await fitLibraries(root, machine) } };
    } catch (err) {
      held.release();
      throw err;
    }
  }

  async #make(
    pinned: PinnedImage,
    unfinished: string,
    { organizationId, maxBytes, signal, onProgress }: MakeOptions,
  ): Promise<void> {
    const { sandbox, searchPath, maxFiles = MAX_ENVIRONMENT_FILES } = this.#options;
    const { name, size } = pinned;
    if (size > maxBytes) {
      throw overQuota(maxBytes);
    }
    const folder = join(unfinished, "work");
    await mkdir(folder, { recursive: true });
    try {
      const limits = { folder: unfinished, maxBytes, maxFiles, signal };
      const layers = await this.#registry.layers(pinned, { folder, signal });
      await withinDisk(limits, (until) =>
        this.#download(pinned, layers, { organizationId, folder, signal: until, onProgress }),
      );
      onProgress?.(`unpacks the image ${name}`);
      const root = join(unfinished, ROOT_NAME);
      const variables = await withinDisk(limits, (until) =>
        unpackImage({ folder, root, maxFiles, sandbox, searchPath, signal: until }),
      );
      await writeFile(join(unfinished, VARIABLES_NAME), JSON.stringify(variables));
      const digests = layers.map(({ digest }) => digest);
      await writeFile(join(unfinished, LAYERS_NAME), JSON.stringify(digests));
    } catch (err) {
      await removeTree(unfinished);
      throw err;
    }
    await rm(folder, { recursive: true, force: true });
  }

  /** Downloads the layers that are not there, into a layout in a folder. */
  async #download(
    pinned: PinnedImage,
    layers: readonly ImageLayer[],
    { organizationId, folder, signal, onProgress }: DownloadOptions,
  ): Promise<void> {
    const { name, size } = pinned;
    const total = Math.ceil(size / MEBIBYTE);
    await this.#downloads.run({
      ...{ organizationId, layers, signal, into: join(folder, "oci") },
      fetch: (folders) => this.#registry.fetch(pinned, folders, signal),
      onProgress(bytes) {
        const done = Math.min(Math.floor(bytes / MEBIBYTE), total);
        onProgress?.(`fetches the image ${name}: ${done} of ${total} MiB`);
      },
    });
  }
}

interface MakeOptions extends MakeLimits, Pick<EnvironmentProgress, "onProgress"> {
  readonly organizationId: string;
}

interface DownloadOptions extends Omit<MakeOptions, "maxBytes"> {
  readonly folder: string;
}

/** Does it in a place that is free for an organization. Rejects with an `EnvironmentError` without. */
async function within<Value>(
  bound: SharedBound,
  organizationId: string,
  run: () => Promise<Value>,
): Promise<Value> {
  if (!bound.take(organizationId)) {
    throw new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      `too many images are fetched now (${bound.refusal(organizationId)}): try again later`,
    );
  }
  try {
    return await run();
  } finally {
    bound.give(organizationId);
  }
}
