/**
 * Scratch folders: each worker's own writable folder, inside one folder per node
 * in the system's temporary folder. A killed node cannot clean up, so the next node
 * that starts does: it removes the folders of dead nodes and kills their remaining
 * workers. It knows them by their recorded process id and start time, which a worker
 * cannot change, as it can its title.
 */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  opendirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { startTimeTicks } from "../pool/usage.ts";
import { takeLock } from "../storage/lock-file.ts";

/** Tries to remove a folder, to which a process that is just ending may still add files. */
const MAX_REMOVAL_RETRIES = 5;
/** Paths longer than this are shortened; the kernel takes 4,096. */
const MAX_PATH_CHARACTERS = 2_000;
/** Entries of a folder after which others get their turn. */
const MAX_ENTRIES_AT_A_TIME = 1_000;

const NODE_FOLDER = "tessera-node-";
/**
 * The folder's name until it is locked, when no other node takes it for one of a dead node any
 * more, and while it is being removed, when its lock is gone.
 */
const STARTING_FOLDER = "tessera-starting-";
/** Age from which a folder with that name belongs to a node that ended while it was so. */
const STARTING_FOLDER_MAX_AGE_MS = 60_000;
const PID_FILE = /^(\d+)\.pid$/;

export class ScratchFolders {
  /** Empty without one. */
  #base = "";
  /** Releases the lock that tells other nodes that the folder is in use. */
  #unlock: (() => void) | undefined;
  readonly #stays: boolean;
  #count = 0;
  /** Folders of workers that have not been removed. */
  #present = 0;

  /**
   * With a time, for a node: cleans up after dead nodes, and has its folder at once.
   * Without, for a deployment: has a folder only while it has workers, because most of
   * a thousand deployments have none.
   */
  constructor(nowMs?: number) {
    this.#stays = nowMs !== undefined;
    if (nowMs !== undefined) {
      sweep(nowMs);
      this.#open();
    }
  }

  /** Makes the folder of a new worker. */
  create(): string {
    if (this.#base === "") {
      this.#open();
    }
    this.#count += 1;
    this.#present += 1;
    const folder = join(this.#base, `worker-${this.#count}`);
    // Recursive, because a cleaner of temporary files may have removed the node's folder.
    mkdirSync(folder, { mode: 0o700, recursive: true });
    return folder;
  }

  /** Records that this process is a worker of this node. */
  record(pid: number): void {
    writeFileSync(join(this.#base, `${pid}.pid`), String(startTimeTicks(pid) ?? ""));
  }

  /**
   * Removes the folder and the record of a worker that has ended. Rejects when that fails;
   * then the folder goes with that of the node.
   */
  async remove(folder: string, pid: number | undefined): Promise<void> {
    try {
      await removeTree(folder);
      await rm(join(dirname(folder), `${pid}.pid`), { force: true });
    } finally {
      this.#left();
    }
  }

  #left(): void {
    this.#present -= 1;
    if (this.#present === 0 && !this.#stays) {
      this.removeAll();
    }
  }

  /** Removes the node's folder. Call it when no worker is left. */
  removeAll(): void {
    const base = this.#base;
    if (base === "") {
      return;
    }
    this.#base = "";
    // A node that sweeps would lock it, and so add a file, while it is being removed.
    const leaving = join(dirname(base), basename(base).replace(NODE_FOLDER, STARTING_FOLDER));
    if (existsSync(base)) {
      renameSync(base, leaving);
    }
    this.#unlock?.();
    this.#unlock = undefined;
    removeTreeSync(leaving);
  }

  #open(): void {
    const starting = mkdtempSync(join(tmpdir(), STARTING_FOLDER));
    this.#unlock = takeLock(join(starting, "lock"));
    this.#base = join(tmpdir(), basename(starting).replace(STARTING_FOLDER, NODE_FOLDER));
    renameSync(starting, this.#base);
  }
}

/** Cleans up after dead nodes of this user. */
function sweep(nowMs: number): void {
  const temporary = tmpdir();
  // There may be tens of thousands of others, while the node starts.
  for (const name of readdirSync(temporary).filter(isName)) {
    const folder = join(temporary, name);
    try {
      if (isMine(name, folder, nowMs)) {
        sweepFolder(folder);
      }
    } catch {
      // Another node is sweeping the same folder, or it is not what its name says.
    }
  }
}

const isName = (name: string): boolean =>
  name.startsWith(STARTING_FOLDER) || name.startsWith(NODE_FOLDER);

function isMine(name: string, folder: string, nowMs: number): boolean {
  const isStarting = name.startsWith(STARTING_FOLDER);
  // Its name is younger than its files may be.
  const { uid, ctimeMs } = statSync(folder);
  const isOld = !isStarting || nowMs - ctimeMs > STARTING_FOLDER_MAX_AGE_MS;
  return uid === process.getuid?.() && isOld;
}

function sweepFolder(folder: string): void {
  const unlock = takeLock(join(folder, "lock"));
  if (unlock === undefined) {
    return;
  }
  for (const file of readdirSync(folder)) {
    const [, pid] = PID_FILE.exec(file) ?? [];
    if (pid !== undefined) {
      endWorker(Number(pid), readFileSync(join(folder, file), "utf8"));
    }
  }
  unlock();
  removeTreeSync(folder);
}

/** Kills the worker, unless it is gone and its process id belongs to another process now. */
function endWorker(pid: number, startTime: string): void {
  if (startTime !== "" && String(startTimeTicks(pid)) === startTime) {
    process.kill(pid, "SIGKILL");
  }
}

/**
 * Removes folders of code that nobody trusts, which may be too deep for a path, or let nobody
 * read or write them. Nothing may write there any more.
 */
export async function removeTree(folder: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: MAX_REMOVAL_RETRIES } as const;
  try {
    await rm(folder, options);
  } catch {
    for (const _ of opening(folder)) {
      await setImmediate();
    }
    await rm(folder, options);
  }
}

/** The same at once, for the start and the end of a process. */
function removeTreeSync(folder: string): void {
  const options = { recursive: true, force: true } as const;
  try {
    rmSync(folder, options);
  } catch {
    for (const _ of opening(folder)) {
      // Nobody else waits.
    }
    rmSync(folder, options);
  }
}

/** Makes all folders accessible, and those that are too deep children of the first. */
function* opening(root: string): Generator<void> {
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    chmodSync(folder, 0o700);
    const entries = opendirSync(folder);
    const inside: string[] = [];
    let count = 0;
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      if (entry.isDirectory()) {
        inside.push(entry.name);
      }
      count += 1;
      if (count % MAX_ENTRIES_AT_A_TIME === 0) {
        yield;
      }
    }
    entries.closeSync();
    for (const name of inside) {
      const path = join(folder, name);
      if (path.length <= MAX_PATH_CHARACTERS) {
        folders.push(path);
        continue;
      }
      // A folder that may not be written cannot be moved, and nobody knows the name that it gets.
      chmodSync(path, 0o700);
      const shorter = join(root, randomUUID());
      renameSync(path, shorter);
      folders.push(shorter);
    }
    yield;
  }
}
