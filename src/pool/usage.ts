/** Resource usage of a process from Linux's proc(5). Functions return undefined without it. */
import { readFileSync } from "node:fs";

/** proc(5) gives times in hundredths of a second, whatever the kernel's clock is. */
const MS_PER_TICK = 10;

export interface WorkerUsage {
  /** Processor time since it started. */
  readonly cpuMs: number;
  /** Memory in RAM and in swap; 0 after its end. */
  readonly memoryBytes: number;
}

/**
 * Processor time since the process started; `reaped`: with that of the processes that it has
 * started and waited for.
 */
export function cpuTimeMs(
  pid: number,
  { reaped = false }: { readonly reaped?: boolean } = {},
): number | undefined {
  const fields = statusFields(pid);
  const ticks = fields?.slice(11, reaped ? 15 : 13).reduce((sum, each) => sum + Number(each), 0);
  return ticks === undefined ? undefined : ticks * MS_PER_TICK;
}

/** The process that started it, or that it was given to. */
export function parentOf(pid: number): number | undefined {
  const fields = statusFields(pid);
  return fields && Number(fields[1]);
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
  /** Memory in RAM and in swap, with the page tables: those of a sparse map are larger than it. */
  readonly bytes: number;
  /** What of it is in RAM. */
  readonly residentBytes: number;
  /** The most that was in RAM since the process started. */
  readonly highestBytes: number;
  /** What of it is shared and is no file's. */
  readonly sharedBytes: number;
  readonly threads: number;
}

/** What the process has of memory and of threads. */
export function residenceOf(pid: number): Residence | undefined {
  const text = read(`/proc/${pid}/status`);
  if (text === undefined) {
    return undefined;
  }
  const number = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0);
  const kibibytes = number("VmRSS") + number("VmSwap") + number("VmPTE") + number("HugetlbPages");
  return {
    bytes: kibibytes * 1024,
    residentBytes: number("VmRSS") * 1024,
    highestBytes: number("VmHWM") * 1024,
    sharedBytes: number("RssShmem") * 1024,
    threads: number("Threads"),
  };
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
