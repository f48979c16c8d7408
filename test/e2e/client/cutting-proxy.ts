import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Where an exchange is cut: in its request, between the two, or in its response. */
export type Cut = "request" | "between" | "response";

/**
 * A TCP proxy for HTTP/1.1 that cuts connections in the middle of exchanges:
 * what was under way is lost for the client, and may have reached the server.
 */
export class CuttingProxy implements AsyncDisposable {
  cuts = 0;
  readonly #server;
  readonly #sockets = new Set<Socket>();
  /** Asked at the beginning of each exchange, with what came of the request so far. */
  readonly #plan: (head: string) => Cut | undefined;

  static async start(
    targetPort: number,
    plan: (head: string) => Cut | undefined = () => undefined,
  ) {
    const proxy = new CuttingProxy(targetPort, plan);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  private constructor(targetPort: number, plan: (head: string) => Cut | undefined) {
    this.#plan = plan;
    this.#server = createServer((near) => this.#connect(near, targetPort));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts every connection that is open. */
  cutAll(): void {
    this.cuts += 1;
    for (const socket of this.#sockets) {
      socket.resetAndDestroy();
    }
  }

  /** Every connection that is open says nothing any more, and does not end; new ones work. */
  silenceAll(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners("data");
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
    let asking = false;
    let cut: Cut | undefined;
    const end = (): void => {
      this.cuts += 1;
      near.resetAndDestroy();
      // The server gets what was sent before it learns of the end.
      far.end();
    };
    near.on("data", (chunk) => {
      if (!asking) {
        asking = true;
        cut = this.#plan(chunk.toString("latin1"));
      }
      if (cut === "request") {
        far.write(chunk.subarray(0, chunk.length >> 1));
        end();
      } else {
        far.write(chunk);
      }
    });
    far.on("data", (chunk) => {
      asking = false;
      if (cut === "between" || cut === "response") {
        near.write(chunk.subarray(0, cut === "between" ? 0 : chunk.length >> 1));
        end();
        cut = undefined;
      } else if (!near.destroyed) {
        near.write(chunk);
      }
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("end", () => to.end());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}
