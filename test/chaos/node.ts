import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { freePort } from "../free-port.ts";
import { ask } from "./client.ts";
import { within } from "./within.ts";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
export const ENTRY: string = source("../e2e/cli/entry.ts");
export const SERVICE: string = source("service.ts");

/** The variables of every process. */
export const ENVIRONMENT = {
  PATH: process.env.PATH ?? "",
  TMPDIR: process.env.TMPDIR ?? "",
  NODE_COMPILE_CACHE: source("../../node_modules/.cache/compile"),
  TESSERA_LOG_LEVEL: "error",
};

/** How much of what a node wrote is kept for the report. */
const MAX_OUTPUT = 4_000;
/** Also of a node whose processor others use. */
const START_TIMEOUT_MS = 120_000;
const KILL_TIMEOUT_MS = 30_000;
const MAX_CRASHES = 5;

/** The arguments of the command line, for a port. */
type Arguments = (port: string) => readonly string[];

interface Surroundings {
  /** A command that starts the node in its place, such as `taskset -c 0`. */
  readonly under?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A node that serves the service of this folder by itself. */
export function serving(database: string): Arguments {
  return (port) => ["serve", SERVICE, "--port", port, "--database", database, "--workers", "2"];
}

/** One node as a process of its own: the command line, killed and started again on one port. */
export class ChaosNode implements AsyncDisposable {
  readonly origin: string;
  readonly #args: readonly string[];
  readonly #surroundings: Surroundings;
  #process: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #output = "";
  /** What it wrote before it ended by itself, each time. */
  readonly #crashes: string[] = [];

  static async create(args: Arguments, surroundings: Surroundings = {}): Promise<ChaosNode> {
    return new ChaosNode(await freePort(), args, surroundings);
  }

  private constructor(port: number, args: Arguments, surroundings: Surroundings) {
    this.#args = args(String(port));
    this.#surroundings = surroundings;
    this.origin = `http://127.0.0.1:${port}`;
  }

  /** The last that it wrote. */
  get output(): string {
    return this.#output;
  }

  /** Its worker processes, where the system tells (Linux); else none. */
  get workers(): readonly number[] {
    const pid = this.#process?.pid;
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
      return children.trim().split(" ").map(Number);
    } catch {
      // Another system, or it has just ended.
      return [];
    }
  }

  /** What it wrote each time it ended by itself since the last question. */
  takeCrashes(): readonly string[] {
    return this.#crashes.splice(0);
  }

  /** Starts the process, without waiting until it serves. */
  spawn(): void {
    const { under = [], env } = this.#surroundings;
    const command = [...under, process.execPath, ENTRY, ...this.#args];
    const child = spawn(command[0] ?? "", command.slice(1), {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...ENVIRONMENT, ...env },
    });
    // However this process ends.
    const kill = (): void => void child.kill("SIGKILL");
    process.once("exit", kill);
    this.#exited = once(child, "exit").then(() => {
      process.off("exit", kill);
      // As whoever looks after a node would.
      if (this.#process === child) {
        this.#crashes.push(this.#output);
        this.spawn();
      }
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#output = (this.#output + text).slice(-MAX_OUTPUT);
    });
    this.#process = child;
  }

  /** Resolves when it takes calls; rejects when it has ended instead. */
  async ready(): Promise<void> {
    const untilMs = performance.now() + START_TIMEOUT_MS;
    let said = "nothing";
    while (performance.now() < untilMs) {
      if (this.#crashes.length > MAX_CRASHES) {
        throw new Error(`a node does not start: ${this.#output}`);
      }
      const answer = await ask(`${this.origin}/readyz?verbose`);
      if (answer?.status === 200) {
        return;
      }
      said = answer?.text ?? said;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(
      `a node was not ready after ${START_TIMEOUT_MS} ms and said ${said}: ${this.#output}`,
    );
  }

  /** Ends it at once, with no time for anything. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    child?.kill("SIGKILL");
    await within(KILL_TIMEOUT_MS, "the end of a killed node", this.#exited);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
