/** The run options of an endpoint, with their defaults and limits. */
import {
  type Duration,
  formatDuration,
  parseDuration,
  parseRate,
  type RateText,
} from "../protocol/duration.ts";
import { isHeaderName, MAX_HEAD_FIELDS } from "../protocol/heads.ts";
import { faultOfImage } from "../protocol/image.ts";
import {
  type ByKeyManifest,
  type EndpointManifest,
  faultOfGpus,
  MAX_ABORT_GRACE_MS,
  MAX_CONCURRENCY_PER_KEY,
  MAX_GPU_MEMORY_MIB,
  MAX_JSON_OPTION_BYTES,
  MAX_MODEL_SOURCE_CHARACTERS,
  MAX_PROCESSES,
  MAX_RATE_COUNT,
  MAX_READY_TIMEOUT_MS,
  MAX_SERVICE_MODELS,
  MIN_READY_TIMEOUT_MS,
  MODEL_NAME,
  MODEL_SOURCE,
  type RateManifest,
  type RequestManifest,
  type ServiceManifest,
} from "../protocol/manifest.ts";
import { faultOfPlacement, type PlacementManifest } from "../protocol/placement.ts";
import { faultOfSystemPackages } from "../protocol/system-packages.ts";
import { ServiceDefinitionError } from "./errors.ts";
import { refuseUnknown } from "./unknown.ts";

/** An `api` answers in the call; the calls of a `task` are queued. */
export type EndpointKind = "api" | "task";

/** Which machines run an endpoint, or the endpoints of a service. */
export interface PlacementOptions {
  /**
   * Labels that a machine must have, such as `{ gpu: "*" }`, where `*` is any value; at most 32.
   * Those of an endpoint come on top of those of its service, and of those of the deployment;
   * for the same label the deployment goes first, and then the endpoint. Default: none.
   */
  readonly requires?: { readonly [label: string]: string };
  /**
   * Who brings the workers: the nodes of the platform (`local`), machines that join (`remote`),
   * or both (`any`). A deployment with another place than `any` goes first. Default: that of the
   * service; for a service `any`.
   */
  readonly place?: "local" | "remote" | "any";
}

/**
 * The options of both kinds of endpoint. An `api` accepts the options of a `task`
 * and ignores them, so that turning one into the other changes only the word.
 */
