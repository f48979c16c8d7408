/**
 * What runs of tasks say of themselves, kept outside of all that is killed: their beginnings and
 * ends in a file, each of which is on the disk before the run goes on.
 */
import { once } from "node:events";
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** One run of a task. Times are by `performance.now`. */
export interface Run {
  readonly run: string;
  readonly taskId: string;
  readonly attempt: number;
  readonly pid: number;
  readonly beganMs: number;
  /** When it was last heard of. */
  lastMs: number;
  hasEnded: boolean;
}

export class FaultLedger implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #file: number;
  readonly #runs = new Map<string, Run>();

  static async start(path: string): Promise<FaultLedger> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FaultLedger(server, path);
  }

  private constructor(server: Server, path: string) {
    this.#server = server;
    this.#file = openSync(path, "a");
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (req, res) => {
      this.#take(new URL(req.url ?? "/", this.url));
      res.end();
    });
  }

  /** The runs of a task, as they began. */
  runs(taskId: string): Run[] {
    return [...this.#runs.values()].filter((run) => run.taskId === taskId);
  }

  /** Processes that were heard of in this time. */
  pids(withinMs: number): number[] {
    const sinceMs = performance.now() - withinMs;
    const recent = [...this.#runs.values()].filter(({ lastMs }) => lastMs >= sinceMs);
    return [...new Set(recent.map(({ pid }) => pid))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
    closeSync(this.#file);
  }

  #take({ pathname, searchParams }: URL): void {
    const nowMs = performance.now();
    const run = searchParams.get("run") ?? "";
    const known = this.#runs.get(run) ?? {
      run,
      taskId: searchParams.get("task") ?? "",
      attempt: Number(searchParams.get("attempt")),
      pid: Number(searchParams.get("pid")),
      beganMs: nowMs,
      lastMs: nowMs,
      hasEnded: false,
    };
    known.lastMs = nowMs;
    known.hasEnded ||= pathname === "/end";
    this.#runs.set(run, known);
    if (pathname !== "/alive") {
      const { taskId, attempt } = known;
      writeSync(this.#file, `${JSON.stringify([pathname, taskId, attempt, run])}\n`);
      fsyncSync(this.#file);
    }
  }
}
