/** Validates the manifest of a service: of a worker, as JSON text, or of an artifact's index. */
import type { Attachments } from "../../protocol/attachments.ts";
import { isHeaderName, MAX_HEAD_FIELDS } from "../../protocol/heads.ts";
import { faultOfImage } from "../../protocol/image.ts";
import {
  type EndpointManifest,
  faultOfGpus,
  isPagePath,
  isRoute,
  MAX_ABORT_GRACE_MS,
  MAX_CONCURRENCY_PER_KEY,
  MAX_GPU_MEMORY_MIB,
  MAX_JSON_OPTION_BYTES,
  MAX_MODEL_SOURCE_CHARACTERS,
  MAX_MOUNT_CONCURRENCY,
  MAX_MOUNT_QUEUE_PATH_CHARACTERS,
  MAX_MOUNT_TIMEOUT_MS,
  MAX_MOUNTS,
  MAX_PROCESSES,
  MAX_RATE_COUNT,
  MAX_RATE_PERIOD_MS,
  MAX_READY_TIMEOUT_MS,
  MAX_SERVICE_MODELS,
  MAX_SERVICE_WORKERS,
  MIN_READY_TIMEOUT_MS,
  MODEL_NAME,
  MODEL_SOURCE,
  type ServiceManifest,
} from "../../protocol/manifest.ts";
import { MAX_MANIFEST_BYTES } from "../../protocol/messages.ts";
import { faultOfPlacement } from "../../protocol/placement.ts";
import { faultOfSystemPackages } from "../../protocol/system-packages.ts";
import { MAX_BATCH_BYTES, MAX_BATCH_SIZE, MAX_BATCH_WAIT_MS } from "../../sdk/batch.ts";
import { metricsFault } from "../../sdk/metric-rules.ts";
import { isFields, MAX_MESSAGE_DEPTH, parseJson } from "./untrusted.ts";

/** Values in a manifest: large schemas have thousands, and as many parse within 50 ms. */
const MAX_MANIFEST_VALUES = 25_000;

/** Origins, methods or headers that a service names for pages of other sites. */
const MAX_CORS_NAMES = 100;
/** Of the pattern for origins. */
const MAX_PATTERN_CHARACTERS = 1_000;
/** How long a service may let browsers keep the answer to a preflight: none keeps it longer than a day. */
const MAX_PREFLIGHT_SECONDS = 86_400;
/** A name of a header or a method (RFC 9110, section 5.6.2), or `*`. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const ORIGIN = /^[\x21-\x7e]{1,255}$/;

/** The manifest that a worker sends in an attachment; undefined for anything else. */
export function readSentManifest(
  value: unknown,
  attachments: Attachments,
): ServiceManifest | undefined {
  const text = attachments.take(value, MAX_MANIFEST_BYTES);
  const manifest = text && parseJson(text, MAX_MANIFEST_VALUES);
  return isManifest(manifest) ? manifest : undefined;
}

/** The manifest in a value that was parsed from JSON; undefined for anything else. */
export function readManifest(value: unknown): ServiceManifest | undefined {
  const room = { values: MAX_MANIFEST_VALUES };
  return isBounded(value, room, MAX_MESSAGE_DEPTH) && isManifest(value) ? value : undefined;
}

function isBounded(value: unknown, room: { values: number }, depth: number): boolean {
  room.values -= 1;
  if (typeof value !== "object" || value === null) {
    return room.values >= 0;
  }
  return (
    room.values >= 0 &&
    depth >= 0 &&
    Object.values(value).every((member) => isBounded(member, room, depth - 1))
  );
}