export interface RunOptions extends PlacementOptions {
  /** What the endpoint does, for its documentation. At most 10,000 characters. Default: none. */
  readonly description?: string;
  /**
   * The time limit of one execution, from 1 ms to 24 h; a number means milliseconds.
   * Default: 60 s for an `api`, because callers and proxies rarely wait longer;
   * 10 min for a `task`.
   */
  readonly timeout?: Duration;
  /**
   * How long a function may go on that does not hear its abort, from 1 ms to 24 h: when its caller
   * has left, before it counts as that; and from then on, while others run in its worker, which
   * takes no more calls meanwhile. After that the worker is ended. Default: 5 min.
   */
  readonly abortGrace?: Duration;
  /**
   * True if a call may run more than once, with the same effect as once: a call of an `api` whose
   * worker ends before anything of its answer was sent then runs again in another worker, within
   * its `timeout`. A `task` does so in any case. Default: false, because only the author knows;
   * the caller is answered 503 and may repeat the call.
   */
  readonly idempotent?: boolean;
  /**
   * The number of calls that one worker runs at a time, from 1 to 1,000. Default: 100
   * for an `api`, which mostly waits for I/O; 1 for a `task`, which mostly computes,
   * so that tasks do not block each other or share memory, and with `batch`, where
   * it counts batches. To compute faster, add workers, not concurrency.
   */
  readonly concurrency?: number;
  /** The time a task is kept after it has ended, from 1 s to 365 d. Default: 24 h. */
  readonly retention?: Duration;
  /**
   * Retries of a task that threw or timed out: at most `max` (0 to 100), with
   * exponential backoff, which begins at `backoff` (0 to 1 h, default 1 s) and
   * doubles with each retry, up to 1 h. Failures with the codes `invalid_argument`,
   * `unimplemented` and `permission_denied` are not retried. Default: no retries,
   * because only the author knows whether a function may run twice.
   */
  readonly retries?: { readonly max: number; readonly backoff?: Duration };
  /** The number of waiting tasks beyond which submits are refused, 1 to 10,000,000. Default: 10,000. */
  readonly queueLimit?: number;
  /**
   * The largest JSON body of a call, from 1 KiB to 256 MiB; a number means bytes. The operator of a
   * platform may allow less. Files in a form are not counted. Default: 4 MiB, because it is held in
   * memory, and stored with a task.
   */
  readonly maxJson?: Size;
  /** Tasks of higher priority run first, from -1,000 to 1,000. A caller may override it. Default: 0. */
  readonly priority?: number;
  /**
   * The number of tasks of one key that run at a time, on all nodes together, from 1 to 10,000. The
   * key of a task is what its submit says (the header `Tessera-Key`, or `key`), or the token of the
   * caller. Its tasks are started by their keys in turn then, as with `fair`. Of an `api`: the calls of
   * one key under way on a node; more are refused. Default: any number.
   */
  readonly concurrencyPerKey?: number;
  /**
   * The starts of one key, on all nodes together, such as `"10/min"`: no stretch of a minute has more.
   * A number from 1 to 10,000, and `s`, `min`, `h` or `d`. An attempt that is made again counts as well.
   * Its tasks are started by their keys in turn then, as with `fair`. Of an `api`: the calls of one key
   * on a node, with as many at once; more are refused. Default: any number.
   */
  readonly ratePerKey?: RateText;
  /**
   * True if tasks are started by their keys in turn: one of each key that has some waiting, and then
   * the next one of each, so that a caller with many keeps no other waiting for longer than until a
   * slot is free. `priority` then counts among the tasks of a key. With `"seconds"` the next task is of
   * the key whose tasks have run for the least time, so that a key with long ones starts fewer.
   * Default: false.
   */
  readonly fair?: boolean | "seconds";
  /**
   * The headers of requests that the function reads in `ctx.request`, such as `["x-tenant"]`; at
   * most 100. `["*"]` is all, `[]` none: then it has method, URL and query alone. With a task they
   * are stored, so `*` leaves out `authorization` and `cookie` there. Default: `ctx.request` is
   * not there, and nothing of a request reaches the worker.
   */
  readonly headers?: readonly string[];
}

export type ResolvedOptions = PlacementManifest &
  Pick<
    EndpointManifest,
    | "description"
    | "request"
    | "timeoutMs"
    | "abortGraceMs"
    | "idempotent"
    | "concurrency"
    | "retentionMs"
    | "retries"
    | "queueLimit"
    | "priority"
    | "maxJsonBytes"
    | "byKey"
  >;

/** A size: a number of bytes, or a text with a unit such as `"512KiB"` or `"64MiB"`. */
export type Size = number | `${number}${"KiB" | "MiB"}`;

const SECOND_MS = 1000;
const HOUR_MS = 3600 * SECOND_MS;
const DAY_MS = 24 * HOUR_MS;

/** How long a call of an api may take by default. */
const DEFAULT_API_TIMEOUT_MS = 60 * SECOND_MS;
/** Calls of an api that a worker runs at a time by default. */
const DEFAULT_API_CONCURRENCY = 100;
/** How long an attempt of a task may take by default. */
const DEFAULT_TASK_TIMEOUT_MS = 600 * SECOND_MS;
/** Tasks of an endpoint that a worker runs at a time by default. */
const DEFAULT_TASK_CONCURRENCY = 1;

const DEFAULTS = {
  api: { timeout: DEFAULT_API_TIMEOUT_MS, concurrency: DEFAULT_API_CONCURRENCY },
  task: { timeout: DEFAULT_TASK_TIMEOUT_MS, concurrency: DEFAULT_TASK_CONCURRENCY },
} as const;

/** Description of a service or endpoint. */
const MAX_DESCRIPTION_CHARACTERS = 10_000;

