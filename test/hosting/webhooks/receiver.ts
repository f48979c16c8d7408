/** A receiver of webhooks: an HTTP server that keeps what it gets, and answers as it is told. */
import { EventEmitter, once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly #server = createServer();
  readonly #arrived = new EventEmitter<{ message: [] }>();
  /** How it answers. */
  answer: (res: ServerResponse, message: Received) => void = (res) => res.writeHead(204).end();

  static async start(port = 0): Promise<Receiver> {
    const receiver = new Receiver();
    await once(receiver.#server.listen(port, "127.0.0.1"), "listening");
    return receiver;
  }

  private constructor() {
    this.#server.on("request", (req, res) => {
      const chunks: Buffer[] = [];
      req.on("data", (chunk: Buffer) => chunks.push(chunk));
      req.on("end", () => {
        const message = {
          ...{ id: String(req.headers["webhook-id"]), path: req.url ?? "", headers: req.headers },
          body: Buffer.concat(chunks).toString(),
        };
        this.received.push(message);
        this.answer(res, message);
        this.#arrived.emit("message");
      });
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get ids(): string[] {
    return this.received.map(({ id }) => id);
  }

  /** Resolves when it has had this many messages. */
  async has(count: number): Promise<readonly Received[]> {
    while (this.received.length < count) {
      await once(this.#arrived, "message");
    }
    return this.received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}
