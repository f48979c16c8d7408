import type { EndpointManifest, JsonSchema, ServiceManifest } from "../../src/protocol/manifest.ts";

/** An endpoint as a worker would report it, with what a test does not care about filled in. */
export function endpoint(given: Partial<EndpointManifest> & { name: string }): EndpointManifest {
  return {
    kind: "api",
    input: { type: "object", properties: {} },
    files: {},
    output: {},
    timeoutMs: 60_000,
    concurrency: 1,
    retentionMs: 86_400_000,
    retries: { max: 0, backoffMs: 0 },
    queueLimit: 1000,
    priority: 0,
    ...given,
  };
}

/** A service of these endpoints. */
export function manifestOf(...endpoints: EndpointManifest[]): ServiceManifest {
  return { name: "example", endpoints };
}

/** A service of one endpoint that takes one argument `value`. */
export function takes(value: JsonSchema, definitions: JsonSchema = {}): ServiceManifest {
  const input = { type: "object", properties: { value }, required: ["value"], $defs: definitions };
  return manifestOf(endpoint({ name: "run", input }));
}