/** Fills in defaults and checks limits. Throws a `ServiceDefinitionError` that names the option. */
export function resolveOptions(
  kind: EndpointKind,
  options: RunOptions & { readonly batch?: unknown },
  place: string,
): ResolvedOptions {
  // What comes while a batch runs gathers into the next one; free slots would scatter it.
  const defaults = { ...DEFAULTS[kind], ...(options.batch !== undefined && { concurrency: 1 }) };
  return {
    ...checkDescription(options.description, place),
    ...checkPlacement(options, place),
    ...checkHeaders(options.headers, place),
    timeoutMs: milliseconds(options.timeout ?? defaults.timeout, {
      place,
      name: "timeout",
      min: 1,
      max: DAY_MS,
    }),
    ...(options.abortGrace !== undefined && {
      abortGraceMs: milliseconds(options.abortGrace, {
        place,
        name: "abortGrace",
        min: 1,
        max: MAX_ABORT_GRACE_MS,
      }),
    }),
    ...checkIdempotent(kind, options.idempotent, place),
    concurrency: integer(options.concurrency ?? defaults.concurrency, {
      place,
      name: "concurrency",
      min: 1,
      max: 1000,
    }),
    ...resolveQueueOptions(options, place),
    ...resolveByKey(kind, options, place),
    ...(options.maxJson !== undefined && {
      maxJsonBytes: bytesOf(options.maxJson, {
        place,
        name: "maxJson",
        max: MAX_JSON_OPTION_BYTES,
      }),
    }),
  };
}

/** How callers share the endpoint, as a property to spread; `{}` where they do not. */
function resolveByKey(
  kind: EndpointKind,
  { fair = false, ...limits }: RunOptions,
  place: string,
): Pick<ResolvedOptions, "byKey"> {
  if (typeof fair !== "boolean" && fair !== "seconds") {
    throw new ServiceDefinitionError(place, 'fair must be true, false or "seconds"');
  }
  const isFair = fair !== false && kind === "task";
  const { byKey = {} } = resolveKeyLimits(limits, place);
  const all = { ...byKey, ...(isFair && fair === "seconds" && { fair }) };
  return Object.keys(all).length === 0 && !isFair ? {} : { byKey: all };
}

/** What one key may have, of an endpoint or a mounted server, as a property to spread. */
export function resolveKeyLimits(
  { concurrencyPerKey, ratePerKey }: Pick<RunOptions, "concurrencyPerKey" | "ratePerKey">,
  place: string,
): { readonly byKey?: Pick<ByKeyManifest, "concurrency" | "rate"> } {
  const bounds = { place, name: "concurrencyPerKey", min: 1, max: MAX_CONCURRENCY_PER_KEY };
  const byKey = {
    ...(concurrencyPerKey !== undefined && { concurrency: integer(concurrencyPerKey, bounds) }),
    ...(ratePerKey !== undefined && { rate: rateOf(ratePerKey, place) }),
  };
  return Object.keys(byKey).length === 0 ? {} : { byKey };
}

function rateOf(rate: unknown, place: string): RateManifest {
  const parsed = parseRate(rate, MAX_RATE_COUNT);
  if (parsed === undefined) {
    throw new ServiceDefinitionError(
      place,
      `ratePerKey must be a number from 1 to ${MAX_RATE_COUNT} and a time, s, min, h or d, such as "10/min", not ${JSON.stringify(rate)}`,
    );
  }
  return parsed;
}

/** The options of what is queued, which functions and requests to mounted servers have. */
export function resolveQueueOptions(
  options: Pick<RunOptions, "retention" | "retries" | "queueLimit" | "priority">,
  place: string,
): Pick<ResolvedOptions, "retentionMs" | "retries" | "queueLimit" | "priority"> {
  const { retries = { max: 0 } } = options;
  if (typeof retries !== "object" || retries === null) {
    throw new ServiceDefinitionError(place, "retries must be an object: { max, backoff }");
  }
  refuseUnknown(retries, { max: true, backoff: true }, place, "retries.");
  return {
    retentionMs: milliseconds(options.retention ?? DAY_MS, {
      place,
      name: "retention",
      min: SECOND_MS,
      max: 365 * DAY_MS,
    }),
    retries: {
      max: integer(retries.max, { place, name: "retries.max", min: 0, max: 100 }),
      backoffMs: milliseconds(retries.backoff ?? SECOND_MS, {
        place,
        name: "retries.backoff",
        min: 0,
        max: HOUR_MS,
      }),
    },
    queueLimit: integer(options.queueLimit ?? 10_000, {
      place,
      name: "queueLimit",
      min: 1,
      max: 10_000_000,
    }),
    priority: integer(options.priority ?? 0, { place, name: "priority", min: -1000, max: 1000 }),
  };
}

