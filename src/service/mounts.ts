/**
 * The mounted servers of a service: which one a path is for, and how their requests take slots and
 * become tasks. An endpoint stands for each of them, whose name is the path, which no endpoint of a
 * service can have.
 */
import {
  type EndpointManifest,
  type JsonSchema,
  MOUNT_QUEUE_HEADERS,
  type MountManifest,
  type ServiceManifest,
} from "../protocol/manifest.ts";

/**
 * The server that answers at a decoded path: of several, the one whose own path is longest. What
 * `..` leads to counts, as in other proxies: the server at `/ui` gets nothing at `/ui/../x`.
 */
export function mountAt({ mounts }: ServiceManifest, given: string): MountManifest | undefined {
  const path = withoutDots(given);
  let best: MountManifest | undefined;
  for (const mount of mounts ?? []) {
    if (isBelow(path, mount.path) && mount.path.length >= (best?.path.length ?? 0)) {
      best = mount;
    }
  }
  return best;
}

/** A path without its segments `.` and `..` (RFC 3986, section 5.2.4). */
function withoutDots(path: string): string {
  if (!path.includes("/.")) {
    return path;
  }
  const kept: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    if (segment === "..") {
      kept.pop();
    } else if (segment !== ".") {
      kept.push(segment);
    }
  }
  return `/${kept.join("/")}`;
}

/** Whether a path is that of a mounted server, or below it. */
export function isBelow(path: string, mounted: string): boolean {
  return mounted === "/" || path === mounted || path.startsWith(`${mounted}/`);
}

const made = new WeakMap<MountManifest, EndpointManifest>();

/** Stands for a mounted server where its requests take slots and are counted; the same each time. */
export function mountEndpoint(mount: MountManifest): EndpointManifest {
  return onceFor(made, mount, () => ({
    name: mount.path,
    kind: "api",
    input: {},
    files: {},
    output: {},
    timeoutMs: mount.timeoutMs,
    concurrency: mount.concurrency,
    retentionMs: 0,
    retries: { max: 0, backoffMs: 0 },
    queueLimit: 0,
    priority: 0,
    ...(mount.byKey && { byKey: mount.byKey }),
  }));
}

const tasks = new WeakMap<MountManifest, EndpointManifest>();

/** Methods of requests that may be tasks. */
const TASK_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** The argument of a request as a task that is its body. */
export const MOUNT_BODY = "body";

/** What a server is told by the platform, in its own requests and in those of tasks. */
const SAID_BY_PLATFORM =
  "host|expect|forwarded|x-forwarded-.*|x-real-ip|x-request-id|tessera-.*|:.*";

/** Headers of a request to a mounted server that the platform says itself; names in lower case, without underscores. */
export const SAID_TO_SERVERS = new RegExp(`^(?:${SAID_BY_PLATFORM})$`);

/** What a caller cannot say with a task: the above, what is of one connection or of a body's length, and the trace. */
const NOT_OF_TASKS = `${SAID_BY_PLATFORM}|connection|content-length|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|traceparent|tracestate`;

/** The arguments of a task for the server at a path: a request of that path, or of one below it. */
const taskInput = (mounted: string): JsonSchema => ({
  type: "object",
  required: ["method", "path"],
  additionalProperties: false,
  properties: {
    method: { type: "string", enum: TASK_METHODS, description: "The method of the request." },
    path: {
      type: "string",
      pattern:
        mounted === "/"
          ? `^/${IN_URL}*$`
          : `^${NO_DOTS}${literal(encodeURI(mounted))}(?:[/?]${IN_URL}*)?$`,
      maxLength: 8_192,
      description: "The path of the request, with its query, as in a URL.",
    },
    headers: {
      type: "object",
      maxProperties: 100,
      // CGI and WSGI take an underscore for a hyphen.
      propertyNames: { pattern: `^(?!(?:${NOT_OF_TASKS})$)[!#$%&'*+.^|~0-9a-z-]{1,256}$` },
      additionalProperties: {
        type: "string",
        pattern: "^[\\t\\x20-\\x7e\\x80-\\xff]*$",
        maxLength: 8_192,
      },
      description: "Its headers, by their names in lower case.",
    },
    [MOUNT_BODY]: { type: "string", format: "binary", description: "Its body." },
  },
});

