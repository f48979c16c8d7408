/**
 * Where functions under test ask to go on: each fetches a path and waits until the
 * test opens it. The connection also tells that the function's process has ended.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Visit {
  /** Lets the function go on, with this text. */
  open(text: string): void;
  /** Resolves when the one who waited is gone without having been let through. */
  readonly gone: Promise<void>;
}

export class Gate implements AsyncDisposable {
  readonly #server = createServer((req, res) => this.#visit(req.url ?? "", res));
  readonly #visits = new Map<string, PromiseWithResolvers<Visit>>();

  static async start(): Promise<Gate> {
    const gate = new Gate();
    gate.#server.listen(0, "127.0.0.1");
    await once(gate.#server, "listening");
    return gate;
  }

  url(name: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${name}`;
  }

  /** Resolves when somebody waits at this place; each visit is handed out once. */
  async visit(name: string): Promise<Visit> {
    const visit = await this.#expected(name).promise;
    this.#visits.delete(name);
    return visit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #expected(name: string): PromiseWithResolvers<Visit> {
    const expected = this.#visits.get(name) ?? Promise.withResolvers<Visit>();
    this.#visits.set(name, expected);
    return expected;
  }

  #visit(url: string, res: ServerResponse): void {
    const gone = new Promise<void>((resolve) => res.once("close", resolve));
    this.#expected(url.slice(1)).resolve({
      open: (text) => void res.setHeader("connection", "close").end(text),
      gone,
    });
  }
}
