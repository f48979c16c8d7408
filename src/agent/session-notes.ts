/**
 * Notes of the sessions of this agent, in its data folder: one file for each. An agent that is
 * killed leaves them, and the one that is started after it tells the platform that nothing of
 * these sessions is left, so that nobody waits for their silence limit. A note counts only on the
 * machine that wrote it, once its process is gone: two agents may share a folder.
 */
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Log } from "../log/log.ts";

/** What a session belongs to: one of another platform or deployment says nothing. */
interface SessionOwner {
  readonly url: string;
  readonly deployment: string;
}

interface Note extends SessionOwner {
  readonly session: string;
  readonly hostname: string;
  readonly pid: number;
}

export class SessionNotes {
  readonly #folder: string;
  readonly #owner: SessionOwner;
  readonly #log: Log;
  #count = 0;

  constructor(folder: string, owner: SessionOwner, log: Log) {
    this.#folder = folder;
    this.#owner = owner;
    this.#log = log;
  }

  /** A note of one session, which `write` replaces. */
  open(): SessionNote {
    this.#count += 1;
    const path = join(this.#folder, `${hostname()}-${process.pid}-${this.#count}.json`);
    const note = { ...this.#owner, hostname: hostname(), pid: process.pid };
    return new SessionNote(path, (session) => this.#write(path, { ...note, session }));
  }

  /** The sessions of agents on this machine that are gone, by the paths of their notes. */
  left(): Map<string, string> {
    const left = new Map<string, string>();
    for (const name of list(this.#folder)) {
      const path = join(this.#folder, name);
      const note = read(path);
      if (note !== undefined && this.#isLeft(note)) {
        left.set(path, note.session);
      }
    }
    return left;
  }

  async forget(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  #isLeft({ url, deployment, hostname: host, pid }: Note): boolean {
    const isOwn = url === this.#owner.url && deployment === this.#owner.deployment;
    // In a container each process has the number of the one before.
    return isOwn && host === hostname() && (pid === process.pid || !isAlive(pid));
  }

  async #write(path: string, note: Note): Promise<void> {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeFile(path, JSON.stringify(note), { mode: 0o600 });
    } catch (err) {
      // Without it the platform waits for the silence limit.
      this.#log.warn({ err, path }, "a session could not be noted");
    }
  }
}

/** The note of one session of this process. */
export class SessionNote {
  readonly #path: string;
  readonly #write: (session: string) => Promise<void>;
  #last: Promise<void> = Promise.resolve();

  constructor(path: string, write: (session: string) => Promise<void>) {
    this.#path = path;
    this.#write = write;
  }

  write(session: string): Promise<void> {
    this.#last = this.#last.then(() => this.#write(session));
    return this.#last;
  }

  /** The session is over, in whatever way this process knows of. */
  async remove(): Promise<void> {
    await this.#last;
    await rm(this.#path, { force: true });
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The first session finds no file.
    return [];
  }
}

function read(path: string): Note | undefined {
  try {
    const note: unknown = JSON.parse(readFileSync(path, "utf8"));
    return isNote(note) ? note : undefined;
  } catch {
    // An agent that was killed may have left half of one.
    return undefined;
  }
}

function isNote(note: unknown): note is Note {
  const { url, deployment, session, hostname: host, pid } = (note ?? {}) as Partial<Note>;
  return (
    [url, deployment, session, host].every((text) => typeof text === "string") &&
    Number.isSafeInteger(pid)
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === "EPERM";
  }
}
