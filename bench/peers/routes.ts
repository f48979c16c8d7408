/** The two routes that every peer serves, on Fastify, in front of its queue. */
import Fastify from "fastify";

/** Size of the cache of recent results, which saves a query for results that were just finished. */
const MAX_REMEMBERED = 20_000;
const MAX_WAIT_MS = 60_000;

export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Waiting callers by job, and recent results as JSON. */
export class Results {
  readonly #finished = new Map<string, string>();
  readonly #waiting = new Map<string, (result: string) => void>();

  finish(id: string, result: string): void {
    this.#finished.set(id, result);
    if (this.#finished.size > MAX_REMEMBERED) {
      const [oldest] = this.#finished.keys();
      this.#finished.delete(oldest ?? "");
    }
    this.#waiting.get(id)?.(result);
    this.#waiting.delete(id);
  }

  /** Undefined when the time was not enough. */
  wait(id: string, waitMs: number): Promise<string | undefined> | string {
    const finished = this.#finished.get(id);
    if (finished !== undefined) {
      return finished;
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        resolve(undefined);
      }, waitMs);
      this.#waiting.set(id, (result) => {
        clearTimeout(timer);
        resolve(result);
      });
    });
  }
}

export interface Peer {
  /** Queues a job and answers its id once it is stored. */
  submit(input: object): Promise<string>;
  /** Its result as JSON; undefined when the time was not enough. */
  wait(id: string, waitMs: number): Promise<string | undefined> | string;
  close(): Promise<void>;
}

/** Serves a peer on a free port, which it prints, until SIGTERM. */
export async function serve({ submit, wait: waitFor, close }: Peer): Promise<void> {
  const app = Fastify();
  app.post("/noop/submit", async (req, reply) => {
    const id = await submit(req.body as object);
    return reply
      .code(202)
      .type("application/json")
      .send(JSON.stringify({ task_id: id, status: "queued" }));
  });
  app.get("/noop/get", async (req, reply) => {
    const { task_id: id = "", wait = "0" } = req.query as { task_id?: string; wait?: string };
    const result = await waitFor(id, Math.min(Number(wait) * 1000, MAX_WAIT_MS));
    return reply
      .code(result === undefined ? 408 : 200)
      .type("application/json")
      .send(result ?? '{"message":"not finished"}');
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  process.once("SIGTERM", async () => {
    await app.close();
    await close();
    process.exit(0);
  });
  const address = app.server.address();
  process.stdout.write(`port ${typeof address === "object" ? address?.port : ""}\n`);
}
