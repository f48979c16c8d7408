/** Validates the manifest that a worker sends: plain data of a bounded size. */
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { metricsFault } from "../sdk/metric-rules.ts";
import { isFields, jsonOf } from "./untrusted.ts";

/** Values in a manifest that a worker sends; large schemas have thousands. */
const MAX_MANIFEST_VALUES = 200_000;
/**
 * Manifest that a worker sends: as many as the index of an artifact may have, with the
 * manifest in it.
 */
const MAX_MANIFEST_CHARACTERS = 8 * 1024 ** 2;

/** A copy of the manifest; undefined for anything else. */
export function readManifest(value: unknown): ServiceManifest | undefined {
  const manifest = jsonOf(value, {
    values: MAX_MANIFEST_VALUES,
    characters: MAX_MANIFEST_CHARACTERS,
  });
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
