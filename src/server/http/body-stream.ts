/** Streaming of request bodies, bounded in size and time. */
import type { FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import { raceAbort } from "../../time/race.ts";
import {
  BODY_DEADLINE_MS,
  bodyTooLarge,
  cut,
  LATE_BODY_ANSWER_MS,
  MAX_DISCARDED_BYTES,
} from "./body.ts";

interface BodyStreamOptions {
  readonly maxBytes: number;
  /** From the first read to the arrival of the last byte. */
  readonly deadlineMs?: number;
}

/**
 * A request's body as a stream, for one reader. Errors: BODY_TOO_LARGE as soon
 * as that is known; BODY_MALFORMED when the sender stops before the end or
 * exceeds the deadline. It takes nothing from the budget for bodies: the
 * reader holds what it keeps.
 */
export class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #req: FastifyRequest;
  readonly #options: BodyStreamOptions;
  #size = 0;

  constructor(req: FastifyRequest, options: BodyStreamOptions) {
    this.#req = req;
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const { raw, headers } = this.#req;
    const { maxBytes, deadlineMs = BODY_DEADLINE_MS } = this.#options;
    const tooLate = new AbortController();
    const deadline = setTimeout(() => tooLate.abort(), deadlineMs);
    const chunks = raw.iterator({ destroyOnReturn: false });
    try {
      this.#bound(Number(headers["content-length"] ?? 0), maxBytes);
      for (;;) {
        const { done, value } = await raceAbort(chunks.next().catch(broken), tooLate.signal);
        if (done) {
          return;
        }
        this.#size += value.length;
        this.#bound(this.#size, maxBytes);
        yield value;
      }
    } catch (err) {
      throw tooLate.signal.aborted ? late(deadlineMs) : err;
    } finally {
      clearTimeout(deadline);
      if (tooLate.signal.aborted) {
        setTimeout(() => cut(raw), LATE_BODY_ANSWER_MS).unref();
      } else {
        await chunks.return?.();
        this.#discardRest(deadlineMs);
      }
    }
  }

  /** Discards the rest, so that the sender can read the answer; cuts the request if the rest is large or late. */
  #discardRest(withinMs: number): void {
    const { raw } = this.#req;
    if (raw.readableEnded || raw.destroyed) {
      return;
    }
    let size = this.#size;
    raw.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > this.#size + MAX_DISCARDED_BYTES) {
        cut(raw);
      }
    });
    const deadline = setTimeout(() => cut(raw), withinMs).unref();
    raw.once("close", () => clearTimeout(deadline));
    raw.once("end", () => clearTimeout(deadline));
    raw.on("error", () => {
      // The sender has gone, and has its answer or did not want it.
    });
    raw.resume();
  }

  #bound(bytes: number, maxBytes: number): void {
    if (bytes > maxBytes) {
      throw bodyTooLarge(maxBytes);
    }
  }
}

function late(deadlineMs: number): Error {
  const message = `the body did not arrive in time: it may take ${deadlineMs / 1000} s`;
  return problem("BODY_MALFORMED", message);
}

function broken(cause: unknown): never {
  throw problem("BODY_MALFORMED", "the body ended before its end", { cause });
}
