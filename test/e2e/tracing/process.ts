/** The service `traced`, served by a process of its own, whose log can be read. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { fixture, Served } from "../serve/served.ts";

/** A line of the log. */
export type Line = { readonly msg: string } & { readonly [field: string]: unknown };

export class TracedProcess extends Served {
  /** As they were written. */
  readonly lines: readonly string[];
  readonly #child: ChildProcess;
  readonly #logged: Readable;

  static async start(env: Readonly<Record<string, string>>): Promise<TracedProcess> {
    const host = fileURLToPath(new URL("./host.ts", import.meta.url));
    const child = fork(host, [fixture("traced.ts")], {
      env: { PATH: process.env.PATH, TRACED_SECRET: "none", ...env },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: ["--disable-warning=ExperimentalWarning"],
    });
    const [{ port }] = (await once(child, "message")) as [{ port: number }];
    return new TracedProcess(port, child);
  }

  private constructor(port: number, child: ChildProcess) {
    super(port, async () => {
      await this.end();
    });
    const lines: string[] = [];
    this.lines = lines;
    this.#child = child;
    this.#logged = child.stderr as Readable;
    createInterface(this.#logged).on("line", (line) => lines.push(line));
  }

  /** Stops it, when all of its log is there; the packages of OpenTelemetry that it had loaded. */
  async end(): Promise<readonly string[]> {
    if (!this.#child.connected) {
      return [];
    }
    const told = once(this.#child, "message");
    const closed = once(this.#child, "close");
    this.#child.send("stop");
    const [{ loaded }] = (await told) as [{ loaded: string[] }];
    await closed;
    return loaded;
  }

  /** The log, read; of one that has ended it is whole. */
  log(): Line[] {
    return this.lines.map((line) => JSON.parse(line) as Line);
  }
}
