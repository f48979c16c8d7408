/**
 * What functions did, told by themselves: each reports its beginning and its
 * end over HTTP before it goes on. It stands outside of everything that is
 * killed, so it knows of runs whose traces the queue has lost.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One execution of a function. */
export interface Run {
  readonly taskId: string;
  readonly attempt: number;
  /** The worker's. */
  readonly pid: number;
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
}

export class Ledger implements AsyncDisposable {
  readonly url: string;
  readonly #server: ReturnType<typeof createServer>;
  readonly #runs = new Map<string, Run[]>();
  readonly #open = new Set<Run>();
  /** When each worker was last heard of. */
  readonly #heard = new Map<number, number>();
  #ends = 0;

  static async start(): Promise<Ledger> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Ledger(server);
  }

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (req: IncomingMessage, res: ServerResponse) => {
      this.#report(new URL(req.url ?? "/", this.url));
      res.end();
    });
  }

  /** The runs of a task, in the order of their beginning. */
  runs(taskId: string): readonly Run[] {
    return this.#runs.get(taskId) ?? [];
  }

  /** Runs that have begun and not ended. */
  get open(): readonly Run[] {
    return [...this.#open];
  }

  /** Workers that were heard of since this time. */
  pidsSince(timeMs: number): readonly number[] {
    return [...this.#heard].flatMap(([pid, heardMs]) => (heardMs >= timeMs ? [pid] : []));
  }

  /** How many runs have ended. */
  get ends(): number {
    return this.#ends;
  }

  /** A run will not report its end: its worker was killed. */
  abandon(run: Run): void {
    this.#open.delete(run);
  }

  /** Forgets the runs of a task that has been checked. */
  forget(taskId: string): void {
    for (const run of this.runs(taskId)) {
      this.#open.delete(run);
    }
    this.#runs.delete(taskId);
  }

  /** Forgets a worker that has ended. */
  forgetPid(pid: number): void {
    this.#heard.delete(pid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #report({ pathname, searchParams }: URL): void {
    const taskId = searchParams.get("task") ?? "";
    const attempt = Number(searchParams.get("attempt"));
    const pid = Number(searchParams.get("pid"));
    this.#heard.set(pid, Date.now());
    const runs = this.#runs.get(taskId) ?? [];
    this.#runs.set(taskId, runs);
    if (pathname === "/start") {
      const run = { taskId, attempt, pid, startedAtMs: Date.now(), endedAtMs: undefined };
      runs.push(run);
      this.#open.add(run);
      return;
    }
    const run = runs.findLast((each) => each.attempt === attempt && each.pid === pid);
    if (run) {
      run.endedAtMs = Date.now();
      this.#open.delete(run);
      this.#ends += 1;
    }
  }
}
