/** The HTTP server: Fastify with all that is served on it, and the listener for its port. */
import { Code } from "@connectrpc/connect";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  type FastifyServerOptions,
} from "fastify";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { problem, toProblem } from "../errors.ts";
import { appOf, hostKinds } from "../hosting/hosts.ts";
import type { CorsManifest } from "../protocol/manifest.ts";
import { letsOrigin } from "../service/cross-origin.ts";
import type { ConnectionLimit } from "./connection-limit.ts";
import { logAccess } from "./http/access-log.ts";
import { BodyBudget, leaveBodies, shareBudget } from "./http/body.ts";
import { requestIdOf, setDefaultHeaders } from "./http/default-headers.ts";
import { sendFrameworkError } from "./http/framework.ts";
import { refuseOtherMethods } from "./http/paths.ts";
import { JSON_TYPE, sendProblem } from "./http/problem.ts";
import { writeTo } from "./http/request-log.ts";
import { routeConnects } from "./http/upgrade.ts";
import { createListener, type Listener } from "./listener.ts";
import {
  type AllowedOrigins,
  preflightHeaders,
  refuseCrossSite,
  refuseOtherHosts,
  type SharingOptions,
  shareAcrossOrigins,
} from "./origins.ts";
import {
  mountProtocols,
  type PluginContext,
  type ProtocolOptions,
  type ServerPlugin,
} from "./protocols.ts";
import { believeWithSecret } from "./proxies.ts";
import { pathsOf } from "./rest/service-paths.ts";
import { answerUnknown } from "./rpc/engine/unimplemented.ts";
import { DEPLOYMENT_HEADER, locatedOf } from "./rpc/interceptors/access.ts";

export interface ServerOptions extends ProtocolOptions {
  /** Refuses changes from pages of other sites; for servers whose callers need no credential. */
  readonly sameSiteOnly: boolean;
  /** Origins whose pages may call deployments from browsers. Default: none but the server's own. */
  readonly allowedOrigins?: AllowedOrigins;
  /** The proxies whose `X-Forwarded-*` headers are trusted. Default: none. */
  readonly trustProxy?: FastifyServerOptions["trustProxy"];
  /** The secret that these proxies have to send, if any. */
  readonly proxySecret?: string;
  /**
   * Names at which a platform with a public address and this node are reached. Requests for hosts
   * that are neither these nor below the server's domains get 421. Default: every host is served.
   */
  readonly hostnames?: readonly string[];
  /** The data plane, documents and pages, after RPC and REST. */
  readonly plugins: readonly ServerPlugin[];
  readonly log: FastifyBaseLogger;
  /** Facts of the node for `/readyz?verbose`. Default: none. */
  readonly healthDetails?: { readonly [name: string]: string };
  /** Memory for the bodies of all requests under way together. */
  readonly bodyBudgetBytes: number;
  /** Of open connections. Default: none. */
  readonly connectionLimit?: ConnectionLimit;
  /** The level at which calls are logged; undefined: calls are not logged. */
  readonly accessLog: "debug" | "info" | undefined;
}

interface HttpServer {
  readonly app: FastifyInstance;
  readonly listener: Listener;
}

/** Creates the server. Throws when a method has no access, or when bindings contradict each other. */
export async function createServer(options: ServerOptions): Promise<HttpServer> {
  const { appsDomain, trustProxy } = options;
  const hosts = hostKinds(appsDomain, { forwarded: trustProxy !== undefined });
  let listener: Listener | undefined;
  const app = Fastify({
    genReqId: requestIdOf,
    frameworkErrors: sendFrameworkError,
    // Handlers answer requests that arrive during shutdown, with errors in the usual format.
    return503OnClosing: false,
    routerOptions: {
      maxParamLength: 256,
      ...(appsDomain !== undefined && {
        constraints: { hostKind: hosts },
      }),
    },
    ...(trustProxy !== undefined && { trustProxy }),
    serverFactory: (handler) => {
      const { proxySecret } = options;
      listener = createListener(
        proxySecret === undefined ? handler : believeWithSecret(proxySecret, handler),
        {},
        options.connectionLimit,
      );
      // Fastify types the server as node:http's, but uses only what both have.
      return listener.server as unknown as ReturnType<typeof import("node:http").createServer>;
    },
  });
  writeTo(app, options.log);
  const refuseMethod = refuseOtherMethods(app, ({ raw }) => hosts.deriveConstraint(raw));
  answerUnknown(app, (req, reply) => {
    const path = req.url.split("?", 1)[0];
    const message = `there is nothing at ${req.method} ${path}; ${options.standalone ? "the paths are described in /docs.json" : "the paths are described in /docs.json, and the rest by gRPC server reflection"}`;
    return refuseMethod(req, reply) ?? sendProblem(reply, problem("ROUTE_NOT_FOUND", message));
  });
  app.setErrorHandler(sendFrameworkError);
  routeConnects(app);
  leaveBodies(app);
  setDefaultHeaders(app);
  if (options.accessLog !== undefined) {
    logAccess(app, options.accessLog);
  }
  const { hostnames: names, platformDomain } = options;
  refuseOtherHosts(app, names && { names, appsDomain, platformDomain });
  const { allowedOrigins = [] } = options;
  if (allowedOrigins.length > 0 || options.directory?.corsOf !== undefined) {
    shareAcrossOrigins(app, {
      allowed: allowedOrigins,
      isForDeployment: callsOf(options),
      sharedByAuthor: sharedByAuthorOf(options),
    });
  }
  if (options.sameSiteOnly) {
    refuseCrossSite(app);
  }
  // A server of its own has one organization.
  const share = options.standalone ? 1 : undefined;
  shareBudget(app, new BodyBudget(options.bodyBudgetBytes, share));

  const context = await mountProtocols(app, options);
  await app.register(health, {
    health: options.health,
    ...(options.healthDetails && { healthDetails: options.healthDetails }),
    isReady: readinessOf(options, context),
  });
  for (const plugin of options.plugins) {
    await app.register(plugin, context);
  }
  await app.ready();
  if (listener === undefined) {
    throw new Error("Fastify has not created the server");
  }
  return { app, listener };
}

