/** The service `traced`, served with its spans going to a receiver, or to none. */
import { serveService } from "../../src/app/serve.ts";
import { readServeConfig } from "../../src/config/serve.ts";
import { fixture, Served } from "../e2e/serve/served.ts";
import type { OtlpReceiver, ReceivedSpan } from "./receiver.ts";

export interface TracedOptions {
  readonly receiver?: Pick<OtlpReceiver, "url">;
  readonly database?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export async function serveTraced(options: TracedOptions = {}): Promise<Served> {
  const { receiver, database = ":memory:", env = {} } = options;
  const receives = receiver && { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const { config, secrets } = readServeConfig(
    fixture("traced.ts"),
    { port: "0", database, workers: "1" },
    { TESSERA_LOG_LEVEL: "silent", ...receives, ...env },
  );
  const service = await serveService({ ...config, graceMs: 300, drainMs: 300 }, secrets);
  return new Served(service.port, () => service.stop());
}

export const CALLER = "4bf92f3577b34da6a3ce929d0e0e4736";
export const CALLER_SPAN = "00f067aa0ba902b7";

/** What a caller who traces sends. */
export const TRACED = {
  traceparent: `00-${CALLER}-${CALLER_SPAN}-01`,
  tracestate: "vendor=a,other=b",
};

export function ofTask(taskId: string): (span: ReceivedSpan) => boolean {
  return ({ attributes }) => attributes["tessera.task.id"] === taskId;
}

export function names(spans: readonly ReceivedSpan[]): string[] {
  return spans.map(({ name }) => name);
}

/** The span of this name; fails when there is none. */
export function named(spans: readonly ReceivedSpan[], name: string, at = 0): ReceivedSpan {
  const found = spans.filter((span) => span.name === name)[at];
  if (found === undefined) {
    throw new Error(`there is no ${name} among ${names(spans).join(", ")}`);
  }
  return found;
}
