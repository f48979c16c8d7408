import type { FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import { ANSWER_MS, BODY_DEADLINE_MS, bodyTooLarge, cut, DISCARD_BYTES } from "./body.ts";

/** True for a body of multipart/form-data. */
export function isForm({ headers }: FastifyRequest): boolean {
  return /^multipart\/form-data\b/i.test(headers["content-type"] ?? "");
}

export interface BodyStreamOptions {
  readonly maxBytes: number;
  /** From the first byte that is asked for to the last that has come. */
  readonly deadlineMs?: number;
}

/**
 * A request's body as it arrives, for one reader, bounded in size and time. Errors:
 * BODY_TOO_LARGE as soon as that is known; BODY_MALFORMED when the sender
 * stops in the middle, or has not sent all in time. Of the budget for bodies
 * it takes nothing: its reader holds what it keeps.
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
        const { done, value } = await next(chunks, tooLate.signal);
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
        setTimeout(() => cut(raw), ANSWER_MS).unref();
      } else {
        await chunks.return?.();
        this.#discardRest(deadlineMs);
      }
    }
  }

  /** Throws away what is left, so that the sender gets to read the answer; cuts it off when that is much or late. */
  #discardRest(withinMs: number): void {
    const { raw } = this.#req;
    if (raw.readableEnded || raw.destroyed) {
      return;
    }
    let size = this.#size;
    raw.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > this.#size + DISCARD_BYTES) {
        cut(raw);
      }
    });
    const deadline = setTimeout(() => cut(raw), withinMs).unref();
    raw.once("close", () => clearTimeout(deadline));
    raw.once("end", () => clearTimeout(deadline));
    raw.on("error", () => {
      // The sender is gone, and had its answer or did not want it.
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

/** The next chunk; a sender that is too late is not waited for. */
function next(
  chunks: AsyncIterator<Buffer>,
  tooLate: AbortSignal,
): Promise<IteratorResult<Buffer>> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(tooLate.reason);
    tooLate.addEventListener("abort", stop, { once: true });
    chunks
      .next()
      .then(resolve, (cause: unknown) =>
        reject(problem("BODY_MALFORMED", "the body ended before its end", { cause })),
      )
      .finally(() => tooLate.removeEventListener("abort", stop));
  });
}
