/**
 * A load balancer as most are: it asks each node's `/readyz` again and again, and sends calls in
 * turn to those that said 200 last, over connections that it keeps. It repeats no call.
 */
import { once } from "node:events";
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";

/** How often it asks. */
const CHECK_INTERVAL_MS = 200;
const CHECK_TIMEOUT_MS = 1_000;

interface Target {
  readonly port: number;
  readonly agent: Agent;
  healthy: boolean;
}

export class Balancer implements AsyncDisposable {
  readonly #targets: readonly Target[];
  readonly #server: Server;
  readonly #checks: NodeJS.Timeout;
  #next = 0;
  #changed = Promise.withResolvers<void>();

  static async start(ports: readonly number[]): Promise<Balancer> {
    const balancer = new Balancer(ports);
    balancer.#server.listen(0, "127.0.0.1");
    await once(balancer.#server, "listening");
    return balancer;
  }

  private constructor(ports: readonly number[]) {
    this.#targets = ports.map((port) => ({
      port,
      agent: new Agent({ keepAlive: true }),
      healthy: false,
    }));
    this.#server = createServer((req, res) => void this.#forward(req, res));
    this.#checks = setInterval(() => {
      for (const target of this.#targets) {
        void this.#check(target);
      }
    }, CHECK_INTERVAL_MS);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves when the node of this port was healthy, or was not, at the last check. */
  async sees(port: number, healthy: boolean): Promise<void> {
    while (this.#targets.some((target) => target.port === port && target.healthy !== healthy)) {
      await this.#changed.promise;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#checks);
    for (const { agent } of this.#targets) {
      agent.destroy();
    }
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #check(target: Target): Promise<void> {
    let healthy = false;
    try {
      const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
      const res = await fetch(`http://127.0.0.1:${target.port}/readyz`, { signal });
      await res.bytes();
      healthy = res.status === 200;
    } catch {
      // Nobody listens there.
    }
    if (target.healthy !== healthy) {
      target.healthy = healthy;
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    }
  }

  async #forward(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const healthy = this.#targets.filter((target) => target.healthy);
    const target = healthy[this.#next++ % healthy.length];
    if (target === undefined) {
      res.writeHead(503).end("no node is healthy");
      return;
    }
    const { method, url, headers } = req;
    const { connection: _, ...kept } = headers;
    const { port, agent } = target;
    const sent = httpRequest({ host: "127.0.0.1", port, agent, method, path: url, headers: kept });
    try {
      // Both at once: some answers come before the last byte of the request.
      const [[answer]] = await Promise.all([
        once(sent, "response") as Promise<[IncomingMessage]>,
        pipeline(req, sent),
      ]);
      const { connection: __, "keep-alive": ___, ...passed } = answer.headers;
      res.writeHead(answer.statusCode ?? 502, passed);
      await pipeline(answer, res);
    } catch (err) {
      const message = `${err} from port ${port}`;
      if (res.headersSent) {
        res.destroy();
      } else {
        res.writeHead(502).end(message);
      }
    }
  }
}