/** The timeout of an attempt of a task. */
export function resolveTaskTimeout(timeout: Duration | undefined, place: string): number {
  const bounds = { place, name: "timeout", min: 1, max: DAY_MS };
  return milliseconds(timeout ?? DEFAULT_TASK_TIMEOUT_MS, bounds);
}

/** The description as a property to spread; `{}` without one. */
export function checkDescription(
  description: unknown,
  place: string,
): { readonly description?: string } {
  if (description === undefined) {
    return {};
  }
  if (typeof description !== "string" || description.length > MAX_DESCRIPTION_CHARACTERS) {
    throw new ServiceDefinitionError(
      place,
      `description must be a string of at most ${MAX_DESCRIPTION_CHARACTERS} characters`,
    );
  }
  return { description };
}

/** The named headers as a property to spread; `{}` when there is no such option. */
function checkHeaders(headers: unknown, place: string): { readonly request?: RequestManifest } {
  return headers === undefined ? {} : { request: { headers: checkHeaderNames(headers, place) } };
}

/** A list of names of headers, in lower case. */
export function checkHeaderNames(headers: unknown, place: string): readonly string[] {
  const names = Array.isArray(headers) ? headers.map((name) => String(name).toLowerCase()) : [];
  if (!Array.isArray(headers) || names.length > MAX_HEAD_FIELDS || !names.every(isHeaderName)) {
    throw new ServiceDefinitionError(
      place,
      `headers must be a list of at most ${MAX_HEAD_FIELDS} names of headers, such as ["x-tenant"]`,
    );
  }
  return names;
}

/** As a property to spread; a task runs again in any case. */
function checkIdempotent(
  kind: EndpointKind,
  idempotent: unknown,
  place: string,
): { readonly idempotent?: true } {
  if (idempotent !== undefined && typeof idempotent !== "boolean") {
    throw new ServiceDefinitionError(place, "idempotent must be true or false");
  }
  return idempotent && kind === "api" ? { idempotent } : {};
}

/** The placement as properties to spread; `{}` where nothing is said. */
export function checkPlacement(
  { requires, place }: PlacementOptions,
  at: string,
): PlacementManifest {
  const fault = faultOfPlacement({ requires, place });
  if (fault !== undefined) {
    throw new ServiceDefinitionError(at, fault);
  }
  return {
    ...(requires !== undefined &&
      Object.keys(requires).length > 0 && { requires: { ...requires } }),
    ...(place !== undefined && { place }),
  };
}

/** The option `readyTimeout` of a service as a property to spread; `{}` without one. */
export function checkReadyTimeout(
  timeout: Duration | undefined,
  place: string,
): Pick<ServiceManifest, "readyTimeoutMs"> {
  return timeout === undefined
    ? {}
    : {
        readyTimeoutMs: milliseconds(timeout, {
          place,
          name: "readyTimeout",
          min: MIN_READY_TIMEOUT_MS,
          max: MAX_READY_TIMEOUT_MS,
        }),
      };
}

/** The option `processes` of a service as a property to spread; `{}` without one. */
export function checkProcesses(
  processes: number | undefined,
  place: string,
): Pick<ServiceManifest, "processes"> {
  const bounds = { place, name: "processes", min: 0, max: MAX_PROCESSES };
  return processes === undefined ? {} : { processes: integer(processes, bounds) };
}

/** The options `gpus` and `gpuMemory` of a service as properties to spread; `{}` without them. */
export function checkGpus(
  { gpus, gpuMemory }: { readonly gpus?: number; readonly gpuMemory?: string },
  place: string,
): Pick<ServiceManifest, "gpus" | "gpuMemoryMib"> {
  const fault = gpus === undefined ? undefined : faultOfGpus(gpus);
  if (fault !== undefined) {
    throw new ServiceDefinitionError(place, `gpus ${fault}, not ${show(gpus)}`);
  }
  return {
    ...(gpus !== undefined && { gpus }),
    ...(gpuMemory !== undefined && { gpuMemoryMib: gpuMemoryMib(gpuMemory, place) }),
  };
}

