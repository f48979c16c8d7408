/**
 * The processes of a worker that may start some: its own, and all that these have started, from
 * Linux's proc(5). They are found from the first process of its sandbox, to which the kernel gives
 * those whose parents have ended.
 */
import { readdirSync, readFileSync } from "node:fs";
import { readFile, statfs } from "node:fs/promises";
import { cpuTimeMs, parentOf, type Residence, residenceOf, startTimeTicks } from "./usage.ts";

/** Processes that are looked for: more than any worker may have. */
const MAX_TREE_PROCESSES = 4_096;

/** The processes of a worker, its own first. */
export type Pids = readonly [own: number, ...others: number[]];

/** The worker's process and all that it has started; only itself where it is gone. */
export function treeOf(pid: number): Pids {
  const first = parentOf(pid);
  const found = first === undefined ? new Set<number>() : descendantsOf(first);
  found.delete(pid);
  return [pid, ...found];
}

/** All processes that come from this one and run. */
export function descendantsOf(pid: number): Set<number> {
  const found = new Set<number>();
  const rest = childrenOf(pid);
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (found.size >= MAX_TREE_PROCESSES) {
      break;
    }
    found.add(next);
    rest.push(...childrenOf(next));
  }
  return found;
}

/**
 * The processor time of a worker with all its processes, from look to look. That of a process which
 * has ended is in the time of its parent only if the parent has waited for it; otherwise it counts
 * as far as it was seen.
 */
export class TreeTime {
  #totalMs = 0;
  #lastSumMs = 0;
  #seen = new Map<string, number>();

  /** Milliseconds since the first look, with all processes that there are now. */
  at(pids: Pids): number {
    let [sumMs, ownMs] = [0, 0];
    const seen = new Map<string, number>();
    for (const pid of [parentOf(pids[0]) ?? 0, ...pids]) {
      const timeMs = cpuTimeMs(pid) ?? 0;
      const key = `${pid} ${startTimeTicks(pid)}`;
      seen.set(key, timeMs);
      ownMs += Math.max(0, timeMs - (this.#seen.get(key) ?? 0));
      sumMs += cpuTimeMs(pid, { reaped: true }) ?? 0;
    }
    this.#totalMs += Math.max(0, ownMs, sumMs - this.#lastSumMs);
    this.#lastSumMs = sumMs;
    this.#seen = seen;
    return this.#totalMs;
  }
}

/** What all of them have. What several have, such as libraries and mapped weights, counts for each. */
export function residenceOfAll(pids: Pids): Residence {
  const sum = { bytes: 0, residentBytes: 0, highestBytes: 0, sharedBytes: 0, threads: 0 };
  for (const one of pids.flatMap((pid) => residenceOf(pid) ?? [])) {
    sum.bytes += one.bytes;
    sum.residentBytes += one.residentBytes;
    sum.highestBytes += one.highestBytes;
    sum.sharedBytes += one.sharedBytes;
    sum.threads += one.threads;
  }
  return sum;
}

/**
 * The memory of all of them where what several have counts once (their proportional set size). The
 * kernel looks at each page for it.
 */
export async function proportionalOf(
  pids: Pids,
): Promise<Pick<Residence, "bytes" | "sharedBytes">> {
  let [kibibytes, sharedKibibytes] = [0, 0];
  for (const pid of pids) {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
    const number = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0);
    kibibytes += number("Pss") + number("SwapPss");
    sharedKibibytes += number("Pss_Shmem");
  }
  return { bytes: kibibytes * 1024, sharedBytes: sharedKibibytes * 1024 };
}

/** What stands in `/dev/shm` of a sandbox, mapped or not. */
export async function sharedFolderBytes(pid: number): Promise<number> {
  try {
    const { blocks, bfree, bsize } = await statfs(`/proc/${pid}/root/dev/shm`);
    return (blocks - bfree) * bsize;
  } catch {
    return 0; // It has ended.
  }
}

function childrenOf(pid: number): number[] {
  try {
    // Each thread has those that it has started.
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
      const text = readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").trim();
      return text === "" ? [] : text.split(" ").map(Number);
    });
  } catch {
    return []; // It has ended.
  }
}
