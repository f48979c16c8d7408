/**
 * Processes of a benchmark: starts them, waits until they are ready, measures
 * them from outside, and ends them.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import type { LoadPlan, LoadResult } from "./load.ts";

const ANSWER_TIMEOUT_MS = 180_000;
const END_TIMEOUT_MS = 15_000;
const MAX_OUTPUT = 20_000;

/** Clock ticks per second in /proc: the same on every Linux that Node runs on. */
const TICKS = 100;

/** Running processes; they are killed when this process exits. */
const alive = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of alive) {
    child.kill("SIGTERM");
  }
});

/** One process that was started here. */
export class Program implements AsyncDisposable {
  readonly #process: ChildProcess;
  #output = "";

  /** Starts it and resolves when its output matches `ready`; rejects with its output when it ends. */
  static async start(
    command: string,
    args: readonly string[],
    ready: RegExp,
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly program: Program; readonly match: string }> {
    const program = new Program(command, args, env);
    try {
      return { program, match: (await program.#printed(ready))[1] ?? "" };
    } catch (err) {
      await program[Symbol.asyncDispose]();
      throw err;
    }
  }

  private constructor(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ) {
    this.#process = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TESSERA_LOG_LEVEL: "warn", NODE_ENV: "production", ...env },
    });
    alive.add(this.#process);
    this.#process.once("exit", () => alive.delete(this.#process));
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.#output = (this.#output + chunk).slice(-MAX_OUTPUT);
      });
    }
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Sends a signal and resolves with the output that it causes. */
  ask(signal: NodeJS.Signals, answer: RegExp): Promise<RegExpExecArray> {
    this.#output = "";
    this.#process.kill(signal);
    return this.#printed(answer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null || this.pid === 0) {
      return;
    }
    const ended = once(this.#process, "exit");
    const kill = setTimeout(() => this.#process.kill("SIGKILL"), END_TIMEOUT_MS);
    this.#process.kill("SIGTERM");
    await ended;
    clearTimeout(kill);
  }

  #printed(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const refuse = (what: string): void => reject(new Error(`${what}: ${this.#output.trim()}`));
      const timer = setTimeout(() => refuse("it did not answer in time"), ANSWER_TIMEOUT_MS);
      const look = (): void => {
        const match = pattern.exec(this.#output);
        if (match) {
          clearTimeout(timer);
          resolve(match);
        }
      };
      this.#process.stdout?.on("data", look);
      this.#process.stderr?.on("data", look);
      this.#process.once("error", reject);
      this.#process.once("close", () => {
        clearTimeout(timer);
        refuse("it ended");
      });
    });
  }
}

/** A load, and what it took of those who answered it. */
export interface MeasuredLoad extends LoadResult {
  readonly perSecond: number;
  /** CPU time of their processes for each lifecycle or submit, in microseconds. */
  readonly cpuMicros: number;
}

/**
 * Runs the load generator as its own process; throws when any response was wrong.
 *
 * @param pids of the processes whose CPU time is measured, with all below them
 */
export async function load(plan: LoadPlan, pids: readonly number[] = []): Promise<MeasuredLoad> {
  const before = cpuSecondsOf(pids);
  const file = new URL("./load.ts", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, [file, JSON.stringify(plan)], {
    timeout: 300_000,
  });
  const cpuSeconds = cpuSecondsOf(pids) - before;
  const result = JSON.parse(stdout) as LoadResult;
  if (result.failed > 0) {
    throw new Error(`${result.failed} of ${result.done} failed, the first with ${result.failure}`);
  }
  return {
    ...result,
    perSecond: result.done / result.seconds,
    cpuMicros: (cpuSeconds / result.done) * 1e6,
  };
}

/** A process and its descendants, by /proc; only the process itself without /proc. */
function treeOf(root: number): number[] {
  const parents = new Map<number, number>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    parents.set(pid, Number(statOf(pid)?.[1]));
  }
  const tree = [root];
  for (const pid of tree) {
    tree.push(...[...parents].filter(([, parent]) => parent === pid).map(([child]) => child));
  }
  return tree;
}

/** Fields of /proc/<pid>/stat after the name, which may hold anything; proc(5). */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    // It has ended.
    return undefined;
  }
}

/** CPU time of processes with all below them, ended ones too, in seconds. */
export function cpuSecondsOf(pids: readonly number[]): number {
  const ticks = pids.flatMap(treeOf).flatMap((pid) => statOf(pid)?.slice(11, 15).map(Number) ?? []);
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS;
}

/** A process and all below it. */
export function processesOf(pid: number): number {
  return treeOf(pid).length;
}

/** Resident memory of a process with all below it, in MiB. */
export function memoryOf(pid: number): number {
  const sizes = treeOf(pid).map((each) => {
    try {
      return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${each}/status`, "utf8"))?.[1] ?? 0);
    } catch {
      // It has ended.
      return 0;
    }
  });
  return sizes.reduce((sum, each) => sum + each, 0) / 1024;
}
