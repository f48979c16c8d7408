/** A page to scrape, on a free port of 127.0.0.1. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class Page implements AsyncDisposable {
  readonly address: string;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async serve(
    answer: string | ((req: IncomingMessage, res: ServerResponse) => void),
  ): Promise<Page> {
    const server = createServer((req, res) => {
      if (typeof answer === "string") {
        res.setHeader("content-type", "text/plain; version=0.0.4");
        res.end(answer);
      } else {
        answer(req, res);
      }
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Page(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
