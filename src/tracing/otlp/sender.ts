/**
 * Sends spans to a receiver: OTLP over HTTP, in protobuf
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp). OpenTelemetry's own
 * exporter reads the environment by itself, and while its receiver is away its
 * pauses keep a process from ending; this one ends at once when it is told to.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { SpanExporter } from "@opentelemetry/sdk-trace";

/** What a batch has in all; a receiver that takes longer has lost it. */
export const SEND_TIMEOUT_MS = 10_000;

/** A batch is offered so often, with growing pauses. */
const MAX_ATTEMPTS = 4;
const FIRST_PAUSE_MS = 500;

/** The receiver says by these that it may take the same later. */
const TEMPORARY = new Set([429, 502, 503, 504]);

/** Batches under way at a time. */
const MAX_UNDER_WAY = 4;

export interface SenderOptions {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  /** Spans were not taken, for this reason. */
  onFailed(spans: number, reason: string): void;
}

/** How a batch went. */
type Answer = { readonly taken: true } | { readonly taken: false; readonly reason: string };

export class OtlpSender implements SpanExporter {
  readonly #options: SenderOptions;
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Always well for the caller, who could do nothing about it. */
  export(...[spans, done]: Parameters<SpanExporter["export"]>): void {
    const sending = this.#send(spans)
      .catch((err: unknown) => this.#options.onFailed(spans.length, reasonOf(err)))
      .finally(() => {
        this.#underWay.delete(sending);
        done({ code: 0 });
      });
    this.#underWay.add(sending);
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  shutdown(): Promise<void> {
    return this.forceFlush();
  }

  /** Gives up what is under way. */
  abort(): void {
    this.#closing.abort();
  }

  async #send(spans: Parameters<SpanExporter["export"]>[0]): Promise<void> {
    const { onFailed } = this.#options;
    if (this.#underWay.size >= MAX_UNDER_WAY) {
      onFailed(spans.length, "the receiver is too slow");
      return;
    }
    const body = ProtobufTraceSerializer.serializeRequest(spans);
    if (body === undefined) {
      return;
    }
    const answer = await this.#offer(Buffer.from(body));
    if (!answer.taken) {
      onFailed(spans.length, answer.reason);
    }
  }

  async #offer(body: Buffer<ArrayBuffer>): Promise<Answer> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
    let reason = "";
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      try {
        const status = await this.#post(body, signal);
        if (status >= 200 && status < 300) {
          return { taken: true };
        }
        reason = `the receiver answered ${status}`;
        if (!TEMPORARY.has(status)) {
          break;
        }
      } catch (err) {
        reason = reasonOf(err);
      }
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1), undefined, { signal }).catch(() => {
        // The time is up: what failed last is the reason.
      });
      if (signal.aborted) {
        break;
      }
    }
    return { taken: false, reason };
  }

  async #post(body: Buffer<ArrayBuffer>, signal: AbortSignal): Promise<number> {
    const { url, headers } = this.#options;
    const response = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/x-protobuf" },
      body,
      signal,
      // A redirect would carry the key elsewhere.
      redirect: "manual",
    });
    await response.body?.cancel();
    return response.status;
  }
}

/** `fetch` says what happened in the cause. */
function reasonOf(err: unknown): string {
  const { cause } = err as { cause?: unknown };
  const { code, message } = (cause ?? err) as NodeJS.ErrnoException;
  return code ?? message;
}
