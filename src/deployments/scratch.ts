/**
 * The folders that workers may write to, each its own, inside one folder of
 * this node in the system's temporary one. A node that is killed can clean up
 * nothing, so the next one that starts does it: it removes the folders of
 * nodes that are gone, and ends workers that they left behind (one that
 * blocks its event loop does not notice that its node is gone).
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
/** A folder so young may belong to a node that is just starting. */
const YOUNG_MS = 60_000;
const PID_FILE = /^(\d+)\.pid$/;

export class ScratchFolders {
  readonly #base: string;
  /** Held while this node lives: how others know that its folder is in use. */
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
    // The folder of this node may have been removed by a cleaner of temporary files.
    mkdirSync(folder, { mode: 0o700, recursive: true });
    return folder;
  }

  /** Notes that this process is a worker of this node. */
  record(pid: number): void {
    writeFileSync(join(this.#base, `${pid}.pid`), "");
  }

  /** Removes what a worker leaves that has ended. */
  remove(folder: string, pid: number | undefined): void {
    rmSync(folder, { recursive: true, force: true });
    rmSync(join(this.#base, `${pid}.pid`), { force: true });
  }

  /** Removes everything; for when no worker is left. */
  removeAll(): void {
    this.#unlock?.();
    this.#unlock = undefined;
    rmSync(this.#base, { recursive: true, force: true });
  }
}

/** Clears up after nodes of this user that are gone. */
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
  return uid === process.getuid?.() && nowMs - mtimeMs > YOUNG_MS;
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

/** Kills the process if it is a worker: its number may have been given to another by now. */
function endWorker(pid: number): void {
  try {
    if (pid > 0 && /worker\/main\.[jt]s/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"))) {
      process.kill(pid, "SIGKILL");
    }
  } catch {
    // It is gone, or this system has no /proc: then nothing is killed that cannot be recognised.
  }
}
