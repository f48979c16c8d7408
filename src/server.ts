/**
 * Assembles the HTTP server of a node: RPC, REST, the data plane, documents
 * and health on one Fastify instance, behind one listener.
 */
import { createContextValues, type Interceptor } from "@connectrpc/connect";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from "fastify";
import { Health } from "../gen/grpc/health/v1/health_pb.js";
import { EndpointService } from "../gen/tessera/v1/endpoint_pb.js";
import { TaskService } from "../gen/tessera/v1/task_pb.js";
import { type Authenticate, setPrincipal } from "./auth/principal.ts";
import { playground } from "./console/playground.ts";
import { dataPlanePlugin } from "./dataplane/plugin.ts";
import type { Directory } from "./deployments/directory.ts";
import { documents } from "./deployments/documents.ts";
import { problem } from "./errors.ts";
import { logAccess } from "./http/access-log.ts";
import { BodyBudget, shareBudget } from "./http/budget.ts";
import { refuseCrossSite } from "./http/cross-site.ts";
import { sendFrameworkError } from "./http/framework.ts";
import { JSON_TYPE, sendProblem } from "./http/problem.ts";
import { createListener, type Listener } from "./listener.ts";
import { restPlugin } from "./rest/plugin.ts";
import { endpointService } from "./rpc/endpoint.ts";
import { createHealthService, type HealthSource } from "./rpc/health.ts";
import { createAuthenticateInterceptor } from "./rpc/interceptors/authenticate.ts";
import { createValidateInterceptor } from "./rpc/interceptors/validate.ts";
import { createInvoker, register } from "./rpc/invoker.ts";
import { rpcPlugin } from "./rpc/plugin.ts";
import { createReflectionServices } from "./rpc/reflection.ts";
import { taskService } from "./rpc/task.ts";

export interface ServerOptions {
  readonly directory: Directory;
  readonly authenticate: Authenticate;
  /** True when callers need a token; told in the OpenAPI document. Without, calls from other sites are refused. */
  readonly authorization: boolean;
  readonly health: HealthSource;
  readonly log: FastifyBaseLogger;
  readonly version: string;
  /** Largest body of a call to an endpoint that takes JSON. */
  readonly jsonBodyBytes: number;
  /** Largest body of a call to an endpoint that takes files. */
  readonly fileBodyBytes: number;
  /** What the bodies of all requests under way may take together. */
  readonly bodyBudgetBytes: number;
  /** The level at which calls are logged; undefined: not at all. */
  readonly accessLog: "debug" | "info" | undefined;
  /** Aborts the calls that are still under way when the server stops. */
  readonly shutdownSignal: AbortSignal;
}

export interface HttpServer {
  readonly app: FastifyInstance;
  readonly listener: Listener;
}

export async function createServer(options: ServerOptions): Promise<HttpServer> {
  let listener: Listener | undefined;
  const app = Fastify({
    loggerInstance: options.log,
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: sendFrameworkError,
    // What arrives while the server stops is answered by the handlers, in the shape of all errors.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 256 },
    serverFactory: (handler) => {
      listener = createListener(handler);
      // Fastify types the server as node:http's; it uses what both have.
      return listener.server as unknown as ReturnType<typeof import("node:http").createServer>;
    },
  });
  app.setNotFoundHandler((req, reply) => {
    const path = req.url.split("?", 1)[0];
    return sendProblem(
      reply,
      problem(
        "ROUTE_NOT_FOUND",
        `there is nothing at ${req.method} ${path}; the paths are described in /docs.json`,
      ),
    );
  });
  app.setErrorHandler(sendFrameworkError);
  if (options.accessLog !== undefined) {
    logAccess(app, options.accessLog);
  }
  if (!options.authorization) {
    refuseCrossSite(app);
  }
  shareBudget(app, new BodyBudget(options.bodyBudgetBytes));

  await app.register(faces, options);
  await app.register(health, options);
  await app.register(described, options);
  await app.register(playground);
  await app.ready();
  if (listener === undefined) {
    throw new Error("Fastify has not created the server");
  }
  return { app, listener };
}

/** gRPC, Connect, REST and the data plane: faces of the same services behind the same interceptors. */
async function faces(app: FastifyInstance, options: ServerOptions): Promise<void> {
  const { directory, authenticate, shutdownSignal, fileBodyBytes, jsonBodyBytes } = options;
  const own = [
    register(TaskService, taskService(directory)),
    register(EndpointService, endpointService(directory)),
  ];
  const healthService = createHealthService(
    options.health,
    own.map(({ service }) => service.typeName),
  );
  const reflected = [...own, healthService].map(({ service }) => service);
  const services = [...own, healthService, ...createReflectionServices(reflected)];
  const interceptors: Interceptor[] = [
    createAuthenticateInterceptor(authenticate, new Set([Health.typeName])),
    createValidateInterceptor(),
  ];
  const invoker = createInvoker({ services, interceptors });
  await app.register(rpcPlugin, { services, interceptors, invoker, shutdownSignal });
  const contextValues = (req: FastifyRequest) =>
    setPrincipal(createContextValues(), authenticate(req.headers.authorization));
  await app.register(restPlugin, {
    services: own.map(({ service }) => service),
    invoke: invoker,
    contextValues,
  });
  await app.register(dataPlanePlugin, {
    invoke: invoker,
    contextValues,
    maxBodyBytes: (endpoint: string, req: FastifyRequest) => {
      const deployment = directory.find(String(req.headers["tessera-deployment"] ?? ""));
      const { files } = deployment.endpoint(endpoint).manifest;
      return Object.keys(files).length > 0 ? fileBodyBytes : jsonBodyBytes;
    },
  });
}

/** What probes ask: never a token, never a limit. */
async function health(app: FastifyInstance, { health: source }: ServerOptions): Promise<void> {
  app.get("/livez", (_req, reply) => reply.type(JSON_TYPE).send('{"status":"ok"}'));
  app.get("/readyz", (_req, reply) => {
    if (source.status("") === "SERVING") {
      return reply.type(JSON_TYPE).send('{"status":"ready"}');
    }
    const message =
      "not ready: no worker can take calls, the database does not answer, or the server is shutting down";
    return sendProblem(reply, problem("NO_WORKER", message, { retryAfterMs: 1_000 }));
  });
}

/** What describes the deployment. */
async function described(app: FastifyInstance, options: ServerOptions): Promise<void> {
  const { directory, authenticate, authorization, version } = options;
  for (const [path, write] of Object.entries(documents({ authorization, version }))) {
    app.get(path, (req, reply) => {
      authenticate(req.headers.authorization);
      const { manifest } = directory.find(String(req.headers["tessera-deployment"] ?? ""));
      return reply.type(JSON_TYPE).header("cache-control", "no-cache").send(write(manifest));
    });
  }
}
