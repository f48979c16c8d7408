/**
 * Tracing by OpenTelemetry, sent by OTLP over HTTP. This folder alone knows
 * OpenTelemetry, and is loaded only where it is configured.
 *
 * Spans wait in a queue of bounded length and go out in batches; what finds
 * the queue full is dropped. A collector that is away costs spans, and a line
 * in the log now and then, but never a call.
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
import { ATTRIBUTES } from "../attributes.ts";
import type { DeploymentTracing, Tracing } from "../tracing.ts";
import { OtlpSender, SEND_TIMEOUT_MS } from "./sender.ts";
import { DeploymentSpans } from "./spans.ts";

/** Half a second of the fastest node, a few megabytes. */
const MAX_QUEUED = 8_192;

/** Spans of one request to the collector. */
const MAX_BATCH = 512;

/** Soon enough for who looks while developing. */
const SEND_AFTER_MS = 1_000;

/** What is left has so long when the node stops. */
const FLUSH_MS = 2_000;

const SAMPLERS = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) =>
    new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
} as const satisfies { readonly [name: string]: (ratio: number) => Sampler };

export interface OtlpOptions {
  /** Where spans are sent, with its path. */
  readonly url: string;
  /** Sent with them; they may hold a credential. */
  readonly headers: { readonly [name: string]: string };
  readonly sampler: keyof typeof SAMPLERS;
  /** The share of traces that the samplers by ratio keep, from 0 to 1. */
  readonly ratio: number;
  readonly serviceName: string;
  /** What else the resource is. */
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
          maxQueueSize: MAX_QUEUED,
          maxExportBatchSize: MAX_BATCH,
          scheduledDelayMillis: SEND_AFTER_MS,
          exportTimeoutMillis: 2 * SEND_TIMEOUT_MS,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer("tessera", version);
  }

  of(name: () => string): DeploymentTracing {
    return new DeploymentSpans(this.#tracer, name);
  }

  /** Sends what is left, as far as the collector takes it in time. */
  async [Symbol.asyncDispose](): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_MS);
    });
    // What could not be sent has been logged.
    await Promise.race([this.#provider.shutdown().catch(() => {}), timeUp]);
    clearTimeout(timer);
    this.#sender.abort();
  }
}

/** What was configured comes before what is known here. */
function attributesOf({ resource, serviceName, version }: OtlpOptions): Attributes {
  return {
    [ATTRIBUTES.serviceVersion]: version,
    [ATTRIBUTES.serviceInstance]: randomUUID(),
    ...resource,
    [ATTRIBUTES.serviceName]: serviceName,
  };
}

/** What OpenTelemetry has to say of itself, such as that spans were dropped. */
function diagnostics(throttle: LogThrottle) {
  const say = (message: string): void =>
    throttle.say({ reason: message.slice(0, 300) }, "OpenTelemetry reports a fault");
  const nothing = (): void => {};
  return { error: say, warn: say, info: nothing, debug: nothing, verbose: nothing };
}
