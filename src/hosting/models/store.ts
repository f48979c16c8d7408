/**
 * The models on this machine: each version of one once, in a folder named by its digest, read-only
 * for the workers of all deployments that have it.
 *
 *   <folder>/<digest>/         complete and verified; appears by an atomic rename
 *   <folder>/<digest>.partial/ being written, or left when the process ended
 *
 * Files are written and verified part by part. What a process has left is digested again, and only
 * the parts that are not as they should be are read from the blob store. Above the quota, what was
 * not used for longest goes, if no worker has it.
 */
import { createHash } from "node:crypto";
import { renameSync } from "node:fs";
import {
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestOf, INDEX_NAME, type IndexedFile } from "../../artifacts/index-file.ts";
import { verifyModelIndex } from "../../artifacts/model-index.ts";
import { type PlacedFile, placed } from "../../artifacts/parts.ts";
import { verified } from "../../artifacts/verified.ts";
import type { Log } from "../../log/log.ts";
import type { BlobStore } from "../../storage/blobs.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";
import { type OwnFolder, takeFolder } from "../../storage/own-folder.ts";
import { isDiskFull } from "../../storage/unavailable.ts";
import { raceAbort } from "../../time/race.ts";

/** Parts of a model that are read at a time. */
const MAX_PARALLEL_PARTS = 3;
/** Bytes that are read at a time, to verify what is there. */
const MODEL_CHUNK_BYTES = 1024 ** 2;
/** What a model leaves free on the disk. */
const MIN_FREE_MODEL_DISK_BYTES = 512 * 1024 ** 2;
/** How often the progress is told. */
const PROGRESS_INTERVAL_MS = 1_000;

const COMPLETE = /^[0-9a-f]{64}$/;
const PARTIAL = ".partial";
/** What is being removed. */
const GONE = ".gone";

/** How far a model is on its way to this machine. */
export interface ModelProgress {
  readonly bytes: number;
  readonly totalBytes: number;
  /** Of late; undefined: not known yet. */
  readonly bytesPerSecond: number | undefined;
}

export interface HoldModelOptions {
  readonly signal?: AbortSignal;
  /** Called about once a second while it is brought here. */
  readonly onProgress?: (progress: ModelProgress) => void;
}

/** A model on disk that stays there until it is released. */
export interface HeldModel {
  /** The folder with its files. */
  readonly path: string;
  /** A second call does nothing. */
  release(): void;
}

interface ModelStoreOptions {
  /** Created if missing. If another node uses it, this one uses a folder beside it. */
  readonly folder: string;
  /** Of all models together. */
  readonly maxBytes: number;
  readonly hosting: Pick<HostingStorage, "getIndex" | "listArtifactFiles">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly log: Log;
}

interface ModelKey {
  readonly organizationId: string;
  readonly digest: string;
}

interface Bringing {
  readonly path: Promise<string>;
  readonly listeners: Set<(progress: ModelProgress) => void>;
}

export class ModelStore implements AsyncDisposable {
  readonly #options: ModelStoreOptions;
  #folder = "";
  #own: OwnFolder | undefined;
  readonly #brought = new Map<string, Bringing>();
  /** The number of holders of each model. */
  readonly #holders = new Map<string, number>();
  /** One at a time decides what goes, and how much room there is. */
  #making: Promise<void> = Promise.resolve();
  /** Bytes that models on their way will take. */
  readonly #reserved = new Map<string, number>();
  readonly #ended = new AbortController();

