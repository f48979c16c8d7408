/**
 * Which of the data plane's routes a path means. A service may give its endpoints paths of their
 * own, such as `/v1/predict`, `/v1/model:predict` or `/`; these are compared as they are, and no
 * router reads them. The path of an endpoint goes before the verbs of a task: `/jobs/submit` is
 * an endpoint's, if one has it.
 */
import { Code, type ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem, toProblem } from "../../errors.ts";
import { pathOf } from "../http/methods.ts";
import { sendProblem } from "../http/problem.ts";

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
