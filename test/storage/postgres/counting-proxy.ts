import { once } from "node:events";
import { type AddressInfo, createServer, connect as open, type Socket } from "node:net";

/**
 * A TCP proxy before a Postgres that counts round trips: requests of clients that come after an
 * answer, or after nothing, on any connection. Requests that are under way together are one.
 */
export class CountingProxy implements AsyncDisposable {
  readonly #server;
  readonly #sockets = new Set<Socket>();
  /** Connections that wait for an answer. */
  readonly #asking = new Set<number>();
  #connections = 0;
  #trips = 0;
  #requests = 0;

  constructor(target: URL) {
    this.#server = createServer((near) => {
      this.#connections += 1;
      const id = this.#connections;
      const far = open(Number(target.port), target.hostname);
      near.on("data", (data) => {
        this.#trips += this.#asking.size === 0 ? 1 : 0;
        this.#requests += this.#asking.has(id) ? 0 : 1;
        this.#asking.add(id);
        far.write(data);
      });
      far.on("data", (data) => {
        this.#asking.delete(id);
        near.write(data);
      });
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from);
        from.on("error", () => undefined);
        from.on("close", () => to.destroy());
      }
    });
  }

  /** Answers the address by which `url` is reached through it. */
  async listen(url: string): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const through = new URL(url);
    through.port = String((this.#server.address() as AddressInfo).port);
    return through.href;
  }

  /** The connections that were opened. */
  get connections(): number {
    return this.#connections;
  }

  /** The round trips of each connection, together. */
  get requests(): number {
    return this.#requests;
  }

  /** How many round trips `work` takes. */
  async trips(work: () => Promise<unknown>): Promise<number> {
    const before = this.#trips;
    await work();
    return this.#trips - before;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    this.#server.close();
  }
}
