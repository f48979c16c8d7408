/** 405 with `Allow` (RFC 9110, section 15.5.6) for paths without parameters, such as `/livez` and those of RPCs. */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { problem } from "../../errors.ts";
import { sendProblem } from "./problem.ts";

/** The methods of one path on one kind of host. */
interface StaticPath {
  readonly url: string;
  readonly constraints: RouteOptions["constraints"];
  readonly methods: Set<string>;
}

/**
 * Notes the routes that are added from now on. The returned function adds those of the methods
 * that their paths do not take, which refuse them: call it once all routes are there. They are
 * routes, because the data plane would otherwise take `livez` for the name of an endpoint.
 */
export function otherMethods(app: FastifyInstance): () => void {
  const routes: RouteOptions[] = [];
  app.addHook("onRoute", (route) => {
    routes.push(route);
  });
  return () => {
    for (const { url, constraints, methods } of staticPaths(routes)) {
      const others = app.supportedMethods.filter((method) => !methods.has(method));
      if (others.length > 0) {
        const handler = refuse([...methods].sort().join(", "));
        app.route({ method: others, url, constraints, exposeHeadRoute: false, handler });
      }
    }
  };
}

function staticPaths(routes: readonly RouteOptions[]): StaticPath[] {
  const paths = new Map<string, StaticPath>();
  for (const { url, method, constraints = {} } of routes) {
    // An endpoint may be at the root, beside the page there.
    if (url === "/" || /[:*]/.test(url)) {
      continue;
    }
    const key = JSON.stringify([url, constraints]);
    const path = paths.get(key) ?? { url, constraints, methods: new Set() };
    for (const each of [method].flat()) {
      path.methods.add(each);
    }
    paths.set(key, path);
  }
  return [...paths.values()];
}

function refuse(allow: string) {
  return (req: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const message = `${req.url.split("?", 1)[0]} takes ${allow}, not ${req.method}`;
    return sendProblem(reply.header("allow", allow), problem("METHOD_NOT_ALLOWED", message));
  };
}
