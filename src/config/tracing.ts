/** The settings of tracing: the environment variables that OpenTelemetry defines for all programs. */
import { optional, type Settings, setting, type Values } from "./settings.ts";
import * as values from "./values.ts";
import { ConfigError, type Parse } from "./values.ts";

const SAMPLERS = [
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
  "always_on",
  "always_off",
  "traceidratio",
] as const;

/** `key=value` pairs with commas between them, values percent-encoded, as in W3C Baggage. */
function pairs(shown: (text: string) => string): Parse<{ readonly [key: string]: string }> {
  return (text, name) =>
    Object.fromEntries(
      text
        .split(",")
        .filter((pair) => pair.trim() !== "")
        .map((pair) => {
          const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
          if (key === undefined || value === undefined) {
            throw new ConfigError(
              `${name} must be key=value pairs with commas between them${shown(pair)}`,
            );
          }
          return [key, decoded(value)];
        }),
    );
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    // Kept as written, as other programs do.
    return value;
  }
}

/** Never quoted in a message: it may hold a password. */
const collector: Parse<string> = (text, name) => {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new ConfigError(
      `${name} must be the http:// or https:// address of an OTLP receiver, such as http://localhost:4318`,
    );
  }
  return text;
};

const ratio: Parse<number> = (text, name) => {
  const value = Number(text);
  if (text.trim() === "" || !(value >= 0 && value <= 1)) {
    throw new ConfigError(`${name} must be a number from 0 to 1, not ${JSON.stringify(text)}`);
  }
  return value;
};

export const TRACING_SETTINGS = {
  otlpEndpoint: optional({
    variable: "OTEL_EXPORTER_OTLP_ENDPOINT",
    shownDefault: "none",
    parse: collector,
    summary: "OTLP receiver that traces are sent to, over HTTP at <endpoint>/v1/traces",
    reason: "none: without it nothing is traced, and tracing costs nothing; see docs/tracing.md",
  }),
  otlpTracesEndpoint: optional({
    variable: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    shownDefault: "none",
    parse: collector,
    summary: "the same with its whole path, and before the other",
    reason: "for a receiver of traces alone",
  }),
  otlpHeaders: optional({
    variable: "OTEL_EXPORTER_OTLP_HEADERS",
    shownDefault: "none",
    parse: pairs(() => ""),
    isSecret: () => true,
    summary: "headers sent with traces, such as authorization=Bearer%20…, with commas between them",
    reason: "most hosted receivers ask for a key",
  }),
  otlpProtocol: setting({
    variable: "OTEL_EXPORTER_OTLP_PROTOCOL",
    fallback: "http/protobuf",
    parse: values.oneOf(["http/protobuf"]),
    summary: "how traces are sent; only http/protobuf is spoken",
    reason: "a receiver that asks for another is told at start rather than never heard of",
  }),
  tracesExporter: setting({
    variable: "OTEL_TRACES_EXPORTER",
    fallback: "otlp",
    parse: values.oneOf(["otlp", "none"]),
    summary: "otlp or none",
    reason: "none turns tracing off where the endpoint is set for others too",
  }),
  tracesSampler: setting({
    variable: "OTEL_TRACES_SAMPLER",
    fallback: "parentbased_always_on",
    parse: values.oneOf(SAMPLERS),
    summary: `which traces are kept: ${SAMPLERS.join(", ")}`,
    reason: "what the caller has decided, and all of callers that do not say",
  }),
  tracesSamplerRatio: setting({
    variable: "OTEL_TRACES_SAMPLER_ARG",
    fallback: "1",
    parse: ratio,
    summary: "the share of traces that a sampler by ratio keeps, from 0 to 1",
    reason: "all of them",
  }),
  traceServiceName: setting({
    variable: "OTEL_SERVICE_NAME",
    fallback: "tessera",
    parse: values.line,
    summary: "what traces call this program",
    reason: "tells platforms apart where several send to one receiver",
  }),
  traceResource: setting({
    variable: "OTEL_RESOURCE_ATTRIBUTES",
    fallback: "",
    parse: pairs((pair) => `; ${JSON.stringify(pair)} is not one`),
    summary: "attributes of the resource in traces, such as deployment.environment.name=production",
    reason: "none besides service.name, service.version and service.instance.id",
  }),
} as const satisfies Settings;

export interface TracingConfig {
  readonly sampler: (typeof SAMPLERS)[number];
  /** From 0 to 1. */
  readonly ratio: number;
  readonly serviceName: string;
  readonly resource: { readonly [attribute: string]: string };
}

/** Where traces are sent; the address may hold a password. */
export interface TracingSecrets {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
}

/** Reads the settings of tracing; both parts are undefined when it is off. */
export function tracingConfig(read: Values<typeof TRACING_SETTINGS>): {
  readonly tracing: TracingConfig | undefined;
  readonly tracingSecrets: TracingSecrets | undefined;
} {
  const url = read.otlpTracesEndpoint ?? (read.otlpEndpoint && tracesUrl(read.otlpEndpoint));
  if (url === undefined || read.tracesExporter === "none") {
    return { tracing: undefined, tracingSecrets: undefined };
  }
  const { tracesSampler: sampler, tracesSamplerRatio, traceServiceName, traceResource } = read;
  return {
    tracing: {
      sampler,
      ratio: tracesSamplerRatio,
      serviceName: traceServiceName,
      resource: traceResource,
    },
    tracingSecrets: { url, headers: read.otlpHeaders ?? {} },
  };
}

function tracesUrl(endpoint: string): string {
  return `${endpoint.replace(/\/+$/, "")}/v1/traces`;
}
