/**
 * The manifest of a service: its endpoints, schemas and metrics. The worker that
 * loaded the service computes it; the node knows nothing else of user code.
 */

import type { PlacementManifest } from "./placement.ts";

/** The largest JSON body that an endpoint can ask for: a string of JavaScript holds not much more. */
export const MAX_JSON_OPTION_BYTES = 256 * 1024 ** 2;

/** The longest `abortGrace` of an endpoint. */
export const MAX_ABORT_GRACE_MS = 86_400_000;

/** A JSON Schema (2020-12) as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The retries of a failed task. */
interface RetryPolicy {
  /** The number of attempts after the first; 0 for no retries. */
  readonly max: number;
  /** The pause before the first retry; it doubles for each further one. */
  readonly backoffMs: number;
}

/** An argument or result that is a file. */
export interface FileSpec {
  /** The accepted media type or range, such as `image/png` or `image/*`. Default: any. */
  readonly contentType?: string;
  /** Size limit of one file in bytes. Default: the limit of the body. */
  readonly maxBytes?: number;
}

/** A file argument: one file, or a list of them. */
export interface FileArgument extends FileSpec {
  readonly required: boolean;
  /** True when the argument is a list of files. */
  readonly array: boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** How an endpoint gives its result in pieces. */
export interface StreamManifest {
  /**
   * The form of a piece, which is that of the whole too: JSON values (a JSON array of
   * them), texts (joined), or bytes (joined into one file).
   */
  readonly pieces: "json" | "text" | "bytes";
}

/** How calls of an endpoint are put together, for a function that takes several at once. */
export interface BatchManifest {
  /** The most calls of a batch. */
  readonly maxSize: number;
  /** The longest time that the oldest call waits for others while a worker is free. */
  readonly maxWaitMs: number;
  /** Limit of the arguments of a batch together; a larger call goes alone. */
  readonly maxBytes: number;
  /** JSON Pointer into the arguments: only calls with the same value there go together. */
  readonly keyPointer?: string;
  /** When the function fails for the whole: `split` runs each call once alone, `fail` fails all. */
  readonly onError: "split" | "fail";
}

/** What a function is shown of the request that calls it, besides its method and URL. */
export interface RequestManifest {
  /** The names of headers, in lower case; `*` stands for all. */
  readonly headers: readonly string[];
}

export interface EndpointManifest extends PlacementManifest {
  readonly name: string;
  readonly kind: "api" | "task";
  readonly description?: string;
  /**
   * JSON Schema of the arguments, always of `type: "object"` with `properties`. A
   * file argument is `{type: "string", format: "binary", contentMediaType?}`, or an
   * array of such; `files` lists them.
   */
  readonly input: JsonSchema;
  /**
   * JSON Schema of the arguments by which the node checks them before they are stored. It refuses
   * only what the worker would refuse as well. Default: `input`.
   */
  readonly check?: JsonSchema;
  /**
   * How the worker reads JSON: as Python does, with `NaN`, `Infinity` and integers of any size.
   * Default: as JavaScript does, whose numbers are doubles.
   */
  readonly json?: "python";
  /**
   * Arguments that the worker takes as arrays of numbers, by name: a large one that came as JSON
   * is sent as doubles (`src/service/input/number-array-file.ts`). They may be anything else as well (apis only).
   */
  readonly arrays?: readonly string[];
  /** Size limit of a JSON body of a call. Default: the node's, 4 MiB; the node has an upper limit. */
  readonly maxJsonBytes?: number;
  /** The arguments that are files, by name. */
  readonly files: { readonly [argument: string]: FileArgument };
  /** JSON Schema of the result, or of one piece of it; `{}` when the endpoint declares none. */
  readonly output: JsonSchema;
  /** Present when the result is a file, or its pieces are bytes of one. */
  readonly outputFile?: FileSpec;
  /** Present when a result that is a JSON string is sent as JSON, with its quotes, not as text. */
  readonly quoted?: true;
  /** Present when the result is streamed. */
  readonly stream?: StreamManifest;
  /** Present when the function is shown its request. Default: nothing of it reaches the worker. */
  readonly request?: RequestManifest;
  /** Present when the function takes several calls at once; each still has its own end. */
  readonly batch?: BatchManifest;
  /**
   * The one argument, when a body over HTTP may also be its value: JSON, or the bare text or
   * file. Default: a body has the arguments by name.
   */
  readonly rootArgument?: string;
  /** The path of the endpoint, decoded, such as `/v1/predict`. Default: a slash and its name. */
  readonly route?: string;
  /** The time after which an execution is aborted. */
  readonly timeoutMs: number;
  /**
   * How long an execution may go on after an abort that it does not hear, beside others or when
   * its caller has left. Default: 5 min.
   */
  readonly abortGraceMs?: number;
  /**
   * Present when a call may run more than once (apis only): it runs again where its worker ends
   * before anything of its answer was sent.
   */
  readonly idempotent?: true;
  /** The number of calls of this endpoint that one worker runs at a time. */
  readonly concurrency: number;
  /** The time a task is kept after it has ended (tasks only). */
  readonly retentionMs: number;
  readonly retries: RetryPolicy;
  /** The number of waiting tasks of this endpoint beyond which submits are refused. */
  readonly queueLimit: number;
  /** Higher runs first. */
  readonly priority: number;
  /**
   * Present when its tasks are started by their keys in turn, or calls (of apis) are bounded by their
   * keys on each node. Default: in the order of the queue, and as many as come.
   */
  readonly byKey?: ByKeyManifest;
}

/** How callers share an endpoint by their keys. */
export interface ByKeyManifest {
  /** The tasks, or calls, of one key that run at a time. Default: any number. */
  readonly concurrency?: number | undefined;
  /** The starts of one key. Default: any number. */
  readonly rate?: RateManifest | undefined;
  /** Keys take turns by the seconds that their tasks run. Default: by one task each. */
  readonly fair?: "seconds" | undefined;
}

/** How many there may be in any stretch of time of a length. */
export interface RateManifest {
  readonly count: number;
  readonly periodMs: number;
}

/** The most tasks of one key that an endpoint may ask to run at a time. */
export const MAX_CONCURRENCY_PER_KEY = 10_000;
/** The largest count of a rate: the starts of a key that are kept at most. */
export const MAX_RATE_COUNT = 10_000;
/** The longest period of a rate: the time for which the starts of a key are kept. */
export const MAX_RATE_PERIOD_MS = 86_400_000;

/**
 * A mounted server: an application of the service (ASGI) that answers all requests at a path and
 * below it that are for no endpoint.
 */
export interface MountManifest {
  /** Where it is: `/`, or a path without a slash at its end, such as `/ui`. */
  readonly path: string;
  /** How long the server may take until its answer to a request begins. */
  readonly timeoutMs: number;
  /** Requests and WebSockets that one worker takes at a time. */
  readonly concurrency: number;
  /** Present when requests and WebSockets are bounded by their keys on each node. */
  readonly byKey?: Pick<ByKeyManifest, "concurrency" | "rate">;
  /** Present when requests may be tasks. */
  readonly queue?: MountQueue;
  /** The path below its own at which it exposes metrics in the format of Prometheus. Default: none. */
  readonly metrics?: string;
  /**
   * Where it has its OpenAPI document, below its own path; empty: nowhere. Default:
   * `DEFAULT_OPENAPI_PATH`.
   */
  readonly openapi?: string;
}

/** Where FastAPI and many others have their OpenAPI documents. */
export const DEFAULT_OPENAPI_PATH = "/openapi.json";

/** How requests to a mounted server run as tasks; they share its slots with all others. */
export interface MountQueue
  extends Pick<EndpointManifest, "retentionMs" | "retries" | "queueLimit" | "priority"> {
  /** How long an attempt may take, to the end of the answer. */
  readonly timeoutMs: number;
  /**
   * The names of headers that are kept of a request besides `MOUNT_QUEUE_HEADERS`, in lower case;
   * `*` stands for all.
   */
  readonly headers: readonly string[];
}

/** Characters of the path of a mounted server whose requests may be tasks: their endpoint has its name. */
export const MAX_MOUNT_QUEUE_PATH_CHARACTERS = 63;

/** Headers that are kept of each request that becomes a task. */
export const MOUNT_QUEUE_HEADERS: readonly string[] = [
  "accept",
  "content-encoding",
  "content-type",
];

/** A custom metric of the service. */
export interface MetricManifest {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Names, in the order of the values in a `MetricChange`. */
  readonly labels: readonly string[];
  /** Of a histogram: the upper bounds in rising order, without +Inf. */
  readonly buckets?: readonly number[];
  /** Of a gauge: how the values of several workers are combined into one. */
  readonly aggregator?: "sum" | "min" | "max" | "average";
}

/**
 * Which pages of other sites may call the service from a browser
 * (https://fetch.spec.whatwg.org/#http-cors-protocol).
 */
export interface CorsManifest {
  /** Such as `https://app.example`; `*` is any. */
  readonly origins: readonly string[];
  /** A regular expression for whole origins, besides. */
  readonly originPattern?: string;
  /** Whether pages may send what the browser keeps for the service. Default: no. */
  readonly credentials?: boolean;
  /** Default: those that the paths take. */
  readonly methods?: readonly string[];
  /** Headers that pages may send, besides those of the node; `*` is any. */
  readonly headers?: readonly string[];
  /** Headers of answers that pages may read, besides those of the node. */
  readonly exposedHeaders?: readonly string[];
  readonly maxAgeSeconds?: number;
}

export interface ServiceManifest extends PlacementManifest {
  readonly name: string;
  readonly description?: string;
  readonly endpoints: readonly EndpointManifest[];
  /** Default: none. */
  readonly mounts?: readonly MountManifest[];
  /** What clients of other platforms expect. Default: none. */
  readonly compat?: {
    /** `/schema.json` as BentoML writes it, for BentoML's own clients. */
    readonly bentoml?: JsonSchema;
  };
  /** Default: those only that the operator names. */
  readonly cors?: CorsManifest;
  /** Undefined when there are none. */
  readonly metrics?: readonly MetricManifest[];
  /**
   * How many processes the service asks for, from 1 to `MAX_SERVICE_WORKERS`, where nobody else
   * says. Default: it asks for none, and has those of the node.
   */
  readonly workers?: number;
  /** How long a worker may take to load it. Default: as the operator says. */
  readonly readyTimeoutMs?: number;
  /** Processes that a worker may start besides its own, at most `MAX_PROCESSES`. Default: none. */
  readonly processes?: number;
  /**
   * GPUs of each worker, at most `MAX_SERVICE_GPUS`, which are its own without `gpuMemoryMib`; below
   * 1, that part of one. Default: none.
   */
  readonly gpus?: number;
  /** Memory that each worker has of a GPU, or of each of its `gpus`. Default: the whole. */
  readonly gpuMemoryMib?: number;
  /** System packages that it needs, by the names of Debian. Default: none. */
  readonly packages?: readonly string[];
  /** The container image that its workers have as their root. Default: none. */
  readonly image?: string;
  /**
   * Where its models are, by the names that it has for them: `hf://OWNER/NAME`, `s3://BUCKET/PREFIX`,
   * `https://HOST/PATH#sha256=DIGEST`, `model://NAME@VERSION` of the platform, or
   * `bentoml://NAME:VERSION` of the author's store of BentoML. Default: none.
   */
  readonly models?: { readonly [name: string]: string };
}

/** Path of an endpoint or of a mounted server. */
const MAX_ROUTE_CHARACTERS = 255;
/**
 * The root, or what begins with one slash and ends with none, of characters that can be seen, and
 * spaces. It is decoded: `%` is one of its characters, which URLs have as `%25`.
 */
const ROUTE =
  /^\/(?:[^\p{C}\p{Zl}\p{Zp}/?#{}\\](?:[^\p{C}\p{Zl}\p{Zp}?#{}\\]*[^\p{C}\p{Zl}\p{Zp}/?#{}\\])?)?$/u;

/** Whether a value can be the path of an endpoint or of a mounted server. */
export function isRoute(route: unknown): boolean {
  return typeof route === "string" && route.length <= MAX_ROUTE_CHARACTERS && ROUTE.test(route);
}

/** A path as it stands in a request, with its query. */
const PAGE_PATH = /^\/[!-"$-~]*$/;

/** Whether a value can be the path at which a mounted server exposes metrics. */
export function isPagePath(path: unknown): path is string {
  return typeof path === "string" && path.length <= MAX_ROUTE_CHARACTERS && PAGE_PATH.test(path);
}

/** Mounted servers that a service may have. */
export const MAX_MOUNTS = 16;
/** Requests and WebSockets of a mounted server that one worker may take at a time. */
export const MAX_MOUNT_CONCURRENCY = 10_000;
/** How long a mounted server may be given until an answer begins. */
export const MAX_MOUNT_TIMEOUT_MS = 24 * 3_600_000;

/** Models that a service may have. */
export const MAX_SERVICE_MODELS = 32;
/** Characters of the source of a model. */
export const MAX_MODEL_SOURCE_CHARACTERS = 2_048;
/** What a service may call a model: the name of a folder. */
export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
/** Where a model may be. */
export const MODEL_SOURCE = /^(?:hf|s3|https|model|bentoml):\/\/[!-~]+$/;

/** The least time that a worker may be given to load its service. */
export const MIN_READY_TIMEOUT_MS = 1_000;
/** The longest time that a worker may be given to load its service. */
export const MAX_READY_TIMEOUT_MS = 24 * 3_600_000;

/** GPUs of one worker: no machine has more. */
const MAX_SERVICE_GPUS = 16;
/** Memory of a GPU that a worker may have, in MiB: a tebibyte. */
export const MAX_GPU_MEMORY_MIB = 1_048_576;

/** What is wrong with a number of GPUs, as what follows its name; undefined: nothing. */
export function faultOfGpus(gpus: unknown): string | undefined {
  const isRight =
    typeof gpus === "number" &&
    gpus >= 0 &&
    gpus <= MAX_SERVICE_GPUS &&
    (Number.isInteger(gpus) || (gpus < 1 && Number(gpus.toFixed(2)) === gpus));
  return isRight
    ? undefined
    : `must be a whole number from 0 to ${MAX_SERVICE_GPUS}, or a part of one GPU in hundredths, such as 0.5`;
}

/** Processes that a worker may be allowed to start: more than any machine has processors for. */
export const MAX_PROCESSES = 1_000;

/** Processes that a service may ask for. */
export const MAX_SERVICE_WORKERS = 256;
