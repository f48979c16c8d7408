/**
 * What a worker holds beside the memory of its process: files in its scratch folder, files that
 * it has deleted but has open or mapped, memory behind descriptors, and buffers of sockets
 * (`sockets.ts`). From Linux's proc(5).
 *
 * What cannot be measured is a breach: a worker could hide anything there. Functions throw
 * `Unmeasurable` for that, and other errors for those of this machine.
 */
import { lstat, opendir, readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { socketBytes } from "./sockets.ts";
import { residenceOf } from "./usage.ts";

/**
 * Entries of a scratch folder that are measured; a worker that stores more has exceeded its
 * limit.
 */
export const MAX_MEASURED_FILES = 10_000;
/**
 * Files that are mapped, deleted and closed, of which a node that is not root sees what is mapped
 * alone: libffi makes one for callbacks where the system lets no memory become code.
 */
const MAX_UNKNOWN_MAPPED_FILES = 1;
const BLOCK_BYTES = 512;
const DELETED = " (deleted)";

export interface Held {
  readonly diskBytes: number;
  /** Of deleted files that were in the cache. */
  readonly cachedBytes: number;
  /** At most one more than are measured. */
  readonly files: number;
  /** Memory that is shared without a file, of which a part may be in the process's own size. */
  readonly sharedBytes: number;
  readonly socketBytes: number;
  readonly descriptors: number;
  /**
   * Descriptors were sent to a socket and not received there: they are open, and in no list. A
   * worker with several processes may pass some to each other.
   */
  readonly inFlight: boolean;
}

/** It holds something whose size cannot be known. The message goes on from "it". */
export class Unmeasurable extends Error {}

/** The folders that a worker writes. */
interface WorkerFolders {
  readonly scratchFolder: string;
  /** Files in it are measured by who keeps caches; those that were deleted there are held here. */
  readonly cacheFolder?: string | undefined;
}

/**
 * What the processes of a worker hold, each file once. Of those that have ended, and where there is
 * no proc(5), what is in its folder.
 */
export async function heldBy(
  [pid, ...others]: readonly [number, ...(readonly number[])],
  folders: WorkerFolders,
): Promise<Held> {
  const files = await filesIn(folders.scratchFolder);
  const seen: Seen = { stored: new Set(), cached: new Set(), inMemory: new Set() };
  const held = {
    diskBytes: files.bytes,
    cachedBytes: 0,
    files: files.count,
    sharedBytes: 0,
    socketBytes: 0,
    descriptors: 0,
    inFlight: false,
  };
  const sockets = new Set<string>();
  const add = ({ diskBytes, cachedBytes, sharedBytes }: Bytes): void => {
    held.diskBytes += diskBytes;
    held.cachedBytes += cachedBytes;
    held.sharedBytes += sharedBytes;
  };
  for (const each of [pid, ...others]) {
    await unlessGone(each, async () => {
      const open = await openBy(each, folders, { seen, sockets });
      add(open);
      held.descriptors += open.descriptors;
      held.inFlight ||= open.inFlight;
      add(await mappedBy(each, folders, seen));
    });
  }
  await unlessGone(pid, async () => {
    held.socketBytes = await socketBytes(pid, sockets);
  });
  return held;
}

/** What is just ending belongs to root, and has no memory any more. */
async function unlessGone(pid: number, measure: () => Promise<void>): Promise<void> {
  try {
    await measure();
  } catch (err) {
    if (isGone(err) || (isForbidden(err) && !residenceOf(pid)?.bytes)) {
      return;
    }
    throw isForbidden(err) ? new Unmeasurable("hides what it has open") : err;
  }
}

/** Folder by folder, so that deep ones take no more descriptors of this process. */
async function filesIn(scratchFolder: string): Promise<{ bytes: number; count: number }> {
  const sum = { bytes: 0, count: 0 };
  const folders = [scratchFolder];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const name of namesIn(folder)) {
      sum.count += 1;
      if (sum.count > MAX_MEASURED_FILES) {
        return sum;
      }
      const path = join(folder, name);
      const entry = await lstat(path).catch(refuseHidden);
      sum.bytes += (entry?.blocks ?? 0) * BLOCK_BYTES;
      if (entry?.isDirectory()) {
        folders.push(path);
      }
    }
  }
  return sum;
}

async function* namesIn(folder: string): AsyncGenerator<string> {
  try {
    for await (const { name } of await opendir(folder)) {
      yield name;
    }
  } catch (err) {
    refuseHidden(err);
  }
}

/** Throws for what the worker has put out of reach; not for what was removed meanwhile. */
function refuseHidden(err: unknown): undefined {
  const { code } = err as NodeJS.ErrnoException;
  if (code === "ENAMETOOLONG" || code === "ELOOP") {
    throw new Unmeasurable("has folders too deep to be measured in its scratch folder");
  }
  if (isForbidden(err)) {
    throw new Unmeasurable("has a folder in its scratch folder that it lets nobody read");
  }
  if (!isGone(err) && code !== "ENOTDIR") {
    throw err;
  }
}

