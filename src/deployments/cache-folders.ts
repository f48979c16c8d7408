/**
 * Cache folders: what the workers of a deployment keep between them and beyond their ends, such as
 * the weights that a library downloads. A deployment has one on each machine, and shares it with
 * no other.
 *
 * What is in it is written by code that nobody trusts, at any time. So a folder is opened through
 * the descriptor of the one around it (`/proc/self/fd`, openat(2) with O_NOFOLLOW), and what is
 * deleted is named in an open folder: a link, or a folder that turns into one, leads nowhere.
 */
import { randomUUID } from "node:crypto";
import { constants, existsSync, mkdirSync } from "node:fs";
import {
  chmod,
  type FileHandle,
  lstat,
  open,
  opendir,
  readdir,
  rename,
  rm,
  rmdir,
  unlink,
} from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../log/log.ts";

/** Interval at which the caches in use are measured. */
const MEASURE_INTERVAL_MS = 5_000;
/** What is waited for each millisecond that measuring took, so that it takes little of a processor. */
const MIN_REST_FACTOR = 20;
/** Entries of one cache; one that has more is emptied. */
const MAX_CACHE_ENTRIES = 200_000;
/** Folders inside one another, each of which takes a descriptor; what is deeper goes up. */
const MAX_CACHE_DEPTH = 64;
/** What is left of the quota when the oldest files have been deleted. */
const MAX_KEPT_SHARE = 0.9;
/** What `stat` counts blocks in. */
const BLOCK_BYTES = 512;

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** O_PATH of Linux, which Node does not name: its descriptor stands for a folder that may not be read. */
const OWN_FOLDER = 0x20_0000 | constants.O_DIRECTORY | constants.O_NOFOLLOW;

interface CacheOptions {
  /** Of all caches of this machine; made when the first one is. */
  readonly folder: string;
  /** Of each cache. 0: there are none. */
  readonly maxBytes: number;
  readonly log: Log;
}

/** A file or a folder in a cache. */
interface Entry {
  /** The names of the folders that it is in, and its own. */
  readonly path: readonly Buffer[];
  readonly bytes: number;
  /** When it was last read or written, in milliseconds since 1970. */
  readonly usedMs: number;
}

export class CacheFolders implements Disposable {
  readonly #options: CacheOptions;
  /** Of the deployments that have workers, or had. */
  readonly #used = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** The folder of a deployment; undefined on a machine that has none. */
  of(deploymentId: string): string | undefined {
    const { folder, maxBytes } = this.#options;
    if (maxBytes === 0 || !existsSync("/proc/self/fd")) {
      return undefined;
    }
    const own = join(folder, deploymentId);
    mkdirSync(own, { recursive: true, mode: 0o700 });
    this.#used.add(deploymentId);
    this.#timer ??= this.#measureIn(MEASURE_INTERVAL_MS);
    return own;
  }

  #measureIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(async () => {
      const beganMs = performance.now();
      await this.measure();
      const tookMs = performance.now() - beganMs;
      if (this.#timer !== undefined) {
        this.#timer = this.#measureIn(Math.max(MEASURE_INTERVAL_MS, tookMs * MIN_REST_FACTOR));
      }
    }, delayMs).unref();
  }

  /** Deletes the files that were not used for longest, in caches that hold more than they may. */
  async measure(): Promise<void> {
    const { folder, maxBytes, log } = this.#options;
    for (const deploymentId of this.#used) {
      try {
        const freed = await trim(join(folder, deploymentId), maxBytes);
        if (freed > 0) {
          log.info({ deploymentId, freed }, "a cache was full: its oldest files were deleted");
        }
      } catch (err) {
        log.warn({ err, deploymentId }, "a cache could not be measured");
      }
    }
  }

  /** Deletes the cache of a deployment that is gone. Its workers have ended. */
  async delete(deploymentId: string): Promise<void> {
    this.#used.delete(deploymentId);
    await rm(join(this.#options.folder, deploymentId), { recursive: true, force: true });
  }

  /** Deletes the caches of all other deployments. */
  async keepOnly(deploymentIds: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#options.folder).catch(() => []);
    for (const name of names) {
      if (!deploymentIds.has(name)) {
        await this.delete(name);
      }
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Deletes the oldest files of a cache that holds more than it may. Returns the bytes freed. */
async function trim(cache: string, maxBytes: number): Promise<number> {
  await using root = await open(cache, FOLDER);
  const entries: Entry[] = [];
  let bytes = 0;
  let isFull = false;
  for await (const entry of entriesOf(root, [])) {
    bytes += entry.bytes;
    entries.push(entry);
    isFull = entries.length > MAX_CACHE_ENTRIES;
    if (isFull) {
      break;
    }
  }
  if (!isFull && bytes <= maxBytes) {
    return 0;
  }
  entries.sort((a, b) => a.usedMs - b.usedMs);
  const kept = maxBytes * MAX_KEPT_SHARE;
  let freed = 0;
  for (const entry of entries) {
    if (!isFull && bytes - freed <= kept) {
      break;
    }
    await remove(root, entry.path);
    freed += entry.bytes;
  }
  return freed;
}

/** What is below an open folder. A folder that is too deep goes to the top, for the next time. */
async function* entriesOf(
  folder: FileHandle,
  above: readonly Buffer[],
  root = folder,
): AsyncGenerator<Entry> {
  const entries = await opendir(at(folder), { encoding: "buffer" as BufferEncoding });
  for await (const entry of entries) {
    const name = entry.name as unknown as Buffer;
    const path = [...above, name];
    const found = await lstat(named(folder, name)).catch(() => undefined);
    if (found !== undefined) {
      const { blocks, atimeMs, mtimeMs } = found;
      yield { path, bytes: blocks * BLOCK_BYTES, usedMs: Math.max(atimeMs, mtimeMs) };
    }
    if (found?.isDirectory() !== true) {
      continue;
    }
    await using inside = await openInside(folder, name);
    if (inside === undefined) {
      continue;
    }
    if (path.length < MAX_CACHE_DEPTH) {
      yield* entriesOf(inside, path, root);
    } else {
      await rename(named(folder, name), named(root, Buffer.from(randomUUID())));
    }
  }
}

/** Opens a folder in another, also where its modes let nobody; undefined for one that is gone. */
async function openInside(folder: FileHandle, name: Buffer): Promise<FileHandle | undefined> {
  try {
    await using own = await open(named(folder, name), OWN_FOLDER);
    await chmod(at(own), 0o700);
    return await open(at(own), constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return undefined;
  }
}

/** Deletes a file, or a folder that is empty; one whose folder is another by now, or a link, is left. */
async function remove(root: FileHandle, path: readonly Buffer[]): Promise<void> {
  await using held = new AsyncDisposableStack();
  let folder = root;
  for (const name of path.slice(0, -1)) {
    const inside = held.use(await openInside(folder, name));
    if (inside === undefined) {
      return;
    }
    folder = inside;
  }
  const own = named(folder, path.at(-1) as Buffer);
  await unlink(own)
    .catch(() => rmdir(own))
    .catch(() => undefined);
}

function at({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}

/** A path by bytes: names need not be UTF-8. */
function named(folder: FileHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${at(folder)}/`), name]);
}
