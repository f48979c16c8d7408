/**
 * Digests of the large files of earlier builds and pushes, so that weights that did not change are
 * not read again. A file is taken for the same while its device, inode, size and time of change of
 * its content are: the quick check of rsync, with the inode beside it. What was written less than a
 * minute before it was read is not noted, since a later write may leave it the same time (as git's
 * index has it). Times of the inode say nothing here: a build links the file, which changes them.
 * What is uploaded is digested again while it is read.
 */
import { randomUUID } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";

const FILE_NAME = "digests.json";
/** Files that are noted; the ones noted first are forgotten first. */
const MAX_NOTED_FILES = 1_000;
/** The notes that are read; larger ones are begun anew. */
const MAX_NOTES_BYTES = 16 * 1024 ** 2;
/** How long a file must have been as it is when it is read. */
const SETTLED_MS = 60_000;

/** What is noted of a file, by its path: its state, and digests of its parts by their place. */
type Notes = Record<
  string,
  { readonly stamp: string; readonly digests: Readonly<Record<string, string>> }
>;

const NOTES = {
  type: "object",
  additionalProperties: {
    type: "object",
    required: ["stamp", "digests"],
    properties: {
      stamp: { type: "string" },
      digests: {
        type: "object",
        additionalProperties: { type: "string", pattern: "^[0-9a-f]{64}$" },
      },
    },
  },
};

/** A part of a file on this machine; `end` is the first byte after it. */
interface Part {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

/** Digests of parts of files, by the state of the file. */
export class KnownDigests {
  readonly #path: string;
  readonly #notes: Map<string, Notes[string]>;
  readonly #now: () => number;
  #changed = false;

  private constructor(path: string, notes: Notes, now: () => number) {
    this.#path = path;
    this.#notes = new Map(Object.entries(notes));
    this.#now = now;
  }

  /** Reads what was noted in a folder; nothing where it is missing or damaged. */
  static async read(folder: string, now: () => number = Date.now): Promise<KnownDigests> {
    const path = join(folder, FILE_NAME);
    return new KnownDigests(path, await readNotes(path), now);
  }

  /** The digest of a part, in hex, if it is known; else that of `read`, which is noted. */
  async digestOf({ path, start, end }: Part, read: () => Promise<string>): Promise<string> {
    const before = await stat(path, { bigint: true });
    const stamp = stampOf(before);
    const place = `${start}-${end}`;
    const noted = this.#notes.get(path);
    const known = noted?.stamp === stamp ? noted.digests : {};
    const found = known[place];
    if (found !== undefined) {
      return found;
    }
    const isSettled = this.#now() - Number(before.mtimeMs) > SETTLED_MS;
    const sha256 = await read();
    if (isSettled && stampOf(await stat(path, { bigint: true })) === stamp) {
      this.#notes.delete(path);
      this.#notes.set(path, { stamp, digests: { ...known, [place]: sha256 } });
      this.#changed = true;
    }
    return sha256;
  }

  /** Writes the notes; a folder that cannot be written costs only that they are not there. */
  async save(): Promise<void> {
    if (!this.#changed) {
      return;
    }
    const kept = [...this.#notes].slice(-MAX_NOTED_FILES);
    const unfinished = `${this.#path}.${randomUUID()}`;
    try {
      await mkdir(dirname(this.#path), { recursive: true });
      await writeFile(unfinished, JSON.stringify(Object.fromEntries(kept)), { mode: 0o600 });
      await rename(unfinished, this.#path);
      this.#changed = false;
    } catch {
      await rm(unfinished, { force: true }).catch(() => {
        // The folder cannot be written.
      });
    }
  }
}

async function readNotes(path: string): Promise<Notes> {
  try {
    const { size } = await stat(path);
    const notes: unknown = size > MAX_NOTES_BYTES ? {} : JSON.parse(await readFile(path, "utf8"));
    return new Ajv2020().validate<Notes>(NOTES, notes) ? notes : {};
  } catch {
    return {};
  }
}

function stampOf({ dev, ino, size, mtimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs].join(" ");
}
