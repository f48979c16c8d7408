import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A function that has come to the gate, and waits there. */
export interface Arrival {
  /** The worker that it runs in. */
  readonly pid: number;
  readonly attempt: number;
  /** Lets it go on; it returns this text. */
  open(text: string): void;
  /** Resolves when it waits no longer, opened or not. */
  readonly gone: Promise<unknown>;
}

/**
 * Where functions of the fixtures wait until a test lets them go on: an HTTP
 * server that they ask, and that answers when the test says so. So a test
 * knows that a function runs, and how long.
 */
export class Gate implements AsyncDisposable {
  readonly url: string;
  readonly #server: ReturnType<typeof createServer>;
  readonly #arrived: Arrival[] = [];
  readonly #awaited: ((arrival: Arrival) => void)[] = [];

  static async build(): Promise<Gate> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Gate(server);
  }

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.on("request", (req, res) => this.#arrive(req, res));
  }

  /** How many wait here that no test has asked for. */
  get waiting(): number {
    return this.#arrived.length;
  }

  /** The next function that comes, in order. */
  arrival(): Promise<Arrival> {
    const arrived = this.#arrived.shift();
    return arrived
      ? Promise.resolve(arrived)
      : new Promise((resolve) => this.#awaited.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #arrive(req: IncomingMessage, res: ServerResponse): void {
    const { searchParams } = new URL(req.url ?? "/", this.url);
    const arrival: Arrival = {
      pid: Number(searchParams.get("pid")),
      attempt: Number(searchParams.get("attempt")),
      open: (text) => res.end(text),
      gone: once(res, "close"),
    };
    const awaited = this.#awaited.shift();
    if (awaited) {
      awaited(arrival);
    } else {
      this.#arrived.push(arrival);
    }
  }
}
