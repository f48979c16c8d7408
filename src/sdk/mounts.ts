/** Mounted servers of a service: applications and programs that answer what no endpoint does. */
import type { Server } from "node:http";
import { faultOfProgram, type Program } from "../protocol/command.ts";
import {
  type Duration,
  formatDuration,
  parseDuration,
  type RateText,
} from "../protocol/duration.ts";
import {
  isPagePath,
  isRoute,
  MAX_MOUNT_CONCURRENCY,
  MAX_MOUNT_QUEUE_PATH_CHARACTERS,
  MAX_MOUNT_TIMEOUT_MS,
  MAX_MOUNTS,
  type MountManifest,
  type MountQueue,
} from "../protocol/manifest.ts";
import { ServiceDefinitionError } from "./errors.ts";
import {
  checkHeaderNames,
  type RunOptions,
  resolveKeyLimits,
  resolveQueueOptions,
  resolveTaskTimeout,
} from "./options.ts";
import { checkSocket, type ServedSocket, type SocketMount, socketOn } from "./sockets.ts";
import { refuseUnknown } from "./unknown.ts";

/** A handler of the Fetch API (https://fetch.spec.whatwg.org). */
export type FetchHandler = (request: Request) => Response | Promise<Response>;

/**
 * What can be mounted: a handler of the Fetch API, an application that has one as `fetch` (Hono,
 * Elysia, itty), or a server of `node:http` that does not listen, such as that of Express or
 * Fastify, with its listeners for `upgrade`.
 */
export type Mountable = FetchHandler | { readonly fetch: FetchHandler } | Server;

/** An application, the program that is started in each worker, or a function with a WebSocket. */
export type MountOptions = AppMountOptions | ProgramMountOptions | SocketMount;

export interface AppMountOptions extends CommonMountOptions {
  readonly app: Mountable;
}

/**
 * A program that listens on a port of its own, such as `{ command: ["vllm", "serve", "/models/qwen",
 * "--port", "{port}"], health: "/health" }`. Each worker starts it in the folder of the service, and
 * ends with it. Its service may start 64 processes unless `processes` says otherwise.
 */
export interface ProgramMountOptions extends CommonMountOptions, Program {}

interface CommonMountOptions {
  /** How long it may take until its answer begins, from 1 ms to 24 h. Default: 60 s. */
  readonly timeout?: Duration;
  /** Requests and WebSockets that one worker takes at a time, at most 10,000. Default: 100. */
  readonly concurrency?: number;
  /**
   * The requests and WebSockets of one key under way on a node, from 1 to 10,000; more are refused. The
   * key is the header `Tessera-Key`, or the caller's token. Default: any number.
   */
  readonly concurrencyPerKey?: number;
  /**
   * The requests and WebSockets of one key that begin on a node, such as `"100/min"`, with as many at
   * once; more are refused. A number from 1 to 10,000, and `s`, `min`, `h` or `d`. Default: any number.
   */
  readonly ratePerKey?: RateText;
  /** `true`, or options: any request to the server may be a task. Default: false. */
  readonly queue?: boolean | MountQueueOptions;
  /**
   * The path below its own at which it exposes metrics in the format of Prometheus, such as
   * `/metrics`. They are shown with those of the platform. Default: none are read.
   */
  readonly metrics?: string;
  /**
   * Where the server has its OpenAPI document, as a path below its own: its operations are part of
   * the deployment's `/docs.json`. `false`: it has none. Default: `/openapi.json`.
   */
  readonly openapi?: string | false;
}

/** How requests to a mounted server run as tasks. */
interface MountQueueOptions
  extends Pick<RunOptions, "timeout" | "retries" | "retention" | "queueLimit" | "priority"> {
  /**
   * The headers of a request that reach the server, besides `accept`, `content-type` and
   * `content-encoding`; `["*"]` is all but `authorization` and `cookie`. They are stored with
   * the task. Default: none.
   */
  readonly headers?: readonly string[];
}

/** A mounted server, with its checked options. */
export interface ServiceMount {
  readonly manifest: MountManifest;
  readonly serves:
    | { readonly app: Mountable }
    | { readonly program: Program }
    | { readonly socket: ServedSocket };
}

/** Processes that a worker may start whose service has a program, if nobody else says. */
export const DEFAULT_PROGRAM_PROCESSES = 64;

const COMMON = {
  timeout: true,
  concurrency: true,
  concurrencyPerKey: true,
  ratePerKey: true,
  queue: true,
  metrics: true,
  openapi: true,
} as const;
const APP_OPTIONS: Readonly<Record<keyof AppMountOptions, true>> = { app: true, ...COMMON };
const PROGRAM_OPTIONS: Readonly<Record<keyof ProgramMountOptions, true>> = {
  command: true,
  port: true,
  health: true,
  ...COMMON,
};
const QUEUE_OPTIONS: Readonly<Record<keyof MountQueueOptions, true>> = {
  ...{ timeout: true, retries: true, retention: true, queueLimit: true, priority: true },
  headers: true,
};
/** How long a mounted server may take until its answer begins, unless its author says otherwise. */
const DEFAULT_TIMEOUT_MS = 60_000;
/** Requests and WebSockets of a mounted server that one worker takes at a time, unless its author says otherwise. */
const DEFAULT_CONCURRENCY = 100;