type Bytes = Pick<Held, "diskBytes" | "cachedBytes" | "sharedBytes">;

interface Open extends Bytes, Pick<Held, "descriptors" | "inFlight"> {}

/**
 * The files that were measured, by their numbers. Each of these places may be a file system of its
 * own, and a worker can bring the numbers of files of one to those of another.
 */
interface Seen {
  readonly stored: Set<number>;
  readonly cached: Set<number>;
  readonly inMemory: Set<number>;
}

const COUNTED_AS = {
  stored: "diskBytes",
  cached: "cachedBytes",
  inMemory: "sharedBytes",
} as const satisfies { readonly [Place in keyof Seen]: keyof Held };

/** Where a file was that is deleted; undefined: where the worker could not write. */
function placeOf(
  path: string,
  { scratchFolder, cacheFolder }: WorkerFolders,
): keyof Seen | undefined {
  if (path.startsWith("/dev/zero") || path.startsWith("/memfd:")) {
    return "inMemory";
  }
  if (cacheFolder !== undefined && path.startsWith(`${cacheFolder}/`)) {
    return "cached";
  }
  return path.startsWith(`${scratchFolder}/`) ? "stored" : undefined;
}

/** `sockets` gets the numbers of its sockets. */
async function openBy(
  pid: number,
  folders: WorkerFolders,
  { seen, sockets }: { readonly seen: Seen; readonly sockets: Set<string> },
): Promise<Open> {
  const numbers = await readdir(`/proc/${pid}/fd`);
  const sum = { diskBytes: 0, cachedBytes: 0, sharedBytes: 0 };
  let inFlight = false;
  for (const number of numbers) {
    const path = `/proc/${pid}/fd/${number}`;
    try {
      const target = await readlink(path);
      const [, socket] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
      if (socket !== undefined) {
        sockets.add(socket);
        inFlight ||= await hasInFlight(pid, number);
      } else if (target.endsWith(DELETED)) {
        const place = placeOf(target, folders) ?? "stored";
        sum[COUNTED_AS[place]] += await newBytes(path, seen[place]);
      }
    } catch (err) {
      // The file was closed meanwhile.
      if (!isGone(err)) {
        throw err;
      }
    }
  }
  return { ...sum, descriptors: numbers.length, inFlight };
}

async function hasInFlight(pid: number, descriptor: string): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/fdinfo/${descriptor}`, "latin1");
  return /^scm_fds:\s+[1-9]/m.test(text);
}

/** Files that are deleted and mapped, and mappings without a file that are shared. */
async function mappedBy(pid: number, folders: WorkerFolders, seen: Seen): Promise<Bytes> {
  const sum = { diskBytes: 0, cachedBytes: 0, sharedBytes: 0 };
  const unknown = new Set<string>();
  const text = await readFile(`/proc/${pid}/maps`, "latin1");
  for (const line of text.split("\n")) {
    if (!line.endsWith(DELETED)) {
      continue;
    }
    const [, range = "", inode = "", path = ""] =
      /^(\S+)(?:\s+\S+){3}\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    const place = placeOf(path, folders);
    if (place === undefined || seen[place].has(Number(inode))) {
      continue;
    }
    const isStored = place !== "inMemory";
    const bytes = await mappedBytes(`/proc/${pid}/map_files/${range}`, seen[place]);
    if (bytes !== undefined) {
      sum[COUNTED_AS[place]] += bytes;
    } else if (isStored) {
      sum[COUNTED_AS[place]] += lengthOf(range);
      if (unknown.add(inode).size > MAX_UNKNOWN_MAPPED_FILES) {
        throw new Unmeasurable("maps files that it has deleted and closed: let them stay open");
      }
    }
  }
  return sum;
}

/** Undefined where the node is not the machine's root, who alone learns the size of what is mapped. */
async function mappedBytes(path: string, seen: Set<number>): Promise<number | undefined> {
  try {
    return await newBytes(path, seen);
  } catch (err) {
    if (isGone(err) || isForbidden(err)) {
      return isGone(err) ? 0 : undefined;
    }
    throw err;
  }
}

/** The bytes of a range of addresses, such as `7f00-7f10`. */
function lengthOf(range: string): number {
  const [start = 0, end = 0] = range.split("-").map((address) => Number.parseInt(address, 16));
  return end - start;
}

/** What a file takes on its disk, or in memory, the first time. */
async function newBytes(path: string, seen: Set<number>): Promise<number> {
  const { ino, blocks } = await stat(path);
  const isNew = !seen.has(ino);
  seen.add(ino);
  return isNew ? blocks * BLOCK_BYTES : 0;
}

function isGone(err: unknown): boolean {
  const { code } = err as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ESRCH";
}

function isForbidden(err: unknown): boolean {
  const { code } = err as NodeJS.ErrnoException;
  return code === "EACCES" || code === "EPERM";
}
