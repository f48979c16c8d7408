/**
 * Requests to mounted servers as tasks: which requests of the data plane those are, where the mount
 * has a queue, and what of them is stored.
 *
 *   POST /any/path/submit                  stores POST /any/path
 *   any method, Tessera-Queue: submit      stores the request as it is, also POST /any/path/submit
 *   POST /submit, Tessera-Queue: arguments stores the request that the body describes, as clients do
 *   /any/path/status?task_id=…             asks of a task, as do `get`, `cancel` and the others
 *
 * The parameters of a submit (`priority`, `delay` and the others) are in the query of the first
 * form, which is passed on without them, and behind the word in the header of the second. The verbs
 * of tasks are the platform's only where the query has the id of a task: all else is the server's.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import { MAX_HEAD_BYTES } from "../../protocol/heads.ts";
import type { MountManifest, ServiceManifest } from "../../protocol/manifest.ts";
import { isKeptForTask, MOUNT_BODY, mountAt, mountTask, pathBelow } from "../../service/mounts.ts";
import { isTaskId } from "../../tasks/id.ts";
import type { QueuedPlace, QueuedRequest, QueueWords } from "../dataplane/plugin.ts";
import { QUEUE_HEADER } from "../http/paths.ts";
import { hasUpgrade } from "../http/upgrade.ts";
import { passedValue } from "../passed-headers.ts";
import { hasBody } from "./headers.ts";

const SUBMIT = "/submit";
/** The word of the header with which the body of a submit is the arguments of the task. */
const ARGUMENTS = "arguments";

/** Headers that are kept only where the author lists them by name. */
const SECRET: ReadonlySet<string> = new Set(["authorization", "cookie"]);

/**
 * What a request to a mounted server means besides itself; undefined for one that the server is to
 * answer. `path` is decoded. Throws REQUEST_INVALID for a header that means nothing here.
 */
export function queuedAt(
  req: FastifyRequest,
  path: string,
  {
    manifest,
    values,
    words,
  }: {
    readonly manifest: ServiceManifest;
    readonly values: ContextValues;
    readonly words: QueueWords;
  },
): QueuedPlace | undefined {
  const mount = mountAt(manifest, path);
  const header = req.headers[QUEUE_HEADER];
  if (mount?.queue === undefined) {
    if (mount !== undefined && header !== undefined) {
      const message = `the server at ${mount.path} takes no requests as tasks: leave out the header Tessera-Queue, or have it mounted with queue`;
      throw problem("REQUEST_INVALID", message);
    }
    return undefined;
  }
  const bare = path.endsWith("/") ? path.slice(0, -1) : path;
  const given = (name: string): string | undefined => queryOf(req, name);
  if (header === ARGUMENTS && req.method === "POST" && bare === belowMount(mount, SUBMIT)) {
    const { endpoint, path } = placeOf(mount);
    return { submit: { endpoint, fields: undefined, body: undefined, given, path } };
  }
  if (header !== undefined) {
    const inHeader = headerParameters(String(header), words.parameters);
    return { submit: toQueued(req, { mount, values, url: urlOf(req), given: inHeader }) };
  }
  const [above = "", verb = ""] = split(bare);
  if (mountAt(manifest, above === "" ? "/" : above) !== mount) {
    return undefined;
  }
  if (req.method === "POST" && `/${verb}` === SUBMIT) {
    const url = withoutSubmit(urlOf(req), words.parameters);
    return { submit: toQueued(req, { mount, values, url, given }) };
  }
  return asksOfTask(req, verb, words.verbs) ? { endpoint: mount.path, verb } : undefined;
}

/**
 * The same where nothing of the deployment runs, and nobody knows its mounts: its tasks can be read
 * all the same, below the path of their mount, unless that might be the name of an endpoint.
 */
export function queuedAtRest(
  req: FastifyRequest,
  path: string,
  { verbs }: QueueWords,
): QueuedPlace | undefined {
  const [above = "", verb = ""] = split(path.endsWith("/") ? path.slice(0, -1) : path);
  const isOfEndpoint = above.lastIndexOf("/") === 0;
  return !isOfEndpoint && asksOfTask(req, verb, verbs)
    ? { endpoint: above === "" ? "/" : above, verb }
    : undefined;
}

function asksOfTask({ query }: FastifyRequest, verb: string, verbs: readonly string[]): boolean {
  const { task_id: taskId } = query as Readonly<Record<string, unknown>>;
  return verbs.includes(verb) && typeof taskId === "string" && isTaskId(taskId);
}

