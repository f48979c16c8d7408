/**
 * How loaded this machine is, by all of its programs together. It is told with heartbeats, so a
 * look reads two short files: the processor times of the kernel, and its memory.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { availableParallelism, freemem, loadavg, totalmem } from "node:os";
import type { MachineLoad } from "../storage/hosting/nodes.ts";

/** The first line of `/proc/stat` is shorter. */
const MAX_LINE_BYTES = 512;

/** Processor time of the machine since it started, in ticks. */
interface Ticks {
  readonly busy: number;
  readonly all: number;
}

export class MachineMeter {
  #before: Ticks | undefined = readTicks();

  /** The load of now; processors as they were busy since the look before. */
  look(): MachineLoad {
    const processors = availableParallelism();
    const now = readTicks();
    const busyProcessors = now ? busyBetween(this.#before, now) * processors : (loadavg()[0] ?? 0);
    this.#before = now;
    const memoryBytes = totalmem();
    return {
      processors,
      busyProcessors: Number(busyProcessors.toFixed(2)),
      memoryBytes,
      usedMemoryBytes: Math.max(0, memoryBytes - freemem()),
    };
  }
}

/** The share of the time that processors were busy, from 0 to 1. */
function busyBetween(before: Ticks | undefined, now: Ticks): number {
  const all = now.all - (before?.all ?? 0);
  const busy = now.busy - (before?.busy ?? 0);
  return all <= 0 ? 0 : Math.min(1, Math.max(0, busy / all));
}

/** Undefined where there is no `/proc/stat`. */
function readTicks(): Ticks | undefined {
  let file: number;
  try {
    file = openSync("/proc/stat", "r");
  } catch {
    return undefined; // Not Linux.
  }
  try {
    const line = Buffer.alloc(MAX_LINE_BYTES);
    const length = readSync(file, line, 0, MAX_LINE_BYTES, 0);
    return ticksOf(line.toString("latin1", 0, length));
  } finally {
    closeSync(file);
  }
}

/** Reads `cpu user nice system idle iowait irq softirq steal guest guest_nice` of proc(5). */
export function ticksOf(text: string): Ticks {
  // The time of guests is in that of users already.
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, ...rest] = text
    .slice(0, text.indexOf("\n"))
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map(Number);
  const busy = rest.reduce((sum, ticks) => sum + ticks, user + nice + system);
  return { busy, all: busy + idle + iowait };
}
