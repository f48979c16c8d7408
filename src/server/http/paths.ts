/**
 * Paths that Fastify's router does not tell apart: those of other methods, and those that services
 * give their endpoints.
 *
 * 405 with `Allow` (RFC 9110, section 15.5.6) for paths without parameters, such as `/livez` and
 * those of RPCs, which the data plane would otherwise take for the names of endpoints.
 *
 * Routes for the methods that a path does not take would say the same, but there would be a
 * thousand of them, and the router has a tree for each method: 14 MB, and a tenth of a start.
 */
import { Code, type ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { problem, toProblem } from "../../errors.ts";
import { sendProblem } from "./problem.ts";

/** The methods of one path on one kind of host; undefined: on every host. */
interface StaticPath {
  readonly hostKind: unknown;
  readonly methods: readonly string[];
}

/** Answers a request whose path does not take its method; returns undefined for every other. */
type RefuseMethod = (req: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/**
 * Notes the routes that are added from now on, and has those with parameters answer by the returned
 * function first. `hostKindOf` tells the kind of host of a request, which routes are constrained to.
 */
export function refuseOtherMethods(
  app: FastifyInstance,
  hostKindOf: (req: FastifyRequest) => unknown,
): RefuseMethod {
  const noted: RouteOptions[] = [];
  // Made when all routes are there: plugins change them after they are noted.
  let paths: Map<string, StaticPath[]> | undefined;
  const refuse: RefuseMethod = (req, reply) => {
    paths ??= pathsOf(noted);
    const found = paths.get(pathOf(req));
    if (found === undefined) {
      return undefined;
    }
    const methods = found
      .filter(({ hostKind }) => hostKind === undefined || hostKind === hostKindOf(req))
      .flatMap((each) => each.methods);
    if (methods.length === 0 || methods.includes(req.method)) {
      return undefined;
    }
    const allow = [...new Set(methods)].sort().join(", ");
    const message = `${req.url.split("?", 1)[0]} takes ${allow}, not ${req.method}`;
    return sendProblem(reply.header("allow", allow), problem("METHOD_NOT_ALLOWED", message));
  };
  app.addHook("onRoute", (route) => {
    const { url, handler } = route;
    if (/[:*]/.test(url)) {
      route.handler = function answer(req, reply) {
        return refuse(req, reply) ?? handler.call(this, req, reply);
      };
    } else if (url !== "/") {
      // An endpoint may be at the root, beside the page there.
      noted.push(route);
    }
  });
  return refuse;
}

function pathsOf(routes: readonly RouteOptions[]): Map<string, StaticPath[]> {
  const paths = new Map<string, StaticPath[]>();
  for (const { url, method, constraints } of routes) {
    const { hostKind } = (constraints ?? {}) as { readonly hostKind?: unknown };
    const path = paths.get(url) ?? [];
    path.push({ hostKind, methods: [method].flat() });
    paths.set(url, path);
  }
  return paths;
}

/** The path of a request without its query, and decoded. */
export function pathOf({ url }: FastifyRequest): string {
  const mark = url.indexOf("?");
  const path = mark === -1 ? url : url.slice(0, mark);
  if (!path.includes("%")) {
    return path;
  }
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

// Aliases: which of the data plane's routes a path means. A service may give its endpoints paths of
// their own, such as `/v1/predict`, `/v1/model:predict` or `/`; these are compared as they are, and
// no router reads them. The path of an endpoint goes before the verbs of a task: `/jobs/submit` is
// an endpoint's, if one has it.

const ENDPOINT = "/:endpoint";

/** The root, and a path of REST or of an RPC. */
const OWN_PATH = /^\/(?:(?:api\/v1|tessera\.v1\.\w+|grpc\.[\w.]+)\/|$|\?)/;

/** The header that makes a task of a request to a mounted server. */
export const QUEUE_HEADER = "tessera-queue";

/** A route by name, such as `/:endpoint/submit`. */
interface NamedRoute {
  readonly path: string;
  /** It calls a function. */
  readonly isCall?: boolean;
}

/** What a path means. */
interface Place<Route> {
  readonly route: Route;
  readonly endpoint: string;
}

interface AliasOptions<Route extends NamedRoute> {
  /** The context of a request; throws for one that no deployment takes. */
  readonly contextValues: (req: FastifyRequest) => ContextValues | Promise<ContextValues>;
  /** The endpoint at a path; undefined for every other path. */
  readonly endpointAt: (path: string, values: ContextValues) => string | undefined;
  readonly answer: (
    route: Route,
    req: FastifyRequest,
    reply: FastifyReply,
    values: ContextValues,
  ) => Promise<void>;
  /** Answers by the mounted server at the path of a request; undefined without one. */
  readonly toServer: (
    req: FastifyRequest,
    reply: FastifyReply,
    values: ContextValues,
  ) => Promise<void> | undefined;
  readonly failed: (req: FastifyRequest, reply: FastifyReply, thrown: unknown) => void;
}

/** The request with the name of its endpoint in the place of what its path has. */
export function named(req: FastifyRequest, endpoint: string): FastifyRequest {
  req.params = { endpoint };
  return req;
}

/**
 * What the path of a request means, with or without a slash at its end; undefined if nothing.
 * Throws REQUEST_INVALID for a call with the header that makes tasks of requests to servers.
 */
export function placeOf<Route extends NamedRoute>(
  req: FastifyRequest,
  routes: readonly Route[],
  endpointAt: (path: string) => string | undefined,
): Place<Route> | undefined {
  const path = pathOf(req);
  const bare = path.endsWith("/") ? path.slice(0, -1) : path;
  for (const route of routes) {
    const below = route.path.slice(ENDPOINT.length);
    if (bare.endsWith(below)) {
      const endpoint = endpointAt(bare.slice(0, bare.length - below.length) || "/");
      if (endpoint !== undefined) {
        if (route.isCall && req.headers[QUEUE_HEADER] !== undefined) {
          const message = `${endpoint} is a function, and the header Tessera-Queue is for mounted servers: leave it out, and POST ${bare.slice(0, bare.length - below.length)}/submit where the function is a task`;
          throw problem("REQUEST_INVALID", message);
        }
        return { route, endpoint };
      }
    }
  }
  return undefined;
}

/** The root has a page besides, which is read only. */
function notFound(req: FastifyRequest, reply: FastifyReply): void {
  if (pathOf(req) === "/") {
    const message = `/ takes GET or HEAD, not ${req.method}`;
    sendProblem(reply.header("allow", "GET, HEAD"), problem("METHOD_NOT_ALLOWED", message));
  } else {
    reply.callNotFound();
  }
}

/** Adds the paths that are not `/{endpoint}` and one segment below it. */
export function mountAliases<Route extends NamedRoute>(
  app: FastifyInstance,
  routes: readonly Route[],
  { contextValues, endpointAt, answer, toServer, failed }: AliasOptions<Route>,
): (req: FastifyRequest, reply: FastifyReply) => void {
  const find = async (req: FastifyRequest, reply: FastifyReply): Promise<void> => {
    let values: ContextValues;
    try {
      values = await contextValues(req);
    } catch (thrown) {
      // Where there may be a deployment, a server or an endpoint of it may be there, and its callers
      // hear why they were not let through. No deployment has the platform's own API, and the root
      // has its page.
      if (toProblem(thrown).code !== Code.NotFound && !OWN_PATH.test(req.url)) {
        throw thrown;
      }
      notFound(req, reply);
      return;
    }
    const place = placeOf(req, routes, (path) => endpointAt(path, values));
    if (place === undefined) {
      const passed = toServer(req, reply, values);
      if (passed === undefined) {
        notFound(req, reply);
      }
      return passed;
    }
    return answer(place.route, named(req, place.endpoint), reply, values);
  };
  const handler = (req: FastifyRequest, reply: FastifyReply): void => {
    find(req, reply).catch((thrown) => failed(req, reply, thrown));
  };
  app.route({ url: "/*", method: app.supportedMethods, exposeHeadRoute: false, handler });
  return handler;
}