function gpuMemoryMib(size: unknown, place: string): number {
  const [, count, unit] = /^(\d{1,7})(Mi|Gi)B?$/.exec(String(size)) ?? [];
  const mib = Number(count) * (unit === "Gi" ? 1024 : 1);
  if (mib >= 1 && mib <= MAX_GPU_MEMORY_MIB) {
    return mib;
  }
  throw new ServiceDefinitionError(
    place,
    `gpuMemory must be a size from 1MiB to 1024GiB, such as "20GiB", not ${show(size)}`,
  );
}

/** The option `packages` of a service as a property to spread; `{}` without one. */
export function checkPackages(
  packages: readonly string[] | undefined,
  place: string,
): Pick<ServiceManifest, "packages"> {
  const fault = packages === undefined ? undefined : faultOfSystemPackages(packages);
  if (fault !== undefined) {
    throw new ServiceDefinitionError(place, fault);
  }
  return packages === undefined || packages.length === 0 ? {} : { packages: [...packages] };
}

/** The option `image` of a service as a property to spread; `{}` without one. */
export function checkImage(
  image: string | undefined,
  place: string,
): Pick<ServiceManifest, "image"> {
  const fault = image === undefined ? undefined : faultOfImage(image);
  if (fault !== undefined) {
    throw new ServiceDefinitionError(place, fault);
  }
  return image === undefined ? {} : { image };
}

/** The option `models` of a service as a property to spread; `{}` without one. */
export function checkModels(
  models: { readonly [name: string]: string } | undefined,
  place: string,
): Pick<ServiceManifest, "models"> {
  if (models === undefined || Object.keys(models).length === 0) {
    return {};
  }
  const entries = Object.entries(models);
  const wrong = entries.find(
    ([name, source]) =>
      !MODEL_NAME.test(name) ||
      typeof source !== "string" ||
      source.length > MAX_MODEL_SOURCE_CHARACTERS ||
      !MODEL_SOURCE.test(source),
  );
  if (wrong !== undefined || entries.length > MAX_SERVICE_MODELS) {
    throw new ServiceDefinitionError(
      place,
      `models must be at most ${MAX_SERVICE_MODELS} names of letters, digits, - and _, each with a source ` +
        `such as "hf://Qwen/Qwen3-0.6B", "s3://weights/qwen", "https://…#sha256=…", "model://reader@3" or "bentoml://reader:latest"` +
        (wrong === undefined ? "" : `, not ${show(wrong[0])}: ${show(wrong[1])}`),
    );
  }
  return { models: { ...models } };
}

interface Bounds {
  readonly place: string;
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

function milliseconds(value: Duration, { place, name, min, max }: Bounds): number {
  const parsed = parseDuration(value);
  if (parsed === undefined || parsed < min || parsed > max) {
    throw new ServiceDefinitionError(
      place,
      `${name} must be milliseconds or a duration such as "30s" or "5m", ` +
        `from ${formatDuration(min)} to ${formatDuration(max)}, not ${show(value)}`,
    );
  }
  return parsed;
}

function integer(value: number, { place, name, min, max }: Bounds): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new ServiceDefinitionError(
      place,
      `${name} must be a whole number from ${min} to ${max}, not ${show(value)}`,
    );
  }
  return value;
}

const SIZE = /^(\d{1,9})(KiB|MiB)$/;

/** The bytes of a size from 1 KiB on. */
export function bytesOf(size: Size, { place, name, max }: Omit<Bounds, "min">): number {
  const [, amount, unit] = typeof size === "string" ? (SIZE.exec(size) ?? []) : [];
  const bytes = amount === undefined ? size : Number(amount) * (unit === "MiB" ? 1024 ** 2 : 1024);
  if (!Number.isInteger(bytes) || Number(bytes) < 1024 || Number(bytes) > max) {
    throw new ServiceDefinitionError(
      place,
      `${name} must be bytes or a size such as "512KiB" or "4MiB", from 1KiB to ${max / 1024 ** 2}MiB, not ${show(size)}`,
    );
  }
  return Number(bytes);
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