  constructor(options: ModelStoreOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#own = await takeFolder(this.#options.folder);
    this.#folder = this.#own.path;
    for (const name of await readdir(this.#folder)) {
      if (name.endsWith(GONE)) {
        await rm(join(this.#folder, name), { recursive: true, force: true });
      }
    }
  }

  /**
   * Holds a version of a model, which is brought here first. Rejects with STORAGE_UNAVAILABLE, with
   * an `ArtifactError` when its files are not what its index says, and with a plain error when it
   * was deleted, or there is no room. When the signal aborts, what has arrived stays for the next.
   */
  async hold(key: ModelKey, { signal, onProgress }: HoldModelOptions = {}): Promise<HeldModel> {
    const { digest } = key;
    this.#holders.set(digest, (this.#holders.get(digest) ?? 0) + 1);
    let isHeld = true;
    const release = (): void => {
      if (isHeld) {
        isHeld = false;
        this.#holders.set(digest, (this.#holders.get(digest) ?? 1) - 1);
        void touch(join(this.#folder, digest));
      }
    };
    const bringing = this.#bring(key);
    if (onProgress !== undefined) {
      bringing.listeners.add(onProgress);
    }
    try {
      const path = await (signal ? raceAbort(bringing.path, signal) : bringing.path);
      return { path, release };
    } catch (err) {
      release();
      throw err;
    } finally {
      if (onProgress !== undefined) {
        bringing.listeners.delete(onProgress);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the node ends"));
    await Promise.allSettled([...this.#brought.values()].map(({ path }) => path));
    this.#own?.[Symbol.dispose]();
  }

  #bring(key: ModelKey): Bringing {
    const known = this.#brought.get(key.digest);
    if (known !== undefined) {
      return known;
    }
    const listeners: Bringing["listeners"] = new Set();
    const path = this.#find(key).then(
      (found) => found ?? this.#fetch(key, (progress) => tell(listeners, progress)),
    );
    const bringing = { path, listeners };
    this.#brought.set(key.digest, bringing);
    path.catch(() => this.#brought.delete(key.digest));
    return bringing;
  }

  /** One from before this process started; its files are digested, for the machine may have lost some. */
  async #find({ digest }: ModelKey): Promise<string | undefined> {
    const path = join(this.#folder, digest);
    const text = await readFile(join(path, INDEX_NAME), "utf8").catch(() => undefined);
    if (text === undefined || digestOf(text) !== digest) {
      await rm(path, { recursive: true, force: true });
      return undefined;
    }
    for (const each of placed(verifyModelIndex(text).index.files)) {
      if (!(await isThere(path, each))) {
        this.#options.log.warn({ digest }, "a model on this machine is damaged: it is mended");
        await rm(`${path}${PARTIAL}`, { recursive: true, force: true });
        await rename(path, `${path}${PARTIAL}`);
        return undefined;
      }
    }
    return path;
  }

  async #fetch(key: ModelKey, onProgress: (progress: ModelProgress) => void): Promise<string> {
    const { organizationId, digest } = key;
    const { hosting, blobs } = this.#options;
    const text = await hosting.getIndex(key);
    if (text === undefined || digestOf(text) !== digest) {
      throw new Error(`there is no model ${digest} any more`);
    }
    const files = placed(verifyModelIndex(text).index.files);
    const totalBytes = files.reduce((sum, { file }) => sum + file.size, 0);
    await this.#makeRoom(digest, totalBytes);
    const path = join(this.#folder, digest);
    const partial = `${path}${PARTIAL}`;
    const openBlob = ({ sha256, size }: IndexedFile): AsyncIterable<Uint8Array> => {
      const blobId = blobIds.get(sha256);
      if (blobId === undefined) {
        throw new Error(`the file ${sha256} of model ${digest} is not in the blob store`);
      }
      return blobs.read(blobId, { start: 0, end: size });
    };
    const progress = new Progress(totalBytes, onProgress);
    let blobIds: ReadonlyMap<string, string> = new Map();
    try {
      const stored = await hosting.listArtifactFiles({ organizationId, digest });
      blobIds = new Map(stored.map(({ sha256, blobId }) => [sha256, blobId]));
      await mkdir(partial, { recursive: true, mode: 0o700 });
      // A worker runs as another user, and only reads.
      await writeAll(files, { folder: partial, openBlob, progress, signal: this.#ended.signal });
      await writeFile(join(partial, INDEX_NAME), text);
      await rename(partial, path);
      return path;
    } catch (err) {
      if (isDiskFull(err)) {
        await rm(partial, { recursive: true, force: true });
        throw new Error(`the disk is full: model ${digest} takes ${mebibytes(totalBytes)}`, {
          cause: err,
        });
      }
      throw err;
    } finally {
      progress.end();
      this.#reserved.delete(digest);
    }
  }

  /** Removes what was not used for longest, until there is room. Rejects where there is too little. */
  #makeRoom(digest: string, bytes: number): Promise<void> {
    const making = this.#making.then(async () => {
      const { maxBytes } = this.#options;
      const others = (await this.#list()).filter(({ name }) => !name.startsWith(digest));
      this.#reserved.delete(digest);
      const reserved = [...this.#reserved.values()].reduce((sum, each) => sum + each, 0);
      let used = others.reduce((sum, each) => sum + each.bytes, reserved);
      const unused = others.filter(({ isUsed }) => !isUsed).sort((a, b) => a.usedMs - b.usedMs);
      for (const { name, bytes: theirs } of unused) {
        if (used + bytes <= maxBytes) {
          break;
        }
        const [path, gone] = [join(this.#folder, name), join(this.#folder, `${name}${GONE}`)];
        // Nothing may hold it from here on: the next caller brings it again.
        if ((this.#holders.get(name.replace(PARTIAL, "")) ?? 0) > 0) {
          continue;
        }
        this.#brought.delete(name);
        renameSync(path, gone);
        await rm(gone, { recursive: true, force: true });
        used -= theirs;
      }
      if (used + bytes > maxBytes) {
        throw new Error(
          `it takes ${mebibytes(bytes)}, and of ${mebibytes(maxBytes)} for models on this machine ${mebibytes(Math.max(0, maxBytes - used))} are free (--max-models)`,
        );
      }
      const { bavail, bsize } = await statfs(this.#folder);
      const there = await bytesIn(join(this.#folder, `${digest}${PARTIAL}`));
      if (bavail * bsize - reserved - (bytes - there) < MIN_FREE_MODEL_DISK_BYTES) {
        throw new Error(
          `the disk has no room: it takes ${mebibytes(bytes)}, and ${mebibytes(bavail * bsize)} are free, of which ${mebibytes(MIN_FREE_MODEL_DISK_BYTES)} stay so`,
        );
      }
      this.#reserved.set(digest, bytes);
    });
    this.#making = making.catch(() => undefined);
    return making;
  }

  async #list() {
    const names = await readdir(this.#folder);
    const models = names.filter((name) => COMPLETE.test(name.replace(PARTIAL, "")));
    return await Promise.all(
      models.map(async (name) => {
        const path = join(this.#folder, name);
        const digest = name.replace(PARTIAL, "");
        const { mtimeMs } = await stat(path);
        const isUsed = (this.#holders.get(digest) ?? 0) > 0;
        // What is on its way counts as what it will take.
        const bytes = this.#reserved.has(digest) ? 0 : await bytesIn(path);
        return { name, bytes, usedMs: mtimeMs, isUsed: isUsed || this.#reserved.has(digest) };
      }),
    );
  }
}

interface Writing {
  readonly folder: string;
  readonly openBlob: (file: IndexedFile) => AsyncIterable<Uint8Array>;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** Writes the parts that are not there, a few at a time. */
async function writeAll(
  files: readonly PlacedFile<IndexedFile>[],
  { folder, openBlob, progress, signal }: Writing,
): Promise<void> {
  const rest = files.values();
  const failed = new AbortController();
  const writeInTurn = async (): Promise<void> => {
    for (const each of rest) {
      signal.throwIfAborted();
      failed.signal.throwIfAborted();
      const { file, path, start } = each;
      const target = join(folder, path);
      await mkdir(dirname(target), { recursive: true, mode: 0o755 });
      if (await isThere(folder, each)) {
        progress.add(file.size);
        continue;
      }
      // Parts of one file are written side by side, each at its place.
      await using opened = await open(target, "a", 0o644).then(async (made) => {
        await made.close();
        return await open(target, "r+");
      });
      let at = start;
      for await (const chunk of verified(openBlob(file), file)) {
        signal.throwIfAborted();
        await opened.write(chunk, 0, chunk.length, at);
        at += chunk.length;
        progress.add(chunk.length);
      }
      await opened.datasync();
    }
  };
  const writers = Array.from({ length: MAX_PARALLEL_PARTS }, () =>
    writeInTurn().catch((err: unknown) => {
      failed.abort(err);
      throw err;
    }),
  );
  const outcomes = await Promise.allSettled(writers);
  if (outcomes.some(({ status }) => status === "rejected")) {
    throw failed.signal.reason;
  }
}

/** Whether a file, or a part of it, is there as its digest says. */
async function isThere(
  folder: string,
  { file, path, start }: PlacedFile<IndexedFile>,
): Promise<boolean> {
  const opened = await open(join(folder, path)).catch(() => undefined);
  if (opened === undefined) {
    return false;
  }
  await using _ = opened;
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(Math.min(MODEL_CHUNK_BYTES, Math.max(file.size, 1)));
  for (let at = 0; at < file.size; ) {
    const length = Math.min(buffer.length, file.size - at);
    const { bytesRead } = await opened.read(buffer, 0, length, start + at);
    if (bytesRead === 0) {
      return false;
    }
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  return hash.digest("hex") === file.sha256;
}

/** Tells about once a second how far it is. */
class Progress {
  readonly #totalBytes: number;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;
  #lastBytes = 0;
  #lastMs = performance.now();

  constructor(totalBytes: number, onProgress: (progress: ModelProgress) => void) {
    this.#totalBytes = totalBytes;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      const rate = ((this.#bytes - this.#lastBytes) / (nowMs - this.#lastMs)) * 1_000;
      [this.#lastBytes, this.#lastMs] = [this.#bytes, nowMs];
      onProgress({
        bytes: this.#bytes,
        totalBytes: this.#totalBytes,
        bytesPerSecond: rate > 0 ? rate : undefined,
      });
    }, PROGRESS_INTERVAL_MS);
    this.#timer.unref();
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

function tell(
  listeners: ReadonlySet<(progress: ModelProgress) => void>,
  progress: ModelProgress,
): void {
  for (const listener of listeners) {
    listener(progress);
  }
}

/** Of the files in a folder; 0 without the folder. */
async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => stat(join(parentPath, name)).then(({ blocks }) => blocks * 512));
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => {
    // It has gone.
  });
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 ** 2)} MiB`;
}
