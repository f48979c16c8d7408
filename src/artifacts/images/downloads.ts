/**
 * Layers of container images as registries give them, by their digests: a download that was broken
 * off goes on with the layers that it lacks, also after its process was killed, and images that are
 * built on one have its layers once.
 *
 *   <folder>/<organization>/sha256/<digest>   whole: skopeo verifies a layer and then renames it
 *   <folder>/<organization>/<download>/       a download under way, with the layers that are half
 *
 * skopeo takes a layer that is there without asking the registry for it. That is why each
 * organization has its own: who names somebody else's layer in a manifest has not thereby been given
 * it. It also takes it as it is, so that each is compared with its digest before.
 *
 * A layer is kept for as long as an image that has it; see `sweep`.
 */
import { createHash, hash, randomUUID } from "node:crypto";
import { constants, createReadStream, type Stats } from "node:fs";
import { link, lstat, mkdir, open, readdir, rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { raceAbort } from "../../time/race.ts";
import { EnvironmentError } from "../environments/environment.ts";
import { readLayout } from "./layout.ts";

/** How long a download waits for others that have begun with a layer that it lacks. */
const OTHERS_TIMEOUT_MS = 5 * 60_000;

/** How often it is said how far a download is. */
const PROGRESS_INTERVAL_MS = 10_000;

/** Whole layers, and with them manifests and configurations. */
const WHOLE_NAME = "sha256";

/** A layer as the manifest describes it. */
export interface ImageLayer {
  /** SHA-256 in hex. */
  readonly digest: string;
  /** Bytes as they are downloaded. */
  readonly size: number;
}

interface DownloadsOptions {
  readonly folder: string;
  /** Disk space of the layers of one organization. */
  readonly maxBytesPerOrganization: number;
  readonly now: () => number;
}

/** Where skopeo puts an image. */
export interface DownloadFolders {
  /** A folder of this download alone. */
  readonly own: string;
  /** The folder in it that becomes the layout. */
  readonly layout: string;
  /** The folder of all blobs, in which that of the layout is. */
  readonly blobs: string;
}

interface Download {
  readonly organizationId: string;
  readonly layers: readonly ImageLayer[];
  /** Fetches what is not there yet. */
  fetch(folders: DownloadFolders): Promise<void>;
  /** The folder that becomes a layout of its own, on the same disk. */
  readonly into: string;
  readonly signal: AbortSignal;
  /** Called with the bytes of its layers that are there, when it begins and then every 10 s. */
  readonly onProgress: (bytes: number) => void;
}

export class Downloads {
  readonly #options: DownloadsOptions;
  /** The layers that downloads need, and the end of each of these. */
  readonly #running = new Map<string, Set<Promise<void>>>();

  constructor(options: DownloadsOptions) {
    this.#options = options;
  }

  /** Removes what was left half. */
  async start(): Promise<void> {
    await this.#removeHalf(() => true);
  }

  /** Downloads an image, all of whose blobs are in the layout when it resolves. */
  async run({ organizationId, layers, fetch, into, signal, onProgress }: Download): Promise<void> {
    const folder = join(this.#options.folder, ownerName(organizationId));
    const whole = join(folder, WHOLE_NAME);
    await mkdir(whole, { recursive: true, mode: 0o700 });
    const paths = [...new Set(layers.map(({ digest }) => join(whole, digest)))];
    const { promise, resolve } = Promise.withResolvers<void>();
    const own = join(folder, randomUUID());
    try {
      await this.#take(paths, promise, signal);
      await this.#keepWhole(paths, signal);
      const bytes = layers.reduce((sum, { size }) => sum + size, 0);
      await this.#trim(whole, this.#options.maxBytesPerOrganization - bytes);
      await mkdir(own);
      const layout = join(own, "oci");
      const look = async (): Promise<void> =>
        onProgress((await sizeOf(paths)) + (await sizeOf(await entriesOf(layout))));
      await look();
      const progress = setInterval(() => void look(), PROGRESS_INTERVAL_MS);
      await fetch({ own, layout, blobs: folder }).finally(() => clearInterval(progress));
      await takeLayout(layout, { whole, layers, into });
    } finally {
      this.#give(paths, promise);
      resolve();
      await rm(own, { recursive: true, force: true });
    }
  }

  /**
   * Removes the layers that no image has, when they were not used for a while, those that were not
   * used for longest where an organization has too many, and what was left half.
   * @param used The layers of the images that are there.
   */
  async sweep({
    used,
    unusedForMs,
  }: {
    readonly used: ReadonlySet<string>;
    readonly unusedForMs: number;
  }): Promise<void> {
    const { folder, now, maxBytesPerOrganization } = this.#options;
    const isOld = ({ mtimeMs }: Stats): boolean => now() - mtimeMs >= unusedForMs;
    await this.#removeHalf(isOld);
    for (const owner of await entriesOf(folder)) {
      const whole = join(owner, WHOLE_NAME);
      for (const { path, name, stats } of await filesIn(whole)) {
        if (!used.has(name) && isOld(stats) && !this.#running.has(path)) {
          await rm(path, { recursive: true, force: true });
        }
      }
      await this.#trim(whole, maxBytesPerOrganization);
    }
  }

  /** Takes the layers, as soon as no other download lacks one that this lacks. */
  async #take(paths: readonly string[], end: Promise<void>, signal: AbortSignal): Promise<void> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(OTHERS_TIMEOUT_MS)]);
    for (;;) {
      const missing = await missingOf(paths);
      signal.throwIfAborted();
      const [other] = missing.flatMap((path) => [...(this.#running.get(path) ?? [])]);
      if (other === undefined || until.aborted) {
        // In the same turn as the look at others.
        for (const path of paths) {
          this.#running.set(path, (this.#running.get(path) ?? new Set()).add(end));
        }
        return;
      }
      await raceAbort(other, until).catch(() => {});
    }
  }

  #give(paths: readonly string[], end: Promise<void>): void {
    for (const path of paths) {
      const ends = this.#running.get(path);
      ends?.delete(end);
      if (ends?.size === 0) {
        this.#running.delete(path);
      }
    }
  }

  /** Removes those of the layers that are not as their digests say; the others are used now. */
  async #keepWhole(paths: readonly string[], signal: AbortSignal): Promise<void> {
    const time = this.#options.now() / 1000;
    for (const path of paths) {
      const stats = await lstat(path).catch(() => undefined);
      if (stats?.isFile() && path.endsWith(`/${await digestOf(path, signal)}`)) {
        await utimes(path, time, time);
      } else if (stats !== undefined) {
        await rm(path, { recursive: true, force: true });
      }
    }
  }

  /** Removes layers that no download needs until all of them take no more, those unused for longest first. */
  async #trim(whole: string, maxBytes: number): Promise<void> {
    const files = await filesIn(whole);
    let bytes = 0;
    for (const { path, stats } of files.toSorted((a, b) => b.stats.mtimeMs - a.stats.mtimeMs)) {
      const isNeeded = this.#running.has(path);
      if (!isNeeded && bytes + stats.size > maxBytes) {
        await rm(path, { recursive: true, force: true });
      } else if (!isNeeded) {
        bytes += stats.size;
      }
    }
  }

  async #removeHalf(isMeant: (stats: Stats) => boolean): Promise<void> {
    for (const owner of await entriesOf(this.#options.folder)) {
      for (const path of await entriesOf(owner)) {
        const stats = await lstat(path).catch(() => undefined);
        if (!path.endsWith(`/${WHOLE_NAME}`) && stats !== undefined && isMeant(stats)) {
          // A skopeo whose node was killed may still write for a moment.
          await rm(path, { recursive: true, force: true, maxRetries: 3 });
        }
      }
    }
  }
}

interface TakenLayout {
  readonly whole: string;
  readonly layers: readonly ImageLayer[];
  readonly into: string;
}

/** Makes a layout with its own names for the blobs, which nobody else changes or removes. */
async function takeLayout(layout: string, { whole, layers, into }: TakenLayout): Promise<void> {
  const { blobs } = await readLayout(layout, whole);
  const [, , ...found] = blobs;
  if (found.join() !== layers.map(({ digest }) => digest).join()) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      "the registry gives another content than the digest of the image says",
    );
  }
  const own = join(into, "blobs/sha256");
  await mkdir(own, { recursive: true });
  for (const name of ["index.json", "oci-layout"]) {
    await rename(join(layout, name), join(into, name));
  }
  for (const digest of new Set(blobs)) {
    await link(join(whole, digest), join(own, digest)).catch((cause: unknown) => {
      // Another process has swept it meanwhile, or the registry gave none.
      throw new EnvironmentError(
        "ENVIRONMENT_UNAVAILABLE",
        `the layer ${digest.slice(0, 12)} of its image was fetched, and is not there: try again`,
        { cause },
      );
    });
  }
}

/** A name for an organization that is one of a folder, whatever it is called. */
function ownerName(organizationId: string): string {
  return hash("sha256", organizationId, "hex").slice(0, 32);
}

/** The paths in a folder; none without the folder. */
async function entriesOf(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(() => [])).map((name) => join(folder, name));
}

interface FoundFile {
  readonly path: string;
  readonly name: string;
  readonly stats: Stats;
}

async function filesIn(folder: string): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const stats = await lstat(path).catch(() => undefined);
    if (stats !== undefined) {
      found.push({ path, name, stats });
    }
  }
  return found;
}

async function missingOf(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(paths.map((path) => lstat(path).catch(() => undefined)));
  return paths.filter((_, index) => found[index] === undefined);
}

/** Bytes of these files, those that are there. */
async function sizeOf(paths: readonly string[]): Promise<number> {
  const found = await Promise.all(paths.map((path) => lstat(path).catch(() => undefined)));
  const sizes = found.map((stats) => (stats?.isFile() ? stats.size : 0));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function digestOf(path: string, signal: AbortSignal): Promise<string> {
  const digest = createHash("sha256");
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  await pipeline(createReadStream("", { fd: await open(path, flags) }), digest, { signal });
  return digest.digest("hex");
}
