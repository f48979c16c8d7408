/**
 * Folders on this machine that are made of a lock, each named by the digest of all that it is made
 * of. It is made once under another name and renamed, so that it is there complete or not at all.
 *
 *   <folder>/<digest>/           complete
 *   <folder>/<digest>.*.partial  being made, or left unfinished
 *
 * A folder from before this process started is trusted only after its files were compared
 * with its list of contents, before the first worker that uses it. Large files that several
 * folders have are there once, as links.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log/log.ts";
import { raceAbort } from "../../time/race.ts";
import { Semaphore } from "../../time/semaphore.ts";
import {
  type Contents,
  readContents,
  shareContents,
  verifyContents,
  writeContents,
} from "./contents.ts";
import { OversizedError } from "./environment.ts";
import { overQuota } from "./install.ts";

/** Environments that are made at a time: each downloads, unpacks and compiles in parallel. */
const MAX_PARALLEL_INSTALLS = 2;

const DIGEST = /^[0-9a-f]{64}$/;

export interface FolderStoreOptions {
  /** Created if missing; its real path. Other processes may use it, but not sweep it. */
  readonly folder: string;
  /** Disk space of the folders that one organization uses. */
  readonly maxBytesPerOrganization: number;
  /** Folders that are made at a time. Default: 2. */
  readonly maxParallel?: number;
  /** Called after a sweep that removed folders. Default: nothing else is to be removed. */
  readonly onRemoved?: () => Promise<void>;
  readonly log: Pick<Log, "info" | "warn">;
  readonly now: () => number;
}

/** How a folder is made that is not there. */
interface FolderRecipe {
  /** What it is, for the log, such as `an environment for Python`. */
  readonly what: string;
  /** Whose quota of disk space it takes. */
  readonly organizationId: string;
  /** Fills the folder, which it creates. */
  make(unfinished: string, limits: MakeLimits): Promise<void>;
}

export interface MakeLimits {
  /** Disk space that it may take. */
  readonly maxBytes: number;
  /** Aborts when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

/** A folder that stays until it is released. */
export interface HeldFolder {
  readonly folder: string;
  /**
   * Verifies its files, once. Rejects when they were damaged: by then it is made again, and what
   * is started next finds it whole.
   */
  verify(): Promise<void>;
  /** A second call does nothing. */
  release(): void;
}

interface Made {
  readonly folder: string;
  readonly contents: Contents;
  /** Resolves when its files are verified; undefined until somebody asks. */
  verified: Promise<void> | undefined;
}

interface Making {
  readonly made: Promise<Made>;
  /** Whose quota it takes. */
  readonly organizationId: string;
  /** Those who wait for it; it is broken off when none does any more. */
  waiting: number;
  readonly abort: AbortController;
}

export class FolderStore {
  readonly #options: FolderStoreOptions;
  readonly #known = new Map<string, Making>();
  /** The organizations of those who hold a folder. */
  readonly #holders = new Map<string, string[]>();
  readonly #installs: Semaphore;
  #sweeping: Promise<unknown> = Promise.resolve();

  constructor(options: FolderStoreOptions) {
    this.#options = options;
    this.#installs = new Semaphore(options.maxParallel ?? MAX_PARALLEL_INSTALLS);
  }

  /** Removes what was left unfinished. */
  async start(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(folder)) {
      if (name.endsWith(".partial")) {
        await rm(join(folder, name), { recursive: true, force: true });
      }
    }
  }

  /** Whether the folder is made in this life of the process, or is being made. */
  knows(digest: string): boolean {
    return this.#known.has(digest);
  }

  /** Holds a folder, which is made first if it is not there. Rejects as its recipe does. */
  async hold(digest: string, recipe: FolderRecipe, signal?: AbortSignal): Promise<HeldFolder> {
    const { organizationId } = recipe;
    const organizations = this.#holders.get(digest) ?? [];
    this.#holders.set(digest, [...organizations, organizationId]);
    let isHeld = true;
    const release = (): void => {
      if (isHeld) {
        isHeld = false;
        const all = this.#holders.get(digest) ?? [];
        const others = all.toSpliced(all.indexOf(organizationId), 1);
        if (others.length > 0) {
          this.#holders.set(digest, others);
        } else {
          this.#holders.delete(digest);
        }
      }
    };
    try {
      await this.#sweeping;
      const { folder } = await this.#open(digest, recipe, signal);
      return {
        folder,
        // Long after it is held, and whatever became of the signal.
        verify: () => this.#verify(digest, () => this.#open(digest, recipe)),
        release,
      };
    } catch (err) {
      release();
      throw err;
    }
  }

  /**
   * Removes the folders that nobody has held for a while, and those that were not used for
   * longest while all of them take more disk than one organization may; resolves with their number.
   */
  async sweep({ unusedForMs }: { readonly unusedForMs: number }): Promise<number> {
    await this.#sweeping;
    const removing = this.#sweep(unusedForMs);
    // A `hold` of one of them waits for the sweep, and then makes it again.
    this.#sweeping = removing.catch(() => undefined);
    const removed = await removing;
    if (removed > 0) {
      // No `hold` waits for it, as it waits for installations.
      await this.#options.onRemoved?.();
    }
    return removed;
  }

