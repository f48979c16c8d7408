/**
 * 405 with `Allow` (RFC 9110, section 15.5.6) for paths without parameters, such as `/livez` and
 * those of RPCs, which the data plane would otherwise take for the names of endpoints.
 *
 * Routes for the methods that a path does not take would say the same, but there would be a
 * thousand of them, and the router has a tree for each method: 14 MB, and a tenth of a start.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { problem } from "../../errors.ts";
import { sendProblem } from "./problem.ts";

/** The methods of one path on one kind of host; undefined: on every host. */
interface StaticPath {
  readonly hostKind: unknown;
  readonly methods: readonly string[];
}

/** Answers a request whose path does not take its method; returns undefined for every other. */
export type RefuseMethod = (req: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

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
