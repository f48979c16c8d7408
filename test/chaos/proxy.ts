import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A TCP proxy that can go silent: connections stay open, new ones are taken,
 * and not a byte gets through in either direction. This is what a broken
 * network looks like to a program.
 */
export class SilentProxy implements AsyncDisposable {
  readonly #server;
  readonly #sockets = new Set<Socket>();
  #silent = false;

  /** A proxy to a port of this machine. */
  static async start(targetPort: number): Promise<SilentProxy> {
    const proxy = new SilentProxy(targetPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  private constructor(targetPort: number) {
    this.#server = createServer((near) => this.#connect(near, targetPort));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on nothing gets through. */
  silence(): void {
    this.#silent = true;
    for (const socket of this.#sockets) {
      socket.pause();
    }
  }

  /** Everything gets through again, what was held back included. */
  speak(): void {
    this.#silent = false;
    for (const socket of this.#sockets) {
      socket.resume();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    this.#server.close();
    await once(this.#server, "close");
  }

  #connect(near: Socket, targetPort: number): void {
    const far = connect(targetPort, "127.0.0.1");
    const ends = [
      [near, far],
      [far, near],
    ] as const;
    for (const [from, to] of ends) {
      this.#sockets.add(from);
      // With a listener for data, and not by `pipe`, which resumes by itself.
      from.on("data", (chunk) => to.write(chunk));
      from.on("end", () => to.end());
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#silent) {
        from.pause();
      }
    }
  }
}
