/**
 * The OpenTelemetry adapter of the tracing port, exporting OTLP over HTTP. Only
 * this folder knows OpenTelemetry, and it is loaded only when configured.
 *
 * Spans wait in a bounded queue and are sent in batches; spans that find the
 * queue full are dropped. An unreachable collector costs spans and an
 * occasional log line, but never a call.
 */
import { randomUUID } from "node:crypto";
import { type Attributes, DiagLogLevel, diag, type Tracer } from "@opentelemetry/api";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { LogThrottle } from "../../time/log-throttle.ts";
import { within } from "../../time/race.ts";
import { ATTRIBUTES } from "../attributes.ts";
import type { DeploymentTracing, Tracing } from "../tracing.ts";
import { OtlpSender, SPANS_SEND_TIMEOUT_MS } from "./sender.ts";
import { DeploymentSpans } from "./spans.ts";

/** Spans that wait for the collector: half a second of the fastest node, a few megabytes. */
const MAX_QUEUED_SPANS = 8_192;

/** Spans of one request to the collector. */
const MAX_BATCH_SPANS = 512;

/** Delay before spans are sent: soon enough for someone who watches while developing. */
const SPANS_SEND_DELAY_MS = 1_000;

/** How long the remaining spans have to be sent when the node stops. */
const SPANS_FLUSH_TIMEOUT_MS = 2_000;

const SAMPLERS = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) =>
    new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
} as const satisfies { readonly [name: string]: (ratio: number) => Sampler };

interface OtlpOptions {
  /** The URL that spans are sent to, with its path. */
  readonly url: string;
  /** Headers of each request; they may hold a credential. */
  readonly headers: { readonly [name: string]: string };
  readonly sampler: keyof typeof SAMPLERS;
  /** The share of traces that the samplers by ratio keep, from 0 to 1. */
  readonly ratio: number;
  readonly serviceName: string;
  /** Further attributes of the resource. */
  readonly resource: { readonly [attribute: string]: string };
  readonly version: string;
  readonly log: { warn(fields: object, message: string): void };
}

export class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #sender: OtlpSender;

  constructor(options: OtlpOptions) {
    const { url, headers, sampler, ratio, version, log } = options;
    const throttle = new LogThrottle((fields, message) => log.warn(fields, message));
    diag.setLogger(diagnostics(throttle), {
      logLevel: DiagLogLevel.WARN,
      suppressOverrideMessage: true,
    });
    this.#sender = new OtlpSender({
      url,
      headers,
      onFailed: (spans, reason) => throttle.say({ spans, reason }, "spans could not be sent"),
    });
    this.#provider = new TracerProvider({
      resource: defaultResource().merge(resourceFromAttributes(attributesOf(options))),
      sampler: SAMPLERS[sampler](ratio),
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: this.#sender,
          maxQueueSize: MAX_QUEUED_SPANS,
          maxExportBatchSize: MAX_BATCH_SPANS,
          scheduledDelayMillis: SPANS_SEND_DELAY_MS,
          exportTimeoutMillis: 2 * SPANS_SEND_TIMEOUT_MS,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer("tessera", version);
  }

  of(name: () => string): DeploymentTracing {
    return new DeploymentSpans(this.#tracer, name);
  }

  /** Sends the remaining spans within the time limit. */
  async [Symbol.asyncDispose](): Promise<void> {
    // Failures have been logged.
    const ended = this.#provider.shutdown().catch(() => {});
    await within(ended, SPANS_FLUSH_TIMEOUT_MS, () => undefined);
    this.#sender.abort();
  }
}

/** Configured attributes override the built-in ones. */
function attributesOf({ resource, serviceName, version }: OtlpOptions): Attributes {
  return {
    [ATTRIBUTES.serviceVersion]: version,
    [ATTRIBUTES.serviceInstance]: randomUUID(),
    ...resource,
    [ATTRIBUTES.serviceName]: serviceName,
  };
}

/** Logs OpenTelemetry's own diagnostics, such as dropped spans. */
function diagnostics(throttle: LogThrottle) {
  const say = (message: string): void =>
    throttle.say({ reason: message.slice(0, 300) }, "OpenTelemetry reports a fault");
  const nothing = (): void => {};
  return { error: say, warn: say, info: nothing, debug: nothing, verbose: nothing };
}
