/** What a worker says of its service, read: plain data of a bounded size. */
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { metricsFault } from "../sdk/metric-rules.ts";
import { isFields, jsonOf } from "./untrusted.ts";

/** Large schemas have thousands. */
const MAX_VALUES = 200_000;
/** As many as an artifact's index may have, with the manifest in it. */
const MAX_CHARACTERS = 8 * 1024 ** 2;

export function readManifest(value: unknown): ServiceManifest | undefined {
  const manifest = jsonOf(value, { values: MAX_VALUES, characters: MAX_CHARACTERS });
  return isManifest(manifest) ? manifest : undefined;
}

function isManifest(manifest: unknown): manifest is ServiceManifest {
  return (
    isFields(manifest) &&
    typeof manifest.name === "string" &&
    Array.isArray(manifest.endpoints) &&
    manifest.endpoints.every(isEndpoint) &&
    (manifest.metrics === undefined ||
      (Array.isArray(manifest.metrics) && metricsFault(manifest.metrics) === undefined))
  );
}

function isEndpoint(endpoint: unknown): endpoint is EndpointManifest {
  return (
    isFields(endpoint) &&
    typeof endpoint.name === "string" &&
    (endpoint.kind === "api" || endpoint.kind === "task") &&
    [endpoint.input, endpoint.files, endpoint.output, endpoint.retries].every(isFields) &&
    [
      endpoint.timeoutMs,
      endpoint.concurrency,
      endpoint.retentionMs,
      endpoint.queueLimit,
      endpoint.priority,
    ].every((number) => Number.isSafeInteger(number))
  );
}
