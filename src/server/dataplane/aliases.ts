/** Routes for the paths that services give to their endpoints, besides `/{endpoint}`. */
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
/** The request with the name of its endpoint in the place of an alias. */
export function named(req: FastifyRequest, endpoint: string): FastifyRequest {
  req.params = { endpoint };
  return req;
}

/** A route by name, such as `/:endpoint/submit`. */
interface NamedRoute {
  readonly path: string;
}

export interface AliasOptions<Route extends NamedRoute> {
  /** The context of a request; throws for one that no deployment takes. */
  readonly contextValues: (req: FastifyRequest) => ContextValues | Promise<ContextValues>;
  /** The endpoint at a path that the service chose; undefined for every other path. */
  readonly endpointAt: (path: string, values: ContextValues) => string | undefined;
  readonly answer: (
    route: Route,
    req: FastifyRequest,
    reply: FastifyReply,
    values: ContextValues,
  ) => Promise<void>;
  readonly failed: (req: FastifyRequest, reply: FastifyReply, thrown: unknown) => void;
}

/** Adds paths of several segments, which lead to an endpoint if its service chose them. */
export function mountAliases<Route extends NamedRoute>(
  app: FastifyInstance,
  routes: readonly Route[],
  { contextValues, endpointAt, answer, failed }: AliasOptions<Route>,
): void {
  const find = async (req: FastifyRequest, reply: FastifyReply): Promise<void> => {
    let values: ContextValues;
    try {
      values = await contextValues(req);
    } catch {
      // What a caller may not call is not told from what does not exist.
      reply.callNotFound();
      return;
    }
    const path = req.url.split("?", 1)[0] ?? "";
    for (const route of routes) {
      const rest = route.path.slice("/:endpoint".length);
      const endpoint = path.endsWith(rest)
        ? endpointAt(path.slice(0, path.length - rest.length), values)
        : undefined;
      if (endpoint !== undefined) {
        return answer(route, named(req, endpoint), reply, values);
      }
    }
    reply.callNotFound();
  };
  app.route({
    url: "/*",
    method: app.supportedMethods,
    exposeHeadRoute: false,
    handler: (req, reply): void => {
      find(req, reply).catch((thrown) => failed(req, reply, thrown));
    },
  });
}