function isManifest(manifest: unknown): manifest is ServiceManifest {
  return (
    isFields(manifest) &&
    typeof manifest.name === "string" &&
    Array.isArray(manifest.endpoints) &&
    manifest.endpoints.every(isEndpoint) &&
    (manifest.mounts === undefined || areMounts(manifest.mounts)) &&
    faultOfPlacement(manifest) === undefined &&
    (manifest.metrics === undefined ||
      (Array.isArray(manifest.metrics) && metricsFault(manifest.metrics) === undefined)) &&
    (manifest.compat === undefined || isCompat(manifest.compat)) &&
    (manifest.cors === undefined || isCors(manifest.cors)) &&
    (manifest.models === undefined || areModels(manifest.models)) &&
    (manifest.processes === undefined || isWithin(manifest.processes, 0, MAX_PROCESSES)) &&
    (manifest.gpus === undefined || faultOfGpus(manifest.gpus) === undefined) &&
    (manifest.gpuMemoryMib === undefined ||
      isWithin(manifest.gpuMemoryMib, 0, MAX_GPU_MEMORY_MIB)) &&
    (manifest.workers === undefined || isWithin(manifest.workers, 1, MAX_SERVICE_WORKERS)) &&
    (manifest.readyTimeoutMs === undefined ||
      isWithin(manifest.readyTimeoutMs, MIN_READY_TIMEOUT_MS, MAX_READY_TIMEOUT_MS)) &&
    (manifest.image === undefined || faultOfImage(manifest.image) === undefined) &&
    (manifest.packages === undefined || faultOfSystemPackages(manifest.packages) === undefined)
  );
}

function areModels(models: unknown): boolean {
  return (
    isFields(models) &&
    Object.keys(models).length <= MAX_SERVICE_MODELS &&
    Object.entries(models).every(
      ([name, source]) =>
        MODEL_NAME.test(name) &&
        typeof source === "string" &&
        source.length <= MAX_MODEL_SOURCE_CHARACTERS &&
        MODEL_SOURCE.test(source),
    )
  );
}

function areMounts(mounts: unknown): boolean {
  return (
    Array.isArray(mounts) &&
    mounts.length <= MAX_MOUNTS &&
    new Set(mounts.map((each) => isFields(each) && each.path)).size === mounts.length &&
    mounts.every(
      (each) =>
        isFields(each) &&
        isRoute(each.path) &&
        isWithin(each.timeoutMs, 1, MAX_MOUNT_TIMEOUT_MS) &&
        isWithin(each.concurrency, 1, MAX_MOUNT_CONCURRENCY) &&
        (each.byKey === undefined || isByKey(each.byKey)) &&
        (each.queue === undefined || isMountQueue(each.queue, each.path)) &&
        (each.metrics === undefined || isPagePath(each.metrics)) &&
        (each.openapi === undefined || each.openapi === "" || isPagePath(each.openapi)),
    )
  );
}

function isMountQueue(queue: unknown, path: unknown): boolean {
  return (
    isFields(queue) &&
    isFields(queue.retries) &&
    String(path).length <= MAX_MOUNT_QUEUE_PATH_CHARACTERS &&
    isWithin(queue.timeoutMs, 1, MAX_MOUNT_TIMEOUT_MS) &&
    isRequest({ headers: queue.headers }) &&
    [
      ...[queue.retentionMs, queue.queueLimit, queue.priority],
      ...[queue.retries.max, queue.retries.backoffMs],
    ].every((number) => Number.isSafeInteger(number))
  );
}

function isCompat(compat: unknown): boolean {
  return isFields(compat) && (compat.bentoml === undefined || isFields(compat.bentoml));
}

/** Names become parts of headers, and the pattern is matched with what callers send. */
function isCors(cors: unknown): boolean {
  return (
    isFields(cors) &&
    isList(cors.origins, ORIGIN) &&
    [cors.methods, cors.headers, cors.exposedHeaders].every(
      (names) => names === undefined || isList(names, TOKEN),
    ) &&
    (cors.credentials === undefined || typeof cors.credentials === "boolean") &&
    (cors.maxAgeSeconds === undefined || isWithin(cors.maxAgeSeconds, 0, MAX_PREFLIGHT_SECONDS)) &&
    (cors.originPattern === undefined || isPattern(cors.originPattern))
  );
}

function isList(list: unknown, form: RegExp): boolean {
  return (
    Array.isArray(list) &&
    list.length <= MAX_CORS_NAMES &&
    list.every((each) => typeof each === "string" && form.test(each))
  );
}

