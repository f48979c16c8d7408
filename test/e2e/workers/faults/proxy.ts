/**
 * A TCP proxy between agents and their node that does what networks do: it drops connections,
 * delays what it carries, goes silent while they stay open, closes one direction, and cuts a
 * connection when a request has arrived and before its answer gets back.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What carries a call; frames that keep a connection alive are shorter. */
const MIN_REQUEST_BYTES = 100;
/** How long a node has to store what has arrived, before its connection is cut. */
const COMMIT_MS = 30;

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

export class FaultProxy implements AsyncDisposable {
  readonly #server;
  readonly #pairs = new Set<Pair>();
  #delayMs = 0;
  #isSilent = false;
  /** True while the next request is to be cut off from its answer. */
  #cutsNext = false;

  static async start(targetPort: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(targetPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  private constructor(targetPort: number) {
    this.#server = createServer((near) => this.#carry(near, targetPort));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resets every connection. */
  drop(): void {
    for (const { near, far } of this.#pairs) {
      near.destroy();
      far.destroy();
    }
  }

  /** From now on everything takes this much longer each way. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** From now on connections stay open, and carry nothing. */
  silence(): void {
    this.#isSilent = true;
    for (const { near, far } of this.#pairs) {
      near.pause();
      far.pause();
    }
  }

  /** Closes the way from the agents to the node, and leaves the other one open. */
  halfClose(): void {
    for (const { far } of this.#pairs) {
      far.end();
    }
  }

  /** Cuts the connection of the next request after it has arrived, before its answer. */
  cutAfterNext(): void {
    this.#cutsNext = true;
  }

  /** Everything gets through again. */
  heal(): void {
    this.#delayMs = 0;
    this.#isSilent = false;
    this.#cutsNext = false;
    for (const { near, far } of this.#pairs) {
      near.resume();
      far.resume();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    this.#server.close();
    await once(this.#server, "close");
  }

  #carry(near: Socket, targetPort: number): void {
    const far = connect(targetPort, "127.0.0.1");
    const pair = { near, far };
    this.#pairs.add(pair);
    let isCut = false;
    near.on("data", (chunk) => {
      this.#pass(chunk, far);
      if (this.#cutsNext && chunk.length >= MIN_REQUEST_BYTES) {
        this.#cutsNext = false;
        isCut = true;
        setTimeout(() => near.destroy(), COMMIT_MS + this.#delayMs);
      }
    });
    far.on("data", (chunk) => {
      if (!isCut) {
        this.#pass(chunk, near);
      }
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("end", () => to.end());
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#isSilent) {
        from.pause();
      }
    }
  }

  #pass(chunk: Buffer, to: Socket): void {
    if (this.#delayMs === 0) {
      to.write(chunk);
    } else {
      setTimeout(() => to.destroyed || to.write(chunk), this.#delayMs);
    }
  }
}
