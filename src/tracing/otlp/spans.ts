/** Makes the spans of a deployment: their names, parents and attributes. */
import {
  type Attributes,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace as traces,
} from "@opentelemetry/api";
import { ATTRIBUTES } from "../attributes.ts";
import { traceHeaders } from "../context.ts";
import type {
  DeploymentTracing,
  OpenSpan,
  SpanEnd,
  TracedAttempt,
  TracedCall,
  TracedSubmit,
  TracedWait,
  TracedWork,
} from "../tracing.ts";

const KINDS = {
  call: SpanKind.SERVER,
  submit: SpanKind.PRODUCER,
  wait: SpanKind.INTERNAL,
  attempt: SpanKind.CONSUMER,
} as const;

export class DeploymentSpans implements DeploymentTracing {
  readonly #tracer: Tracer;
  readonly #name: () => string;

  constructor(tracer: Tracer, name: () => string) {
    this.#tracer = tracer;
    this.#name = name;
  }

  callBegan(call: TracedCall): OpenSpan {
    const { atMs, requestId, protocol, method, endpoint } = call;
    const isRpc = protocol !== "http" && protocol !== "rest";
    return this.#begin("call", call, {
      startTime: atMs,
      attributes: {
        [ATTRIBUTES.requestId]: requestId,
        ...(isRpc
          ? {
              [ATTRIBUTES.rpcSystem]: protocol === "connect" ? "connectrpc" : "grpc",
              [ATTRIBUTES.rpcMethod]: method,
            }
          : { [ATTRIBUTES.httpMethod]: "POST", [ATTRIBUTES.httpRoute]: `/${endpoint}` }),
      },
      statusAttribute: isRpc ? ATTRIBUTES.rpcStatus : undefined,
    });
  }

  submitBegan(submit: TracedSubmit): OpenSpan {
    const { taskId, retryOf, retriedTrace, requestId } = submit;
    const retried = retriedTrace === undefined ? undefined : contextOf(retriedTrace);
    return this.#begin("submit", submit, {
      attributes: {
        ...this.#message(submit, "send"),
        [ATTRIBUTES.taskId]: taskId,
        ...(retryOf !== undefined && { [ATTRIBUTES.retryOf]: retryOf }),
        ...(requestId !== undefined && { [ATTRIBUTES.requestId]: requestId }),
      },
      ...(retried && { links: [{ context: retried }] }),
    });
  }

  waited(wait: TracedWait): void {
    const { fromMs, toMs, taskId, attempt } = wait;
    const span = this.#start("wait", wait, {
      // The clocks of two nodes may differ.
      startTime: Math.min(fromMs, toMs),
      attributes: { [ATTRIBUTES.taskId]: taskId, [ATTRIBUTES.attempt]: attempt },
    });
    span.end(toMs);
  }

  attemptBegan(begun: TracedAttempt): OpenSpan {
    const { kind, taskId, attempt } = begun;
    return this.#begin("attempt", begun, {
      attributes: {
        ...(kind === "task" && { ...this.#message(begun, "process") }),
        [ATTRIBUTES.taskId]: taskId,
        [ATTRIBUTES.attempt]: attempt,
      },
      ...(kind === "api" && { kind: SpanKind.INTERNAL }),
    });
  }

  #message(
    { endpoint, taskId }: TracedWork & { readonly taskId: string },
    type: "send" | "process",
  ): Attributes {
    return {
      [ATTRIBUTES.messagingSystem]: "tessera",
      [ATTRIBUTES.messagingDestination]: `${this.#name()}/${endpoint}`,
      [ATTRIBUTES.messagingOperation]: type === "send" ? "submit" : "attempt",
      [ATTRIBUTES.messagingOperationType]: type,
      [ATTRIBUTES.messagingMessageId]: taskId,
    };
  }

  #begin(name: keyof typeof KINDS, work: TracedWork, options: SpanStart): OpenSpan {
    const span = this.#start(name, work, options);
    return new OtlpSpan(span, options.statusAttribute);
  }

  #start(
    name: keyof typeof KINDS,
    { endpoint, parent }: TracedWork,
    { attributes, kind = KINDS[name], statusAttribute: _, ...options }: SpanStart,
  ): Span {
    const above = parent === undefined ? undefined : contextOf(parent);
    return this.#tracer.startSpan(
      `${name} ${endpoint}`,
      {
        ...options,
        kind,
        attributes: {
          [ATTRIBUTES.deployment]: this.#name(),
          [ATTRIBUTES.endpoint]: endpoint,
          ...attributes,
        },
      },
      above === undefined ? ROOT_CONTEXT : traces.setSpanContext(ROOT_CONTEXT, above),
    );
  }
}

interface SpanStart {
  readonly attributes: Attributes;
  readonly kind?: SpanKind;
  readonly startTime?: number;
  readonly links?: { context: SpanContext }[];
  /** The attribute that takes the response's code. */
  readonly statusAttribute?: string | undefined;
}

class OtlpSpan implements OpenSpan {
  readonly trace: string;
  readonly #span: Span;
  readonly #statusAttribute: string | undefined;

  constructor(span: Span, statusAttribute: string | undefined) {
    this.#span = span;
    this.#statusAttribute = statusAttribute;
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    const state = traceState?.serialize() ?? "";
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
    this.trace = state === "" ? traceparent : `${traceparent} ${state}`;
  }

  end({ outcome, error, taskId }: SpanEnd): void {
    this.#span.setAttribute(ATTRIBUTES.outcome, outcome);
    if (taskId !== undefined) {
      this.#span.setAttribute(ATTRIBUTES.taskId, taskId);
      this.#span.setAttribute(ATTRIBUTES.messagingMessageId, taskId);
    }
    if (this.#statusAttribute !== undefined) {
      this.#span.setAttribute(this.#statusAttribute, error ?? "ok");
    }
    if (error !== undefined) {
      this.#span.setAttribute(ATTRIBUTES.errorType, error);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

function contextOf(trace: string): SpanContext {
  const [traceparent, tracestate] = traceHeaders(trace);
  const [, traceId = "", spanId = "", flags = "0"] = traceparent.split("-");
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate !== "" && { traceState: createTraceState(tracestate) }),
  };
}
