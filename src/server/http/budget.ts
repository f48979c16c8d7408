/**
 * How many bytes of request bodies a server holds at a time. Each body has a
 * limit of its own, but many that are allowed each are too many together. A
 * body counts from the beginning of its reading until its response is out:
 * with the length that its request announces, or with what has come so far.
 */
import type { FastifyInstance } from "fastify";
import { problem } from "../../errors.ts";

const RETRY_AFTER_MS = 1_000;

declare module "fastify" {
  interface FastifyRequest {
    /** What the request's body takes of the server's budget; absent where it has none. */
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

  /** What is held now. */
  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Takes bytes; throws SERVER_BUSY when so many are not left. */
  take(bytes: number): void {
    if (this.#takenBytes + bytes > this.#maxBytes) {
      const message = `the server holds ${this.#takenBytes} bytes of request bodies, of ${this.#maxBytes} that it may: try again`;
      throw problem("SERVER_BUSY", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    this.#takenBytes += bytes;
  }

  give(bytes: number): void {
    this.#takenBytes -= bytes;
  }
}

/** The part of a budget that one request has. */
export class BodyShare {
  readonly #budget: BodyBudget;
  #heldBytes = 0;
  #released = false;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** Holds so many bytes in all, or more if it does already. Errors: SERVER_BUSY. */
  hold(bytes: number): void {
    if (bytes > this.#heldBytes && !this.#released) {
      this.#budget.take(bytes - this.#heldBytes);
      this.#heldBytes = bytes;
    }
  }

  /** Gives everything back; the share takes nothing any more. */
  release(): void {
    if (!this.#released) {
      this.#released = true;
      this.#budget.give(this.#heldBytes);
    }
  }
}

/** Gives each request with a body a share of the budget, until its response is out. */
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
