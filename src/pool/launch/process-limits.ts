/**
 * Limits that the kernel keeps for each process of a worker (getrlimit(2)), set by `prlimit` of
 * util-linux, which becomes the program: descriptors, the size of a file, and no core dumps,
 * which would be written outside its scratch folder.
 */
import { readFileSync } from "node:fs";
import { MAX_WORKER_DESCRIPTORS } from "../limits.ts";
import type { LaunchOptions } from "./launch.ts";

/**
 * The largest file, as a share of the disk space: a worker that fills its disk by writing is
 * ended with the reason, and only what would be far beyond at once is refused (EFBIG).
 */
const MAX_FILE_SHARE = 1.25;

type Command = readonly [program: string, ...args: string[]];

/** The command with the limits; as it is without `prlimit`, or without limits. */
export function withProcessLimits(
  command: Command,
  { limits, cache }: Pick<LaunchOptions, "limits" | "cache">,
  prlimit: string | undefined,
): Command {
  if (limits === undefined || prlimit === undefined) {
    return command;
  }
  const most = ownLimits();
  // It holds for each file, wherever that is; of the scratch folder the watch takes care.
  const largest = Math.max(limits.diskBytes, cache?.maxBytes ?? 0);
  const descriptors = Math.min(MAX_WORKER_DESCRIPTORS, most.descriptors);
  const fileBytes = Math.min(Math.ceil(largest * MAX_FILE_SHARE), most.fileBytes);
  return [prlimit, `--nofile=${descriptors}`, `--fsize=${fileBytes}`, "--core=0", ...command];
}

/** What this process may give at most: a limit can be lowered, not raised. */
function ownLimits(): { readonly descriptors: number; readonly fileBytes: number } {
  const text = readFileSync("/proc/self/limits", "latin1");
  const hardLimit = (name: string): number => {
    const [, limit] = new RegExp(`^${name} +\\S+ +(\\d+)`, "m").exec(text) ?? [];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  };
  return { descriptors: hardLimit("Max open files"), fileBytes: hardLimit("Max file size") };
}

/**
 * The command with a limit of the kernel for the processes and threads of its user, which it sets
 * inside, where the user is the worker's own. The kernel holds nobody to it who is root outside.
 */
export function withinTasks(command: Command, maxTasks: number, prlimit: string): Command {
  return [prlimit, `--nproc=${maxTasks}`, ...command];
}
