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

const NODE_FOLDER = /^tessera-node-(\d+)-/;
const PID_FILE = /^(\d+)\.pid$/;

export class ScratchFolders {
  readonly #base: string;
  #count = 0;

  constructor() {
    sweep();
    this.#base = mkdtempSync(join(tmpdir(), `tessera-node-${process.pid}-`));
  }

  /** Makes the folder of a new worker. */
  create(): string {
    this.#count += 1;
    const folder = join(this.#base, `worker-${this.#count}`);
    mkdirSync(folder, { mode: 0o700 });
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
    rmSync(this.#base, { recursive: true, force: true });
  }
}

/** Clears up after nodes of this user that are gone. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const nodePid = Number(NODE_FOLDER.exec(name)?.[1]);
    const folder = join(tmpdir(), name);
    try {
      if (nodePid > 0 && !isAlive(nodePid) && statSync(folder).uid === process.getuid?.()) {
        for (const file of readdirSync(folder)) {
          endWorker(Number(PID_FILE.exec(file)?.[1]));
        }
        rmSync(folder, { recursive: true, force: true });
      }
    } catch {
      // Another node is sweeping the same folder.
    }
  }
}

/** Kills the process if it is a worker: its number may have been given to another by now. */
function endWorker(pid: number): void {
  try {
    if (pid > 0 && /sdk\/host\/main\.[jt]s/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"))) {
      process.kill(pid, "SIGKILL");
    }
  } catch {
    // It is gone, or this system has no /proc: then nothing is killed that cannot be recognised.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === "EPERM";
  }
}
