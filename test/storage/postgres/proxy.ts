import { once } from "node:events";
import { type AddressInfo, createServer, connect as open, type Socket } from "node:net";

/** A TCP proxy before a server that can be made to go silent, as a network does. */
export class SilentProxy implements AsyncDisposable {
  readonly #server;
  readonly #sockets = new Set<Socket>();
  #silent = false;

  constructor(target: URL) {
    this.#server = createServer((near) => {
      const far = open(Number(target.port), target.hostname);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from);
        from.on("data", (data) => this.#silent || to.write(data));
        from.on("error", () => undefined);
        from.on("close", () => (this.#silent ? undefined : to.destroy()));
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

  /** Passes nothing on any more, in either direction, and closes nothing. */
  silence(): void {
    this.#silent = true;
  }

  /** Passes on again what comes over new connections. */
  speak(): void {
    this.#silent = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    this.#server.close();
  }
}