/** No segment of the path leads elsewhere. */
const NO_DOTS = "(?![^?]*/(?:\\.|%2[Ee]){1,2}(?:[/?]|$))";

/** What a URL may have. */
const IN_URL = '[!-"$-~\\x80-\\xff]';

/** A text as an expression that matches it alone. */
function literal(text: string): string {
  return text.replaceAll(/[$()*+.]/g, "\\$&");
}

/**
 * A task endpoint that stands for a mounted server with a queue: its arguments are a request, its
 * result is the answer. It shares the slots of `mountEndpoint`, whose name it has.
 */
export function mountTask(mount: MountManifest): EndpointManifest | undefined {
  const { path, concurrency, queue } = mount;
  return (
    queue &&
    onceFor(tasks, mount, () => {
      const { headers, ...options } = queue;
      return {
        name: path,
        kind: "task",
        description: `Requests to the server at ${path}.`,
        input: taskInput(path),
        files: { [MOUNT_BODY]: { required: false, array: false } },
        output: {},
        outputFile: {},
        request: { headers: [...MOUNT_QUEUE_HEADERS, ...headers] },
        concurrency,
        ...options,
      };
    })
  );
}

function onceFor<Key extends object, Value>(
  known: WeakMap<Key, Value>,
  key: Key,
  make: () => Value,
): Value {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}

/** Whether a header can be kept of a request that becomes a task, by its name in lower case. */
export function isKeptForTask(name: string): boolean {
  return !name.includes("_") && !NOT_KEPT.test(name);
}

const NOT_KEPT = new RegExp(`^(?:${NOT_OF_TASKS})$`);

/** Whether the name of what takes slots is that of a mounted server. */
export function isMountName(name: string): boolean {
  return name.startsWith("/");
}

/** All that takes slots in workers: the endpoints, and what stands for mounted servers. */
export function takersOf({
  endpoints,
  mounts = [],
}: Pick<ServiceManifest, "endpoints" | "mounts">): readonly EndpointManifest[] {
  return mounts.length === 0
    ? endpoints
    : [...endpoints, ...mounts.map((mount) => mountTask(mount) ?? mountEndpoint(mount))];
}

/** The endpoints that are called by name: those of the service, and servers whose requests may be tasks. */
export function calledEndpoints({
  endpoints,
  mounts = [],
}: ServiceManifest): readonly EndpointManifest[] {
  return mounts.length === 0
    ? endpoints
    : [...endpoints, ...mounts.flatMap((mount) => mountTask(mount) ?? [])];
}

// The paths of endpoints: `/predict`, or the one that the service gave, such as `/v1/predict`, and
// then that alone. A task has `/v1/predict/submit` and the others below it.

/** The path at which an endpoint is called; that of a mounted server is its name. */
export function routeOf({ name, route }: Pick<EndpointManifest, "name" | "route">): string {
  return route ?? (isMountName(name) ? name : `/${name}`);
}

/** A path that is `below` that of an endpoint, as a URL has it. */
export function pathBelow(endpoint: Pick<EndpointManifest, "name" | "route">, below = ""): string {
  const path = encodeURI(routeOf(endpoint)).replace(/[?#]/g, encodeURIComponent);
  return below === "" ? path : `${path === "/" ? "" : path}/${below}`;
}

/** The endpoints of a revision by their paths. */
type Routes = ReadonlyMap<string, string>;

/** A cache per revision, because every request asks. */
const known = new WeakMap<ServiceManifest, Routes>();

/**
 * The name of the endpoint at a path, which begins with a slash and is decoded; undefined where
 * no endpoint has it. Where two endpoints have one path, the first has it.
 */
export function endpointAt(manifest: ServiceManifest, path: string): string | undefined {
  let routes = known.get(manifest);
  if (routes === undefined) {
    const { endpoints } = manifest;
    routes = new Map(endpoints.toReversed().map((each) => [routeOf(each), each.name] as const));
    known.set(manifest, routes);
  }
  return routes.get(path);
}
