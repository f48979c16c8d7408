/**
 * Cache folders: what the workers of a deployment keep between them and beyond their ends, such as
 * the weights that a library downloads. A deployment has one on each machine, and shares it with
 * no other.
 *
 * What is in it is written by code that nobody trusts, at any time. So a folder is opened through
 * the descriptor of the one around it (`/proc/self/fd`, openat(2) with O_NOFOLLOW), and what is
 * deleted is named in an open folder: a link, or a folder that turns into one, leads nowhere. What
 * cannot be measured or brought below the quota is a fault, for which workers end.
 */
import { randomUUID } from "node:crypto";
import { constants, existsSync, mkdirSync, utimesSync } from "node:fs";
import {
  chmod,
  type FileHandle,
  lstat,
  open,
  opendir,
  readdir,
  rename,
  rmdir,
  stat,
  unlink,
} from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../log/log.ts";
import { mebibytes, type WorkerCache } from "../pool/limits.ts";
import { removeTree } from "./scratch.ts";

/** Shortest pause between two measurements of a cache. */
const MEASURE_INTERVAL_MS = 5_000;
/** The longest one, after a measurement that took long itself. */
const MAX_MEASURE_PAUSE_MS = 60_000;
/** What is waited for each millisecond that measuring took, so that it takes little of a processor. */
const MIN_REST_FACTOR = 20;
/** Files and folders of one cache; one that has more is a fault. */
const MAX_CACHE_ENTRIES = 50_000;
/** Depth of folders, each of which takes a descriptor. A deeper one is a fault, and is moved to the top. */
const MAX_CACHE_DEPTH = 24;
/** What is left of the quota when the oldest files have been deleted. */
const MAX_KEPT_SHARE = 0.9;
/** How long a cache is kept on a machine that joins and knows of no deployment that is gone. */
const UNUSED_CACHE_TTL_MS = 30 * 24 * 3_600_000;
/** What `stat` counts blocks in. */
const BLOCK_BYTES = 512;

/** O_PATH of Linux, which Node does not name: its descriptor stands for a folder that may not be read. */
const OWN_FOLDER = 0x20_0000 | constants.O_DIRECTORY | constants.O_NOFOLLOW;

interface CacheOptions {
  /** Of all caches of this machine; made when the first one is. */
  readonly folder: string;
  /** The quota of each cache. 0: deployments have no cache. */
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
  readonly #used = new Map<string, MeasuredCache>();

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** The cache of a deployment, by its id; undefined on a machine that has none. */
  of(deploymentId: string): WorkerCache | undefined {
    const { folder, maxBytes, log } = this.#options;
    if (maxBytes === 0 || !existsSync("/proc/self/fd")) {
      return undefined;
    }
    const path = join(folder, deploymentId);
    const known = this.#used.get(deploymentId) ?? new MeasuredCache({ path, maxBytes, log });
    this.#used.set(deploymentId, known);
    return known;
  }