/** The option `mounts` of a service. Throws a `ServiceDefinitionError` for a wrong one. */
export function checkMounts(mounts: unknown, place: string): readonly ServiceMount[] {
  if (mounts === undefined) {
    return [];
  }
  const given = typeof mounts === "object" && mounts !== null ? Object.entries(mounts) : undefined;
  if (given === undefined || given.length > MAX_MOUNTS) {
    const message = `mounts must be an object of at most ${MAX_MOUNTS} paths, each with { app }`;
    throw new ServiceDefinitionError(place, message);
  }
  return given.map(([path, options]) => checkMount(path, options, `${place}, mount ${path}`));
}

/**
 * A server at a path. Throws a `ServiceDefinitionError` for a wrong one. `method`: it is a function
 * with a WebSocket that is a method of this name.
 */
export function checkMount(
  path: string,
  options: unknown,
  place: string,
  method?: string,
): ServiceMount {
  if (!isRoute(path)) {
    const message = 'its path must be "/", or one such as "/ui" without a slash at its end';
    throw new ServiceDefinitionError(place, message);
  }
  if (typeof options !== "object" || options === null) {
    const message =
      "must be { app } or { command }, with timeout, concurrency, queue, metrics and openapi, or socket(function)";
    throw new ServiceDefinitionError(place, message);
  }
  const socket = socketOn(options);
  const serves =
    socket !== undefined
      ? { socket: checkSocket(socket, place, method) }
      : "command" in options
        ? { program: checkProgram(options, place) }
        : { app: checkApp(options, place) };
  const {
    timeout = DEFAULT_TIMEOUT_MS,
    concurrency = DEFAULT_CONCURRENCY,
    concurrencyPerKey,
    ratePerKey,
    queue,
    metrics,
    openapi,
  }: CommonMountOptions = socket === undefined ? options : { openapi: false, ...socket.options };
  const timeoutMs = parseDuration(timeout);
  if (timeoutMs === undefined || timeoutMs < 1 || timeoutMs > MAX_MOUNT_TIMEOUT_MS) {
    const most = formatDuration(MAX_MOUNT_TIMEOUT_MS);
    throw new ServiceDefinitionError(place, `timeout must be a duration from 1ms to ${most}`);
  }
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_MOUNT_CONCURRENCY) {
    const message = `concurrency must be a whole number from 1 to ${MAX_MOUNT_CONCURRENCY}`;
    throw new ServiceDefinitionError(place, message);
  }
  if (openapi !== undefined && openapi !== false && !isPagePath(openapi)) {
    const message = 'openapi must be a path below that of the server, such as "/doc", or false';
    throw new ServiceDefinitionError(place, message);
  }
  const queued = checkQueue(queue, path, place);
  if (metrics !== undefined && !isPagePath(metrics)) {
    const message = 'metrics must be a path such as "/metrics", in at most 255 characters of ASCII';
    throw new ServiceDefinitionError(place, message);
  }
  return {
    serves,
    manifest: {
      ...{ path, timeoutMs, concurrency },
      ...resolveKeyLimits(
        {
          ...(concurrencyPerKey !== undefined && { concurrencyPerKey }),
          ...(ratePerKey !== undefined && { ratePerKey }),
        },
        place,
      ),
      ...(queued && { queue: queued }),
      ...(metrics !== undefined && { metrics }),
      ...(openapi !== undefined && { openapi: openapi || "" }),
    },
  };
}

function checkQueue(queue: unknown, path: string, place: string): MountQueue | undefined {
  if (queue === undefined || queue === false) {
    return undefined;
  }
  if (queue !== true && (typeof queue !== "object" || queue === null)) {
    throw new ServiceDefinitionError(place, "queue must be true, or an object of options");
  }
  if (path.length > MAX_MOUNT_QUEUE_PATH_CHARACTERS) {
    const message = `with queue, its path must have at most ${MAX_MOUNT_QUEUE_PATH_CHARACTERS} characters`;
    throw new ServiceDefinitionError(place, message);
  }
  const options: MountQueueOptions = queue === true ? {} : queue;
  refuseUnknown(options, QUEUE_OPTIONS, place, "queue.");
  return {
    timeoutMs: resolveTaskTimeout(options.timeout, place),
    headers: checkHeaderNames(options.headers ?? [], place),
    ...resolveQueueOptions(options, place),
  };
}

function checkApp(options: object, place: string): Mountable {
  refuseUnknown(options, APP_OPTIONS, place);
  const { app } = options as { readonly app?: unknown };
  if (!isMountable(app)) {
    throw new ServiceDefinitionError(
      place,
      "app must be a function (request) => Response, an object with such a fetch, or a server of node:http",
    );
  }
  return app;
}

function checkProgram(options: object, place: string): Program {
  refuseUnknown(options, PROGRAM_OPTIONS, place);
  const { command, port, health } = options as ProgramMountOptions;
  const fault = faultOfProgram({ command, port, health });
  if (fault !== undefined) {
    throw new ServiceDefinitionError(place, `${fault.option} ${fault.message}`);
  }
  return {
    command: [...command],
    ...(port !== undefined && { port }),
    ...(health !== undefined && { health }),
  };
}

function isMountable(app: unknown): app is Mountable {
  return (
    typeof app === "function" ||
    (typeof app === "object" && app !== null && (isServer(app) || "fetch" in app))
  );
}

/** A server of `node:http`, whichever copy of its class made it. */
export function isServer(app: object): app is Server {
  return "requestTimeout" in app && "emit" in app;
}