  async #sweep(unusedForMs: number): Promise<number> {
    const { folder, now, maxBytesPerOrganization } = this.#options;
    let [removed, keptBytes] = [0, 0];
    for (const { name, usedMs, bytes } of await this.#unused()) {
      keptBytes += bytes;
      if (this.#holders.get(name)?.length) {
        continue;
      }
      if (now() - usedMs >= unusedForMs || keptBytes > maxBytesPerOrganization) {
        this.#known.delete(name);
        await rm(join(folder, name), { recursive: true, force: true });
        removed += 1;
      }
    }
    return removed;
  }

  /** The folders that nobody holds, the last used one first. */
  async #unused(): Promise<{ name: string; usedMs: number; bytes: number }[]> {
    const { folder } = this.#options;
    const unused = [];
    for (const name of await readdir(folder).catch(() => [])) {
      if (DIGEST.test(name) && !this.#holders.get(name)?.length) {
        const path = join(folder, name);
        const { bytes } = await readContents(path).catch(() => ({ bytes: 0 }));
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
        unused.push({ name, usedMs: mtimeMs, bytes });
      }
    }
    return unused.toSorted((a, b) => b.usedMs - a.usedMs);
  }

  async #open(digest: string, recipe: FolderRecipe, signal?: AbortSignal): Promise<Made> {
    let making = this.#known.get(digest);
    if (making === undefined) {
      const abort = new AbortController();
      const made = this.#installs.run(
        async () => (await this.#find(digest, recipe)) ?? (await this.#make(digest, recipe, abort)),
      );
      making = { made, waiting: 0, abort, organizationId: recipe.organizationId };
      this.#known.set(digest, making);
      made.catch(() => this.#forget(digest, made));
    }
    const { made, abort, organizationId } = making;
    making.waiting += 1;
    try {
      return await (signal ? raceAbort(made, signal) : made);
    } catch (err) {
      if (making.waiting === 1) {
        // Nobody waits for it any more; who comes next begins anew.
        abort.abort(err);
        this.#forget(digest, made);
      }
      const isOwn = organizationId === recipe.organizationId;
      if (isOwn || signal?.aborted === true || !(err instanceof OversizedError) || err.isFinal) {
        throw err;
      }
    } finally {
      making.waiting -= 1;
    }
    // The quota that it went beyond is another organization's.
    this.#forget(digest, made);
    return await this.#open(digest, recipe, signal);
  }

  #forget(digest: string, made: Promise<Made>): void {
    if (this.#known.get(digest)?.made === made) {
      this.#known.delete(digest);
    }
  }

  /** A folder from before this process started, or of another process. */
  async #find(digest: string, { what }: FolderRecipe): Promise<Made | undefined> {
    const folder = join(this.#options.folder, digest);
    try {
      const contents = await readContents(folder);
      const time = this.#options.now() / 1000;
      await utimes(folder, time, time);
      return { folder, contents, verified: undefined };
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#options.log.warn({ err, digest }, `${what} is damaged: it is made again`);
      }
      await rm(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  async #make(digest: string, recipe: FolderRecipe, { signal }: AbortController): Promise<Made> {
    const { folder: home, log, now } = this.#options;
    const beganMs = now();
    const folder = join(home, digest);
    const unfinished = `${folder}.${randomUUID()}.partial`;
    try {
      // Otherwise many that are used for a moment could fill the disk until the next sweep.
      await this.sweep({ unusedForMs: Number.POSITIVE_INFINITY });
      const maxBytes = await this.#room(recipe.organizationId);
      await recipe.make(unfinished, { maxBytes, signal });
      const contents = await writeContents(unfinished);
      if (contents.bytes > maxBytes) {
        throw overQuota(maxBytes);
      }
      await this.#share(unfinished, contents);
      await rename(unfinished, folder).catch(async (err) => {
        // Another process may have been faster.
        await readContents(folder).catch(() => {
          throw err;
        });
      });
      const ms = now() - beganMs;
      log.info({ digest, bytes: contents.bytes, ms }, `${recipe.what} was made`);
      return { folder, contents, verified: Promise.resolve() };
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  }

  /** Shares what others have of it, of any organization: all of its content is its own by now. */
  async #share(unfinished: string, { sha256 }: Contents): Promise<void> {
    const { folder: home } = this.#options;
    for (const name of await readdir(home)) {
      const folder = join(home, name);
      const other = DIGEST.test(name)
        ? await readContents(folder).catch(() => undefined)
        : undefined;
      if (other !== undefined) {
        await shareContents({ folder: unfinished, sha256 }, { folder, sha256: other.sha256 });
      }
    }
  }

  /** The disk space that an organization has left. */
  async #room(organizationId: string): Promise<number> {
    const { maxBytesPerOrganization, folder } = this.#options;
    let used = 0;
    for (const [digest, organizations] of this.#holders) {
      if (organizations.includes(organizationId)) {
        const contents = await readContents(join(folder, digest)).catch(() => undefined);
        used += contents?.bytes ?? 0;
      }
    }
    return Math.max(0, maxBytesPerOrganization - used);
  }

  async #verify(digest: string, made: () => Promise<Made>): Promise<void> {
    const found = await made();
    found.verified ??= this.#installs.run(() => this.#compare(digest, found));
    try {
      await found.verified;
    } catch (cause) {
      await made();
      // A sandbox that has started already has the removed folder mounted.
      throw new Error("its environment was damaged, and has been made again", { cause });
    }
  }

  /** Compares every file with the list. If one is another, removes the folder and rejects. */
  async #compare(digest: string, { folder, contents }: Made): Promise<void> {
    try {
      await verifyContents(folder, contents);
    } catch (err) {
      this.#options.log.warn({ err, digest }, "an environment is damaged: it is made again");
      this.#known.delete(digest);
      await rm(folder, { recursive: true, force: true });
      throw err;
    }
  }
}
