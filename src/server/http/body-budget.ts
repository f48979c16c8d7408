/**
 * Back-pressure on request bodies: a budget of bytes that a server holds at a
 * time. Each body has its own limit, but many bodies within it can be too much
 * together. A body counts from the start of its reading until its response is
 * sent, with the length that its request announces or with what has arrived,
 * whichever is larger.
 */
import type { FastifyInstance } from "fastify";
import { problem } from "../../errors.ts";

/** The `retry-after` of requests that are refused because bodies under way fill their memory. */
const BODY_BUDGET_RETRY_AFTER_MS = 1_000;

declare module "fastify" {
  interface FastifyRequest {
    /** The body's share of the server's budget; absent for GET and HEAD, and on a server without a budget. */
    bodyShare?: BodyShare;
  }
}

/** The budget of one server. */
export class BodyBudget {
  readonly #maxBytes: number;
  #takenBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes held now. */
  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Takes bytes; throws SERVER_BUSY if fewer are left. */
  take(bytes: number): void {
    if (this.#takenBytes + bytes > this.#maxBytes) {
      const message = `the server holds ${this.#takenBytes} bytes of request bodies, of ${this.#maxBytes} that it may: try again`;
      throw problem("SERVER_BUSY", message, { retryAfterMs: BODY_BUDGET_RETRY_AFTER_MS });
    }
    this.#takenBytes += bytes;
  }

  /** Gives bytes back. */
  give(bytes: number): void {
    this.#takenBytes -= bytes;
  }
}

/** One request's share of a budget. */
export class BodyShare {
  readonly #budget: BodyBudget;
  #heldBytes = 0;
  #released = false;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** Raises the share to `bytes` in total; never lowers it. Errors: SERVER_BUSY. */
  hold(bytes: number): void {
    if (bytes > this.#heldBytes && !this.#released) {
      this.#budget.take(bytes - this.#heldBytes);
      this.#heldBytes = bytes;
    }
  }

  /** Gives everything back; from then on the share takes nothing. */
  release(): void {
    if (!this.#released) {
      this.#released = true;
      this.#budget.give(this.#heldBytes);
    }
  }
}

/** Gives each request that may have a body a share of the budget until its response is sent. */
export function shareBudget(app: FastifyInstance, budget: BodyBudget): void {
  app.decorateRequest("bodyShare");
  app.addHook("onRequest", (req, reply, done) => {
    if (req.method !== "GET" && req.method !== "HEAD") {
      const share = new BodyShare(budget);
      req.bodyShare = share;
      reply.raw.on("close", () => share.release());
    }
    done();
  });
}
