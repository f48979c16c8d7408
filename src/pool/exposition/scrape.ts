/**
 * Reads what a mounted server exposes, at the path that its author names, at an interval: then it
 * is there for a page, for other nodes and for the time after the worker, however long the server
 * takes to say it. A request of this kind takes no slot, and its answer is bounded.
 */

import { type Agent, type IncomingMessage, request } from "node:http";
import { readAtMost } from "../../collections/bytes.ts";
import { MAX_EXPOSITION_BYTES } from "../../protocol/messages.ts";
import type { ExposedSource } from "./exposition.ts";

/** Interval at which the metrics of a mounted server are read. */
const SCRAPE_INTERVAL_MS = 5_000;
/** How long a mounted server may take to say its metrics. */
const SCRAPE_TIMEOUT_MS = 5_000;
/** How long a server has for that when its worker is to stop. */
const LAST_SCRAPE_TIMEOUT_MS = 1_000;
/** Applications that are mounted in a server send to the path with a slash at its end. */
const MAX_REDIRECTS = 2;

interface ScraperOptions {
  readonly agent: Agent;
  /** From the root of the host. */
  readonly path: string;
  readonly source: ExposedSource;
}

export class Scraper implements Disposable {
  readonly #options: ScraperOptions;
  readonly #ended = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ScraperOptions) {
    this.#options = options;
  }

  /** Reads them now, and again and again. */
  start(): void {
    void this.#read(SCRAPE_TIMEOUT_MS).then(() => {
      if (!this.#ended.signal.aborted) {
        this.#timer = setTimeout(() => this.start(), SCRAPE_INTERVAL_MS).unref();
      }
    });
  }

  /** Reads them once more, and no more. Never rejects. */
  async finish(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#read(LAST_SCRAPE_TIMEOUT_MS);
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    clearTimeout(this.#timer);
  }

  async #read(timeoutMs: number): Promise<void> {
    const { source } = this.#options;
    const late = AbortSignal.timeout(timeoutMs);
    try {
      source.take(await this.#text(AbortSignal.any([late, this.#ended.signal])));
    } catch (err) {
      if (!this.#ended.signal.aborted) {
        const reason = err instanceof Error ? err.message : String(err);
        source.failed(late.aborted ? `it did not answer within ${timeoutMs / 1_000} s` : reason);
      }
    }
  }

  async #text(signal: AbortSignal): Promise<string> {
    let { path } = this.#options;
    for (let redirects = 0; ; redirects += 1) {
      const res = await this.#get(path, signal);
      const { statusCode = 0, headers } = res;
      if (statusCode === 200) {
        return await textOf(res, signal);
      }
      res.destroy();
      const isMoved = statusCode >= 301 && statusCode <= 308 && headers.location !== undefined;
      if (!isMoved || redirects === MAX_REDIRECTS) {
        throw new Error(`it answered GET ${path} with ${statusCode}`);
      }
      // Of an address elsewhere, too, only the path is asked for: nothing else can be reached.
      const { pathname, search } = new URL(headers.location ?? "", `http://localhost${path}`);
      path = pathname + search;
    }
  }

  #get(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request({
        ...{ agent: this.#options.agent, path, signal },
        headers: {
          host: "localhost",
          accept: "text/plain;version=0.0.4",
          "accept-encoding": "identity",
        },
      });
      let isOver = false;
      const end = (settle: () => void): void => {
        if (!isOver) {
          isOver = true;
          settle();
        }
      };
      sent.once("response", (res) => end(() => resolve(res)));
      // An answer that has begun may break, too, of which its reader hears.
      sent.on("error", (err) =>
        end(() => {
          // The server may have ended a kept connection at any time; the next one may be new.
          const isStale = sent.reusedSocket && !signal.aborted;
          return isStale ? resolve(this.#get(path, signal)) : reject(err);
        }),
      );
      // Of an answer that changes the protocol nothing else is heard.
      sent.once("close", () => end(() => reject(new Error("its answer is not HTTP"))));
      sent.end();
    });
  }
}

async function textOf(res: IncomingMessage, signal: AbortSignal): Promise<string> {
  const body = await readAtMost(res, MAX_EXPOSITION_BYTES);
  if (body === undefined) {
    throw new Error(`they have more than ${MAX_EXPOSITION_BYTES} bytes`);
  }
  signal.throwIfAborted();
  return body.toString();
}
