/** What a process uses, as Linux tells it (proc(5)); undefined where nothing is told. */
import { readFileSync } from "node:fs";
import { lstat, opendir, readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";

/** Times of processes are told in hundredths of a second, whatever the kernel's own clock is. */
const MS_PER_TICK = 10;

/** More entries than this are not looked at; who stores so many has exceeded something. */
const MAX_FILES = 10_000;
const MAX_DESCRIPTORS = 1_000;
const BLOCK_BYTES = 512;

/** Processor time since its start. */
export function cpuTimeMs(pid: number): number | undefined {
  const text = read(`/proc/${pid}/stat`);
  // Its name stands in parentheses and may hold anything.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields && (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/** Memory that it has, in RAM and in swap. */
export function residentBytes(pid: number): number | undefined {
  const text = read(`/proc/${pid}/status`);
  const kilobytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text ?? "")?.[1] ?? 0);
  return text === undefined ? undefined : (kilobytes("VmRSS") + kilobytes("VmSwap")) * 1024;
}

/** What its scratch folder holds, with the files that it has open after deleting them. */
export async function storedBytes(
  pid: number,
  folder: string,
): Promise<{ bytes: number; files: number; maxFiles: number }> {
  const sum = { bytes: 0, files: 0, maxFiles: MAX_FILES };
  await addFolder(folder, sum);
  await addDeleted(pid, sum);
  return sum;
}

type Sum = { bytes: number; files: number };

async function addFolder(folder: string, sum: Sum): Promise<void> {
  try {
    for await (const entry of await opendir(folder)) {
      sum.files += 1;
      if (sum.files > MAX_FILES) {
        return;
      }
      const path = join(folder, entry.name);
      sum.bytes += (await lstat(path)).blocks * BLOCK_BYTES;
      if (entry.isDirectory()) {
        await addFolder(path, sum);
      }
    }
  } catch {
    // It was removed while it was looked at: the next round sees what is left.
  }
}

async function addDeleted(pid: number, sum: Sum): Promise<void> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
  for (const descriptor of descriptors.slice(0, MAX_DESCRIPTORS)) {
    const path = `/proc/${pid}/fd/${descriptor}`;
    try {
      if ((await readlink(path)).endsWith(" (deleted)")) {
        sum.bytes += (await stat(path)).blocks * BLOCK_BYTES;
      }
    } catch {
      // It was closed.
    }
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
