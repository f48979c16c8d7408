/**
 * Scratch folders: each worker's own writable folder, inside one folder per node
 * in the system's temporary folder. A killed node cannot clean up, so the next node
 * that starts does: it removes the folders of dead nodes and kills their remaining
 * workers (one that blocks its event loop does not notice that its node is gone).
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeLock } from "../storage/lock-file.ts";

const NODE_FOLDER = "tessera-node-";
/**
 * Age below which a scratch folder without an owner is kept: it may belong to a node that is
 * just starting.
 */
const SCRATCH_FOLDER_MIN_AGE_MS = 60_000;
const PID_FILE = /^(\d+)\.pid$/;

export class ScratchFolders {
  readonly #base: string;
  /** Releases the lock that tells other nodes that the folder is in use. */
  #unlock: (() => void) | undefined;
  #count = 0;

  constructor(nowMs: number) {
    sweep(nowMs);
    this.#base = mkdtempSync(join(tmpdir(), NODE_FOLDER));
    this.#unlock = takeLock(join(this.#base, "lock"));
  }

  /** Makes the folder of a new worker. */
  create(): string {
    this.#count += 1;
    const folder = join(this.#base, `worker-${this.#count}`);
    // Recursive, because a cleaner of temporary files may have removed the node's folder.
    mkdirSync(folder, { mode: 0o700, recursive: true });
    return folder;
  }

  /** Records that this process is a worker of this node. */
  record(pid: number): void {
    writeFileSync(join(this.#base, `${pid}.pid`), "");
  }

  /** Removes the folder and the record of a worker that has ended. */
  remove(folder: string, pid: number | undefined): void {
    rmSync(folder, { recursive: true, force: true });
    rmSync(join(this.#base, `${pid}.pid`), { force: true });
  }

  /** Removes the node's folder. Call it when no worker is left. */
  removeAll(): void {
    this.#unlock?.();
    this.#unlock = undefined;
    rmSync(this.#base, { recursive: true, force: true });
  }
}

/** Cleans up after dead nodes of this user. */
function sweep(nowMs: number): void {
  for (const name of readdirSync(tmpdir())) {
    const folder = join(tmpdir(), name);
    try {
      if (name.startsWith(NODE_FOLDER) && isMineAndOld(folder, nowMs)) {
        sweepFolder(folder);
      }
    } catch {
      // Another node is sweeping the same folder, or it is not what its name says.
    }
  }
}

function isMineAndOld(folder: string, nowMs: number): boolean {
  const { uid, mtimeMs } = statSync(folder);
  return uid === process.getuid?.() && nowMs - mtimeMs > SCRATCH_FOLDER_MIN_AGE_MS;
}

function sweepFolder(folder: string): void {
  const unlock = takeLock(join(folder, "lock"));
  if (unlock === undefined) {
    return;
  }
  for (const file of readdirSync(folder)) {
    endWorker(Number(PID_FILE.exec(file)?.[1]));
  }
  unlock();
  rmSync(folder, { recursive: true, force: true });
}

/** Kills the process if it is a worker: its process id may have been reused. */
function endWorker(pid: number): void {
  try {
    if (pid > 0 && /worker\/main\.[jt]s/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"))) {
      process.kill(pid, "SIGKILL");
    }
  } catch {
    // It is gone, or there is no /proc; a process that cannot be recognized is not killed.
  }
}
