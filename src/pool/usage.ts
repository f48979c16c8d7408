/** Resource usage of a process from Linux's proc(5). Functions return undefined without it. */
import { readFileSync } from "node:fs";
import { lstat, opendir, readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";

/** proc(5) gives times in hundredths of a second, whatever the kernel's clock is. */
const MS_PER_TICK = 10;

/**
 * Entries of a scratch folder that are measured; a worker that stores more has exceeded its
 * limit.
 */
const MAX_MEASURED_FILES = 10_000;
/** Open files of a worker that are measured for its use of disk. */
const MAX_MEASURED_DESCRIPTORS = 1_000;
const BLOCK_BYTES = 512;

export interface WorkerUsage {
  /** Processor time since it started. */
  readonly cpuMs: number;
  /** Memory in RAM and in swap; 0 after its end. */
  readonly memoryBytes: number;
}

/** Processor time since the process started. */
export function cpuTimeMs(pid: number): number | undefined {
  const fields = statusFields(pid);
  return fields && (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/** When the process started, in ticks since the machine did: with its id, what identifies it. */
export function startTimeTicks(pid: number): number | undefined {
  const fields = statusFields(pid);
  return fields && Number(fields[19]);
}

/** The fields of `/proc/<pid>/stat` from the third one, the state. */
function statusFields(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`);
  // The process name is in parentheses and may contain anything.
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

export interface Residence {
  /** Memory in RAM and in swap. */
  readonly bytes: number;
  readonly threads: number;
}

/** What the process has of memory and of threads. */
export function residenceOf(pid: number): Residence | undefined {
  const text = read(`/proc/${pid}/status`);
  const number = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text ?? "")?.[1] ?? 0);
  return text === undefined
    ? undefined
    : { bytes: (number("VmRSS") + number("VmSwap")) * 1024, threads: number("Threads") };
}

/** The size of its scratch folder, with the files that are open but deleted. */
export async function storedBytes(
  pid: number,
  folder: string,
): Promise<{ bytes: number; files: number; maxFiles: number }> {
  const sum = { bytes: 0, files: 0, maxFiles: MAX_MEASURED_FILES };
  await addFolder(folder, sum);
  await addDeleted(pid, sum);
  return sum;
}

type Sum = { bytes: number; files: number };

async function addFolder(folder: string, sum: Sum): Promise<void> {
  try {
    for await (const entry of await opendir(folder)) {
      sum.files += 1;
      if (sum.files > MAX_MEASURED_FILES) {
        return;
      }
      const path = join(folder, entry.name);
      sum.bytes += (await lstat(path)).blocks * BLOCK_BYTES;
      if (entry.isDirectory()) {
        await addFolder(path, sum);
      }
    }
  } catch {
    // It was removed meanwhile: the next check counts what is left.
  }
}

async function addDeleted(pid: number, sum: Sum): Promise<void> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
  for (const descriptor of descriptors.slice(0, MAX_MEASURED_DESCRIPTORS)) {
    const path = `/proc/${pid}/fd/${descriptor}`;
    try {
      if ((await readlink(path)).endsWith(" (deleted)")) {
        sum.bytes += (await stat(path)).blocks * BLOCK_BYTES;
      }
    } catch {
      // The file was closed meanwhile.
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