  /** Measures each cache that is in use now. */
  async measure(): Promise<void> {
    await Promise.all([...this.#used.values()].map((cache) => cache.measure()));
  }

  /** Deletes the cache of a deployment that is gone. Its workers have ended. */
  async delete(deploymentId: string): Promise<void> {
    this.#used.get(deploymentId)?.[Symbol.dispose]();
    this.#used.delete(deploymentId);
    await removeTree(join(this.#options.folder, deploymentId));
  }

  /** Deletes the caches of all other deployments. Never rejects. */
  keepOnly(deploymentIds: ReadonlySet<string>): Promise<void> {
    return this.#deleteWhere(async (id) => !deploymentIds.has(id));
  }

  /** Deletes the caches that were in no use for long. Never rejects. */
  deleteUnused(nowMs: number): Promise<void> {
    return this.#deleteWhere(async (id) => {
      const { mtimeMs } = await stat(join(this.#options.folder, id));
      return nowMs - mtimeMs > UNUSED_CACHE_TTL_MS;
    });
  }

  async #deleteWhere(isGone: (deploymentId: string) => Promise<boolean>): Promise<void> {
    const { folder, log } = this.#options;
    for (const deploymentId of await readdir(folder).catch(() => [])) {
      try {
        if (!this.#used.has(deploymentId) && (await isGone(deploymentId))) {
          await this.delete(deploymentId);
        }
      } catch (err) {
        log.warn({ err, deploymentId }, "a cache could not be deleted");
      }
    }
  }

  [Symbol.dispose](): void {
    for (const cache of this.#used.values()) {
      cache[Symbol.dispose]();
    }
  }
}

/** A cache that is measured again and again. */
class MeasuredCache implements WorkerCache, Disposable {
  readonly path: string;
  readonly maxBytes: number;
  readonly #log: Log;
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Workers that use it. */
  #users = 0;

  constructor({
    path,
    maxBytes,
    log,
  }: Pick<WorkerCache, "path" | "maxBytes"> & { readonly log: Log }) {
    this.path = path;
    this.maxBytes = maxBytes;
    this.#log = log;
  }

  use(): Disposable {
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    const now = new Date();
    utimesSync(this.path, now, now);
    this.#users += 1;
    this.#timer ??= this.#measureIn(MEASURE_INTERVAL_MS);
    return {
      [Symbol.dispose]: () => {
        this.#users -= 1;
      },
    };
  }

  fault(): string | undefined {
    return this.#fault;
  }

  async measure(): Promise<void> {
    try {
      const { freed, fault } = await trim(this.path, this.maxBytes);
      this.#fault = fault;
      if (freed > 0) {
        const { path } = this;
        this.#log.info({ path, freed }, "a cache was full: its oldest files were deleted");
      }
    } catch (err) {
      // Of its own folder, which workers cannot replace, or of a machine that lacks descriptors.
      this.#log.warn({ err, path: this.path }, "a cache could not be measured");
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #measureIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(async () => {
      const beganMs = performance.now();
      await this.measure();
      const restMs = (performance.now() - beganMs) * MIN_REST_FACTOR;
      // What is wrong is looked for again, so that the next worker does not end for what is gone.
      if (this.#users === 0 && this.#fault === undefined) {
        this.#timer = undefined;
      } else if (this.#timer !== undefined) {
        const pauseMs = Math.min(Math.max(MEASURE_INTERVAL_MS, restMs), MAX_MEASURE_PAUSE_MS);
        this.#timer = this.#measureIn(pauseMs);
      }
    }, delayMs).unref();
  }
}

interface Trimmed {
  readonly freed: number;
  readonly fault: string | undefined;
}

/** Deletes the oldest files of a cache that holds more than it may. */
async function trim(cache: string, maxBytes: number): Promise<Trimmed> {
  await using own = await open(cache, OWN_FOLDER);
  await chmod(at(own), 0o700);
  await using root = await open(at(own), constants.O_RDONLY | constants.O_DIRECTORY);
  const entries: Entry[] = [];
  const walk: Walk = { root, unmeasured: undefined };
  let bytes = 0;
  for await (const entry of entriesOf(root, [], walk)) {
    bytes += entry.bytes;
    entries.push(entry);
    if (entries.length > MAX_CACHE_ENTRIES) {
      walk.unmeasured = `more than ${MAX_CACHE_ENTRIES} files`;
      break;
    }
  }
  const isFull = entries.length > MAX_CACHE_ENTRIES;
  entries.sort((a, b) => a.usedMs - b.usedMs);
  const kept = isFull ? 0 : maxBytes * MAX_KEPT_SHARE;
  let freed = 0;
  for (const entry of isFull || bytes > maxBytes ? entries : []) {
    if (bytes - freed <= kept) {
      break;
    }
    freed += (await remove(root, entry.path)) ? entry.bytes : 0;
  }
  const left = bytes - freed;
  const over = left > maxBytes ? `${mebibytes(left)} of ${mebibytes(maxBytes)}` : undefined;
  const found = walk.unmeasured ?? over;
  return { freed, fault: found && `out of disk: the cache of its deployment holds ${found}` };
}

interface Walk {
  readonly root: FileHandle;
  /** What cannot be measured; undefined: all was. */
  unmeasured: string | undefined;
}

/** What is below an open folder. */
async function* entriesOf(
  folder: FileHandle,
  above: readonly Buffer[],
  walk: Walk,
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
    if (path.length >= MAX_CACHE_DEPTH) {
      walk.unmeasured = `folders that are more than ${MAX_CACHE_DEPTH} deep`;
      const top = named(walk.root, Buffer.from(randomUUID()));
      await rename(named(folder, name), top).catch(() => undefined);
      continue;
    }
    await using inside = await openInside(folder, name);
    if (inside !== undefined) {
      yield* entriesOf(inside, path, walk);
    } else if (await isThere(named(folder, name))) {
      walk.unmeasured = "a folder that cannot be read";
    }
  }
}

/** Opens a folder in another, also where its modes let nobody; undefined where that fails. */
async function openInside(folder: FileHandle, name: Buffer): Promise<FileHandle | undefined> {
  try {
    await using own = await open(named(folder, name), OWN_FOLDER);
    await chmod(at(own), 0o700);
    return await open(at(own), constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return undefined;
  }
}

async function isThere(path: Buffer): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() === true;
}

/** Deletes a file, or a folder that is empty; false for one whose folder is another by now, or a link. */
async function remove(root: FileHandle, path: readonly Buffer[]): Promise<boolean> {
  await using held = new AsyncDisposableStack();
  let folder = root;
  for (const name of path.slice(0, -1)) {
    const inside = held.use(await openInside(folder, name));
    if (inside === undefined) {
      return false;
    }
    folder = inside;
  }
  const own = named(folder, path.at(-1) as Buffer);
  return await unlink(own)
    .catch(() => rmdir(own))
    .then(
      () => true,
      () => false,
    );
}

function at({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}

/** A path by bytes: names need not be UTF-8. */
function named(folder: FileHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${at(folder)}/`), name]);
}