/**
 * Recognizes calls of deployments: requests on a deployment's host, requests
 * that name one in a header outside the platform's own paths, and the
 * preflights of both.
 */
function callsOf({
  appsDomain,
  platformServices = [],
}: ServerOptions): (req: FastifyRequest) => boolean {
  const isOwn = pathsOf(platformServices.map(({ service }) => service));
  const isNamed = (req: FastifyRequest) =>
    req.headers[DEPLOYMENT_HEADER] !== undefined ||
    preflightHeaders(req).includes(DEPLOYMENT_HEADER);
  return (req) =>
    appsDomain === undefined ||
    appOf(req.host, appsDomain) !== undefined ||
    (isNamed(req) && !isOwn(req.url.split("?", 1)[0] ?? ""));
}

/** What authors of deployments let pages of other sites do, on the hosts of their deployments. */
function sharedByAuthorOf({ directory }: ServerOptions): SharingOptions["sharedByAuthor"] {
  return (host, origin) => {
    const cors = directory?.corsOf?.(host);
    const letting = (found: CorsManifest | undefined) =>
      found !== undefined && letsOrigin(found, origin) ? found : undefined;
    return cors instanceof Promise ? cors.then(letting) : letting(cors);
  };
}

/**
 * The readiness of the deployment that a request names, for callers who may call it. Without a
 * token, a protected deployment cannot be told from none, and the answer is about the node.
 */
function readinessOf(
  { directory }: ServerOptions,
  { targetValues }: PluginContext,
): (req: FastifyRequest) => Promise<boolean> {
  return async (req) => {
    const header = String(req.headers[DEPLOYMENT_HEADER] ?? "");
    if (directory?.names({ host: req.host, header }) !== true) {
      return true;
    }
    try {
      const values = await targetValues(req, EndpointService.method.listEndpoints);
      return locatedOf({ values }).isReady();
    } catch (thrown) {
      const { authorization } = req.headers;
      if (authorization === undefined && toProblem(thrown).code === Code.Unauthenticated) {
        return true;
      }
      throw thrown;
    }
  };
}

interface HealthOptions extends Pick<ServerOptions, "health" | "healthDetails"> {
  /** Whether what the request names can take calls. */
  readonly isReady: (req: FastifyRequest) => Promise<boolean>;
}

const NO_WORKER = { reason: "NO_WORKER", text: "no worker can take calls" } as const;

/** Liveness and readiness probes, without limits. */
async function health(
  app: FastifyInstance,
  { health: source, healthDetails = {}, isReady }: HealthOptions,
): Promise<void> {
  // Probes of BentoML's services ask for /healthz.
  for (const path of ["/livez", "/healthz"]) {
    app.get(path, (_req, reply) => reply.type(JSON_TYPE).send('{"status":"ok"}'));
  }
  app.get("/readyz", async (req, reply) => {
    try {
      if (source.status("") === "SERVING" && (await isReady(req))) {
        const isVerbose = /[?&]verbose(?:[=&]|$)/.test(req.url);
        const details = isVerbose ? healthDetails : {};
        return reply.type(JSON_TYPE).send(JSON.stringify({ status: "ready", ...details }));
      }
    } catch (thrown) {
      return sendProblem(reply, toProblem(thrown));
    }
    const { reason, text } = source.hindrance ?? NO_WORKER;
    return sendProblem(reply, problem(reason, `not ready: ${text}`, { retryAfterMs: 1_000 }));
  });
}
