/**
 * Back-pressure on request bodies: a budget of bytes that a server holds at a
 * time. Each body has its own limit, but many bodies within it can be too much
 * together. A body counts from the start of its reading until its response is
 * sent, with the length that its request announces or with what has arrived,
 * whichever is larger.
 */
import type { FastifyInstance } from "fastify";
import { SharedBound } from "../../collections/shared-bound.ts";
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
  readonly #bound: SharedBound;

  /** @param share of one organization; see `SharedBound`. */
  constructor(maxBytes: number, share?: number) {
    this.#bound = new SharedBound(maxBytes, share);
  }

  /** Bytes held now. */
  get takenBytes(): number {
    return this.#bound.taken;
  }

  /** Takes bytes for an organization; throws SERVER_BUSY if fewer are left. */
  take(organizationId: string, bytes: number): void {
    if (!this.#bound.take(organizationId, bytes)) {
      const message = `the server holds as many bytes of request bodies as it may (${this.#bound.refusal(organizationId, bytes)}): try again`;
      throw problem("SERVER_BUSY", message, { retryAfterMs: BODY_BUDGET_RETRY_AFTER_MS });
    }
  }

  /** Gives bytes back. */
  give(organizationId: string, bytes: number): void {
    this.#bound.give(organizationId, bytes);
  }
}

/** One request's share of a budget. */
export class BodyShare {
  readonly #budget: BodyBudget;
  /** Empty while it is not known. */
  #organizationId = "";
  #heldBytes = 0;
  #released = false;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** The request is for this organization; what it holds already stays as it is. */
  of(organizationId: string): void {
    if (this.#heldBytes === 0) {
      this.#organizationId = organizationId;
    }
  }

  /** Raises the share to `bytes` in total; never lowers it. Errors: SERVER_BUSY. */
  hold(bytes: number): void {
    if (bytes > this.#heldBytes && !this.#released) {
      this.#budget.take(this.#organizationId, bytes - this.#heldBytes);
      this.#heldBytes = bytes;
    }
  }

  /** Gives everything back; from then on the share takes nothing. */
  release(): void {
    if (!this.#released) {
      this.#released = true;
      this.#budget.give(this.#organizationId, this.#heldBytes);
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