function isPattern(pattern: unknown): boolean {
  if (typeof pattern !== "string" || pattern.length > MAX_PATTERN_CHARACTERS) {
    return false;
  }
  try {
    return new RegExp(pattern) instanceof RegExp;
  } catch {
    return false;
  }
}

function isEndpoint(endpoint: unknown): endpoint is EndpointManifest {
  return (
    isFields(endpoint) &&
    typeof endpoint.name === "string" &&
    (endpoint.kind === "api" || endpoint.kind === "task") &&
    (endpoint.batch === undefined || isBatch(endpoint.batch)) &&
    (endpoint.byKey === undefined || isByKey(endpoint.byKey)) &&
    (endpoint.request === undefined || isRequest(endpoint.request)) &&
    (endpoint.quoted === undefined || endpoint.quoted === true) &&
    faultOfPlacement(endpoint) === undefined &&
    (endpoint.stream === undefined || isStream(endpoint.stream, endpoint.outputFile)) &&
    [endpoint.input, endpoint.files, endpoint.output, endpoint.retries].every(isFields) &&
    (endpoint.check === undefined || isFields(endpoint.check)) &&
    (endpoint.maxJsonBytes === undefined ||
      isWithin(endpoint.maxJsonBytes, 1, MAX_JSON_OPTION_BYTES)) &&
    (endpoint.abortGraceMs === undefined ||
      isWithin(endpoint.abortGraceMs, 1, MAX_ABORT_GRACE_MS)) &&
    (endpoint.idempotent === undefined || endpoint.idempotent === true) &&
    (endpoint.json === undefined || endpoint.json === "python") &&
    (endpoint.arrays === undefined || areArguments(endpoint.arrays, endpoint.input)) &&
    (endpoint.route === undefined || isRoute(endpoint.route)) &&
    (endpoint.rootArgument === undefined || isArgument(endpoint.rootArgument, endpoint.input)) &&
    [
      endpoint.timeoutMs,
      endpoint.concurrency,
      endpoint.retentionMs,
      endpoint.queueLimit,
      endpoint.priority,
    ].every((number) => Number.isSafeInteger(number))
  );
}

function isRequest(request: unknown): boolean {
  return (
    isFields(request) &&
    Array.isArray(request.headers) &&
    request.headers.length <= MAX_HEAD_FIELDS &&
    request.headers.every((name) => isHeaderName(name))
  );
}

function isBatch(batch: unknown): boolean {
  return (
    isFields(batch) &&
    isWithin(batch.maxSize, 1, MAX_BATCH_SIZE) &&
    isWithin(batch.maxWaitMs, 0, MAX_BATCH_WAIT_MS) &&
    isWithin(batch.maxBytes, 1, MAX_BATCH_BYTES) &&
    (batch.keyPointer === undefined || typeof batch.keyPointer === "string") &&
    (batch.onError === "split" || batch.onError === "fail")
  );
}

function isByKey(byKey: unknown): boolean {
  return (
    isFields(byKey) &&
    (byKey.concurrency === undefined || isWithin(byKey.concurrency, 1, MAX_CONCURRENCY_PER_KEY)) &&
    (byKey.rate === undefined || isRate(byKey.rate)) &&
    (byKey.fair === undefined || byKey.fair === "seconds")
  );
}

function isRate(rate: unknown): boolean {
  return (
    isFields(rate) &&
    isWithin(rate.count, 1, MAX_RATE_COUNT) &&
    isWithin(rate.periodMs, 1, MAX_RATE_PERIOD_MS)
  );
}

function isWithin(value: unknown, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

function areArguments(names: unknown, input: unknown): boolean {
  return Array.isArray(names) && names.every((name) => isArgument(name, input));
}

function isArgument(name: unknown, input: unknown): boolean {
  return (
    typeof name === "string" &&
    isFields(input) &&
    isFields(input.properties) &&
    Object.hasOwn(input.properties, name)
  );
}

/** Bytes are those of a file, and nothing else is. */
function isStream(stream: unknown, outputFile: unknown): boolean {
  return (
    isFields(stream) &&
    (outputFile === undefined
      ? stream.pieces === "json" || stream.pieces === "text"
      : stream.pieces === "bytes")
  );
}
