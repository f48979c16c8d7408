/**
 * A span exporter: OTLP over HTTP in protobuf
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp). OpenTelemetry's own
 * exporter reads the environment by itself, and its retry delays keep a process
 * from exiting while the receiver is away; this one stops at once.
 */
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { Backoff } from "../../time/backoff.ts";

/** How long a batch of spans has in all; a receiver that takes longer has lost it. */
export const SPANS_SEND_TIMEOUT_MS = 10_000;

/** Attempts to send a batch of spans, with growing pauses. */
const MAX_SEND_ATTEMPTS = 4;
/** Pause before a batch of spans is sent again; it doubles with each attempt. */
const SPANS_FIRST_PAUSE_MS = 500;

/** Statuses with which the receiver asks for a retry. */
const TEMPORARY = new Set([429, 502, 503, 504]);

/** Batches of spans under way at a time. */
const MAX_BATCHES_UNDER_WAY = 4;

interface SenderOptions {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  /** Called when spans were not accepted, with the reason. */
  onFailed(spans: number, reason: string): void;
}

/** The outcome of a batch. */
type Answer = { readonly taken: true } | { readonly taken: false; readonly reason: string };

export class OtlpSender implements SpanExporter {
  readonly #options: SenderOptions;
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Always reports success, because the caller could do nothing about a failure. */
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

  /** Aborts all batches under way. */
  abort(): void {
    this.#closing.abort();
  }

  async #send(spans: Parameters<SpanExporter["export"]>[0]): Promise<void> {
    const { onFailed } = this.#options;
    if (this.#underWay.size >= MAX_BATCHES_UNDER_WAY) {
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
    const signal = AbortSignal.any([
      this.#closing.signal,
      AbortSignal.timeout(SPANS_SEND_TIMEOUT_MS),
    ]);
    const backoff = new Backoff(SPANS_FIRST_PAUSE_MS, SPANS_SEND_TIMEOUT_MS);
    let reason = "";
    for (let attempt = 1; attempt <= MAX_SEND_ATTEMPTS; attempt++) {
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
      await backoff.pause(signal);
      // The time is up: report the last failure.
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
      // A redirect would send the credential to another host.
      redirect: "manual",
    });
    await response.body?.cancel();
    return response.status;
  }
}

/** Describes an error; `fetch` puts the details into the cause. */
function reasonOf(err: unknown): string {
  const { cause } = err as { cause?: unknown };
  const { code, message } = (cause ?? err) as NodeJS.ErrnoException;
  return code ?? message;
}
