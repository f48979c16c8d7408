/** The command line as a real process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripped } from "../../stripped.ts";
import { refuseLeaks, secretsOf } from "./leaks.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Compiled modules, so that each run starts sooner. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/compile");

/** Longer than most tests take. */
const LIMIT_MS = 120_000;

/** The addresses of `localhost` that this machine has. */
export const LOOPBACKS = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .flatMap(({ address }) => (["127.0.0.1", "::1"].includes(address) ? [address] : []));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The program, beside this file. What has a copy without types runs from it. */
  readonly entry?: string;
  /** A group of processes of its own, as a terminal gives it one; for `interrupt`. */
  readonly ownGroup?: boolean;
  /** A command that runs the program, before its own. Default: none. */
  readonly within?: readonly string[];
  /** What comes in on standard input, which then ends. Default: there is none. */
  readonly input?: string;
  /** When it is killed at the latest. Default: longer than most tests take. */
  readonly limitMs?: number;
}

/**
 * One run of the program, with a folder of its own for temporary files. Disposing of it throws if
 * a secret is in its log or in its errors.
 */
export class Program implements AsyncDisposable {
  readonly ended: Promise<Ended>;
  readonly #process: ChildProcess;
  readonly #secrets: ReadonlySet<string>;
  readonly #temporary = mkdtempSync(join(tmpdir(), "tessera-test-"));
  readonly #output = { stdout: "", stderr: "" };
  #changed = Promise.withResolvers<void>();
  #hasEnded = false;

  constructor(args: readonly string[], options: ProgramOptions = {}) {
    const {
      env = {},
      cwd,
      entry = "entry.ts",
      ownGroup = false,
      within = [],
      input,
      limitMs = LIMIT_MS,
    } = options;
    this.#secrets = secretsOf({ args, env, ...(input !== undefined && { input }) });
    const [command = "", ...rest] = [...within, process.execPath, programPath(entry), ...args];
    this.#process = spawn(command, rest, {
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      // Also where a test was broken off and disposes of nothing.
      timeout: limitMs,
      killSignal: "SIGKILL",
      detached: ownGroup,
      env: {
        PATH: process.env.PATH ?? "",
        TMPDIR: this.#temporary,
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        // No balancer is in front of them.
        TESSERA_DRAIN_DELAY: "0s",
        ...env,
      },
      ...(cwd !== undefined && { cwd }),
    });
    this.#process.stdin?.end(input);
    for (const name of ["stdout", "stderr"] as const) {
      this.#process[name]?.setEncoding("utf8").on("data", (chunk: string) => {
        this.#output[name] += chunk;
        this.#wake();
      });
    }
    this.ended = once(this.#process, "close").then(([code, signal]) => {
      this.#hasEnded = true;
      this.#wake();
      return { code, signal, ...this.#output };
    });
  }

  /** Serves on any free port; resolves with the program and its URL when it has greeted. */
  static async serve(args: readonly string[], options?: ProgramOptions) {
    const program = new Program(["serve", "--port", "0", ...args], options);
    const [, url = ""] = await program.says("stdout", / on (http:\/\/\S+)\n[\s\S]*Ctrl-C stops/);
    return { program, url: url.replace("localhost", "127.0.0.1") };
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get stdout(): string {
    return this.#output.stdout;
  }

  /** What has been left in the folder for temporary files. */
  get leftovers(): string[] {
    return readdirSync(this.#temporary);
  }

  /** Resolves with the match when the program has written it; rejects when it ends without. */
  async says(stream: "stdout" | "stderr", pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#output[stream]);
      if (match) {
        return match;
      }
      if (this.#hasEnded) {
        const { stdout, stderr } = this.#output;
        throw new Error(`ended without saying ${pattern}:\n${stdout}\n${stderr}`);
      }
      await this.#changed.promise;
    }
  }

  /** Sends a signal; resolves with how the program ended. */
  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
    this.send(signal);
    return this.ended;
  }

  /** What Ctrl-C in a terminal does: every process of the group gets the signal. */
  interrupt(): void {
    process.kill(-this.pid, "SIGINT");
  }

  send(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.ended;
    rmSync(this.#temporary, { recursive: true, force: true });
    refuseLeaks(this.#output.stderr, this.#secrets);
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}

/** Runs the program to its end. */
export async function run(args: readonly string[], options?: ProgramOptions): Promise<Ended> {
  await using program = new Program(args, options);
  return await program.ended;
}

/** The path of a program beside this file, or of its copy without types where there is one. */
export function programPath(entry: string): string {
  const path = fileURLToPath(new URL(entry, import.meta.url));
  const copy = stripped(relative(ROOT, path));
  return existsSync(copy) ? copy : path;
}

/** True while a process of this id runs; one that only waits for its parent to notice does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const status = `/proc/${pid}/stat`;
  return !existsSync(status) || !/\) [ZX] /.test(readFileSync(status, "utf8"));
}