function placeOf(mount: MountManifest): Pick<QueuedRequest, "endpoint" | "path"> {
  const path = pathBelow({ name: mount.path });
  return { endpoint: mount.path, path: path === "/" ? "" : path };
}

function belowMount({ path }: MountManifest, below: string): string {
  return path === "/" ? below : path + below;
}

function queryOf(req: FastifyRequest, name: string): string | undefined {
  const value = (req.query as Readonly<Record<string, unknown>>)[name];
  if (Array.isArray(value)) {
    throw problem("REQUEST_INVALID", `${name} is given more than once`);
  }
  return value as string | undefined;
}

function split(path: string): [above: string, last: string] {
  const at = path.lastIndexOf("/");
  return [path.slice(0, at), path.slice(at + 1)];
}

function toQueued(
  req: FastifyRequest,
  {
    mount,
    values,
    url,
    given,
  }: {
    readonly mount: MountManifest;
    readonly values: ContextValues;
    readonly url: string;
    readonly given: QueuedRequest["given"];
  },
): QueuedRequest {
  if (hasUpgrade(req.raw)) {
    const message = "a WebSocket cannot be a task: leave out the header Tessera-Queue";
    throw problem("REQUEST_INVALID", message);
  }
  const named = mountTask(mount)?.request?.headers ?? [];
  const headers = keptHeaders(req, named, values);
  return {
    ...placeOf(mount),
    fields: { method: req.method, path: url, headers },
    body: hasBody(req) ? MOUNT_BODY : undefined,
    given,
  };
}

/** The headers that are stored with the task. Errors: REQUEST_INVALID for too many. */
function keptHeaders(
  { headers }: FastifyRequest,
  named: readonly string[],
  values: ContextValues,
): JsonObject {
  const takesAll = named.includes("*");
  const kept: { [name: string]: string } = {};
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    const isNamed = named.includes(name) || (takesAll && !SECRET.has(name));
    const own =
      isNamed && isKeptForTask(name) && value !== undefined
        ? passedValue(name, String(value), values)
        : undefined;
    if (own !== undefined) {
      kept[name] = own;
      bytes += name.length + own.length;
    }
  }
  if (bytes > MAX_HEAD_BYTES) {
    const message = `the headers that are stored with the task have ${bytes} bytes, and may have ${MAX_HEAD_BYTES}: send less of ${Object.keys(kept).join(", ")}`;
    throw problem("REQUEST_INVALID", message);
  }
  return kept;
}

/** `submit; priority=5; delay=30`. Throws REQUEST_INVALID for all else. */
function headerParameters(text: string, known: readonly string[]): QueuedRequest["given"] {
  const [word = "", ...rest] = text.split(";").map((part) => part.trim());
  const given = new Map<string, string>();
  const isKnown = rest.every((part) => {
    const [, name = "", quoted, plain] = /^([a-z_]+)=(?:"([^"]*)"|([^\s";]+))$/.exec(part) ?? [];
    const isNew = known.includes(name) && !given.has(name);
    given.set(name, quoted ?? plain ?? "");
    return isNew;
  });
  if (word.toLowerCase() !== "submit" || !isKnown) {
    const message = `the header Tessera-Queue is ${JSON.stringify(text.slice(0, 64))}, and has to be submit, with parameters such as "submit; priority=5" of ${known.join(", ")}, or left out`;
    throw problem("REQUEST_INVALID", message);
  }
  return (name) => given.get(name);
}

/** In origin form, with its query. */
export function urlOf({ url }: FastifyRequest): string {
  const path = url.replace(/^[a-z]+:\/\/[^/?]*/i, "");
  return path.startsWith("/") || path === "*" ? path : `/${path}`;
}

/** The URL of the request that a submit is for: without the last segment, and what of its query is the platform's. */
function withoutSubmit(url: string, known: readonly string[]): string {
  const at = url.indexOf("?");
  const path = at < 0 ? url : url.slice(0, at);
  const above = path.slice(0, path.lastIndexOf("/", path.length - 2)) || "/";
  const own =
    at < 0
      ? []
      : url
          .slice(at + 1)
          .split("&")
          .filter((pair) => !known.includes(pair.split("=", 1)[0] ?? ""));
  return own.length === 0 || own.join("") === "" ? above : `${above}?${own.join("&")}`;
}
