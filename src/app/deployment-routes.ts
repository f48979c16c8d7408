/** The routes of a node's deployments: their services, the data plane, who calls it, and documents. */
import { Code, type ContextValues } from "@connectrpc/connect";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { TaskService } from "../../gen/tessera/v1/task_pb.js";
import { type AccessOptions, accessHandlers } from "../api/task/access.ts";
import type { TaskAudit } from "../api/task/audit.ts";
import { deleteHandlers } from "../api/task/delete.ts";
import { endpointService } from "../api/task/endpoint.ts";
import { taskService } from "../api/task/task.ts";
import { updateHandlers } from "../api/task/update.ts";
import { addressOf, type Principal, setPrincipal } from "../auth/principal.ts";
import { accessEnded, TASK_ACCESS_PREFIX, type TaskAccess } from "../auth/task-access.ts";
import type { Directory } from "../deployments/directory.ts";
import { problem, toProblem } from "../errors.ts";
import { expose } from "../metrics/exposition.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { MAX_INLINE_FILE_BYTES } from "../protocol/messages.ts";
import { isBentomlClient } from "../server/dataplane/answer.ts";
import { createQueueOfMounts, dataPlanePlugin } from "../server/dataplane/plugin.ts";
import { sendProblemOrPage } from "../server/dataplane/refusal-page.ts";
import {
  accessDoesNotOpen,
  accessOf,
  type BodyLimits,
  checkAccess,
  givenAccess,
  hasAccess,
  holdTo,
} from "../server/dataplane/request.ts";
import type { StreamedOutput } from "../server/dataplane/stream.ts";
import { isForm } from "../server/http/body.ts";
import { sendCompressed, vary } from "../server/http/compression.ts";
import { pathOf } from "../server/http/paths.ts";
import { JSON_TYPE } from "../server/http/problem.ts";
import { sendText } from "../server/monitoring/send.ts";
import { mountDocuments } from "../server/mounts/described.ts";
import { answerMounted, type MountedOptions } from "../server/mounts/mounted.ts";
import { queuedAt, queuedAtRest } from "../server/mounts/queued.ts";
import type { PluginContext, ServerPlugin } from "../server/protocols.ts";
import { register } from "../server/rpc/engine/invoker.ts";
import { setStanding } from "../server/rpc/engine/standing.ts";
import { DEPLOYMENT_HEADER, deploymentOf, locatedOf } from "../server/rpc/interceptors/access.ts";
import type { ServerOptions } from "../server/server.ts";
import { documents, OPENAPI_PATH, SCHEMA_PATH, writeForBentoml } from "../service/documents.ts";
import { endpointAt, mountAt, routeOf } from "../service/mounts.ts";
import { pieceTypeOf } from "../service/piece-type.ts";

/** The metrics page of one deployment, for every caller of it, such as a Prometheus of its owner. */
export function deploymentMetrics(metrics: Metrics): ServerPlugin {
  return async (app, { targetValues }) => {
    app.get("/metrics", { exposeHeadRoute: false }, async (req, reply) => {
      try {
        const values = await targetValues(req, EndpointService.method.listEndpoints);
        return sendText(reply, expose(metrics, deploymentOf({ values }).measured));
      } catch (thrown) {
        return sendProblemOrPage(req, reply, toProblem(thrown));
      }
    });
  };
}

/** JSON body of a call: files in it, as `data:` URLs, are held in memory. */
const MAX_TEXT_BODY_BYTES = 64 * 1024 * 1024;

const FILE_LIMIT = "the limit of a body with files: send less";

interface ServingOptions extends AccessOptions {
  readonly version: string;
  /** Where changes and deletions of tasks are recorded. Default: nowhere. */
  readonly audit?: TaskAudit;
  /** Largest JSON body of a call to an endpoint that says nothing of it. */
  readonly jsonBodyBytes: number;
  /** The most that an endpoint may ask for. */
  readonly maxJsonBodyBytes: number;
  /** Largest body of a call to an endpoint that takes files, which are streamed to disk. */
  readonly fileBodyBytes: number;
  /** The document that hosts and headers without a deployment get at `/docs.json`. Default: none. */
  readonly platform?: PlatformDocument;
}

/** The OpenAPI document of the platform. */
interface PlatformDocument {
  readonly directory: Pick<Directory, "names">;
  /** Writes it as JSON text, when it is first asked for. */
  readonly write: () => string;
}

/** The parts of a server that deployments need, apart from their directory. */
export function serveDeployments(
  options: ServingOptions,
): Pick<ServerOptions, "services" | "plugins"> {
  return {
    services: [
      register(TaskService, {
        ...taskService,
        ...accessHandlers(options),
        ...deleteHandlers(options.audit),
        ...updateHandlers(options.audit),
      }),
      register(EndpointService, endpointService),
    ],
    plugins: [dataPlane(options), described(options)],
  };
}

/** Serves a page whose paths a mounted server has, where the service of the request has one there. */
export function behindMounts(
  page: FastifyPluginAsync,
  { fileBodyBytes }: Pick<ServingOptions, "fileBodyBytes">,
): ServerPlugin {
  return async (app, { invoke, targetValues, keepStanding }) => {
    const toServer = createToServer(fileBodyBytes, { invoke, keepStanding });
    app.addHook("onRequest", async (req, reply) => {
      try {
        const values = await known(targetValues, req);
        await (values && toServer(req, reply, values));
      } catch (thrown) {
        sendProblemOrPage(req, reply, toProblem(thrown));
      }
    });
    await page(app, {});
  };
}

/** Undefined for who may not call, or names no deployment. */
async function known(
  targetValues: PluginContext["targetValues"],
  req: FastifyRequest,
): Promise<ContextValues | undefined> {
  try {
    return await targetValues(req, EndpointService.method.listEndpoints);
  } catch {
    return undefined;
  }
}

/**
 * Serves a page on the hosts of deployments. Browsers cannot send a token with the request for
 * a page, so who comes without one gets the page in any case, and it asks for the token; its
 * status is 401 wherever calls need one, also where there is no deployment. The files that the
 * page loads say nothing of any deployment.
 */
export function deploymentPage(page: ServerPlugin): ServerPlugin {
  return async (app, context) => {
    app.addHook("onRequest", async (req, reply) => {
      if (req.url.split("?", 1)[0] !== "/") {
        return;
      }
      try {
        await context.targetValues(req, EndpointService.method.listEndpoints);
      } catch (thrown) {
        const refused = toProblem(thrown);
        if (refused.code !== Code.Unauthenticated) {
          return sendProblemOrPage(req, reply, refused);
        }
        reply.code(401).headers(Object.fromEntries(refused.metadata));
      }
    });
    await page(app, context);
  };
}

function dataPlane({ fileBodyBytes, taskAccess, ...limits }: ServingOptions): ServerPlugin {
  const manifestOf = (endpoint: string, values: ContextValues) =>
    deploymentOf({ values }).endpoint(endpoint).manifest;
  const bodyLimits = (endpoint: string, req: FastifyRequest, values: ContextValues) => {
    const manifest = manifestOf(endpoint, values);
    const json = jsonLimit(manifest, limits);
    const takesFiles = Object.keys(manifest.files).length > 0;
    if (!takesFiles) {
      return json;
    }
    const maxBytes = isForm(req)
      ? fileBodyBytes
      : Math.min(fileBodyBytes, Math.max(json.maxBytes, MAX_TEXT_BODY_BYTES));
    return { ...json, maxBytes, said: FILE_LIMIT };
  };
  const streamedBy = (endpoint: string, values: ContextValues): StreamedOutput | undefined => {
    const manifest = deploymentOf({ values }).find(endpoint);
    return manifest?.stream
      ? {
          endpoint,
          kind: manifest.kind,
          pieces: manifest.stream.pieces,
          contentType: pieceTypeOf(manifest.stream.pieces, manifest),
        }
      : undefined;
  };
  const endpointAtPath = (path: string, values: ContextValues): string | undefined => {
    const manifest = runningManifest(values);
    return manifest && endpointAt(manifest, path);
  };
  const refuseMoved = (name: string, values: ContextValues): void => {
    const moved = runningManifest(values)?.endpoints.find((each) => each.name === name);
    if (moved?.route !== undefined) {
      const message = `endpoint ${name} is not at /${name}: its service gave it the path ${routeOf(moved)}`;
      throw problem("ENDPOINT_NOT_FOUND", message);
    }
  };
  return (app, { invoke, targetValues, targetValuesFor, keepStanding }) =>
    dataPlanePlugin(app, {
      endpointAt: endpointAtPath,
      toServer: createToServer(fileBodyBytes, { invoke, keepStanding }),
      refuseMoved,
      invoke,
      contextValues: createContextOf({
        taskAccess,
        byHeaders: (req) => targetValues(req, EndpointService.method.callEndpoint),
        byAddress: targetValuesFor,
        deploymentIdOf: (values) => locatedOf({ values }).facts.deploymentId,
      }),
      streamedBy,
      bodyLimits,
    });
}

/**
 * Answers a request by the mounted server at its path, or by the queue before it; undefined without one.
 */
function createToServer(
  maxBodyBytes: number,
  { invoke, keepStanding }: Pick<PluginContext, "invoke" | "keepStanding">,
) {
  const toQueue = createQueueOfMounts({
    invoke,
    streamedBy: () => undefined,
    bodyLimits: (_, req) => ({
      maxBytes: isForm(req) ? maxBodyBytes : Math.min(maxBodyBytes, MAX_TEXT_BODY_BYTES),
      maxHeldBytes: MAX_INLINE_FILE_BYTES,
      said: FILE_LIMIT,
    }),
    requestLimits: {
      maxBytes: maxBodyBytes,
      maxHeldBytes: MAX_INLINE_FILE_BYTES,
      said: FILE_LIMIT,
    },
    placeOf: (req, values, words) => {
      const manifest = runningManifest(values);
      if (manifest === undefined) {
        return queuedAtRest(req, pathOf(req), words);
      }
      return manifest.mounts && queuedAt(req, pathOf(req), { manifest, values, words });
    },
  });
  const { callEndpoint: method } = EndpointService.method;
  const options: MountedOptions = {
    maxBodyBytes,
    keepStanding: (req, values, end) => keepStanding(req, { values, method }, end),
  };
  return (req: FastifyRequest, reply: FastifyReply, values: ContextValues) => {
    const queued = toQueue(req, reply, values);
    if (queued !== undefined) {
      return queued;
    }
    const manifest = runningManifest(values);
    const mount = manifest && mountAt(manifest, pathOf(req));
    if (mount !== undefined) {
      // The access of a task opens nothing of a server.
      checkAccess(req, values, { reads: false });
    }
    return (
      mount &&
      answerMounted(req, reply, values, {
        deployment: deploymentOf({ values }),
        mount,
        ...options,
      })
    );
  };
}

/** How large a JSON body of an endpoint may be, and who says so. */
function jsonLimit(
  { name, maxJsonBytes: asked }: EndpointManifest,
  {
    jsonBodyBytes,
    maxJsonBodyBytes: most,
  }: Pick<ServingOptions, "jsonBodyBytes" | "maxJsonBodyBytes">,
): BodyLimits {
  const maxBytes = Math.min(asked ?? jsonBodyBytes, most);
  const said =
    asked !== undefined && asked > most
      ? `the most that the operator allows (--max-json) of the max_json of endpoint ${name}: send less`
      : `the max_json of endpoint ${name}: send less, or have that option of it raised`;
  return { maxBytes, maxHeldBytes: maxBytes, said };
}

/** What does not run has no paths of its own, but its results are given all the same. */
function runningManifest(values: ContextValues): ServiceManifest | undefined {
  try {
    return deploymentOf({ values }).manifest;
  } catch {
    return undefined;
  }
}

/**
 * The documents that describe a deployment, for all who may call it. That of the platform is
 * public, as reflection is.
 */
function described({ version, platform }: ServingOptions): ServerPlugin {
  const isAboutPlatform = (req: FastifyRequest): boolean => {
    const header = String(req.headers[DEPLOYMENT_HEADER] ?? "");
    return platform?.directory.names({ host: req.host, header }) === false;
  };
  return async (app, { targetValues }) => {
    app.setErrorHandler((thrown, req, reply) => sendProblemOrPage(req, reply, toProblem(thrown)));
    for (const [path, write] of Object.entries(documents({ version }))) {
      app.get(path, async (req, reply) => {
        if (platform !== undefined && path === OPENAPI_PATH && isAboutPlatform(req)) {
          reply.type(JSON_TYPE).header("cache-control", "no-cache");
          await sendCompressed(reply, platform.write());
          return reply;
        }
        const values = await targetValues(req, EndpointService.method.listEndpoints);
        const { facts, deployment } = locatedOf({ values });
        const found = deployment();
        const { manifest } = found;
        const isSchema = path === SCHEMA_PATH;
        const text =
          isSchema && isBentomlClient(req.headers["user-agent"])
            ? writeForBentoml(manifest)
            : write(manifest, {
                authorization: facts.authorization,
                servers: isSchema ? undefined : await mountDocuments(found, manifest),
              });
        if (isSchema) {
          vary(reply, "user-agent");
        }
        await sendCompressed(reply.type(JSON_TYPE).header("cache-control", "no-cache"), text);
        return reply;
      });
    }
  };
}

// Who calls a deployment's own paths: the caller in the headers, or the maker of a task's access.

type Values = ContextValues | Promise<ContextValues>;

interface AccessReading {
  readonly taskAccess: TaskAccess;
  /** The context of a request whose caller is who its headers say. */
  readonly byHeaders: (req: FastifyRequest) => Values;
  /** The context of one whose caller is found otherwise, by where it comes from. */
  readonly byAddress: (
    req: FastifyRequest,
    find: (address: string) => Principal | Promise<Principal>,
  ) => Values;
  /** The id of the deployment that a context is for. */
  readonly deploymentIdOf: (values: ContextValues) => string;
}

/**
 * Creates the function that finds the caller. It refuses an access that is not valid with
 * TOKEN_INVALID, and with ACCESS_DENIED who sends nothing but an access to what that does not open.
 */
function createContextOf(reading: AccessReading): (req: FastifyRequest) => Values {
  return (req) => {
    const given = givenAccess(req);
    if (given === undefined) {
      return reading.byHeaders(req);
    }
    if (hasAccess(req)) {
      return enter(req, reading);
    }
    if (req.headers.authorization === undefined && isAccess(given)) {
      throw accessDoesNotOpen(req);
    }
    return reading.byHeaders(req);
  };
}

function isAccess(given: unknown): boolean {
  return [given].flat().some((each) => String(each).startsWith(TASK_ACCESS_PREFIX));
}

async function enter(
  req: FastifyRequest,
  { taskAccess, byHeaders, byAddress, deploymentIdOf }: AccessReading,
): Promise<ContextValues> {
  const text = accessOf(req);
  if (req.headers.authorization !== undefined) {
    // A bad credential is refused whatever else there is.
    await byHeaders(req);
  }
  const opened = taskAccess.open(text);
  const find = async (): Promise<ContextValues> => {
    try {
      return await byAddress(req, (address) => taskAccess.holder(opened, address));
    } catch (thrown) {
      throw toProblem(thrown).code === Code.Unauthenticated ? accessEnded(thrown) : thrown;
    }
  };
  const values = await find();
  if (deploymentIdOf(values) !== opened.deploymentId) {
    throw problem("ACCESS_DENIED", "the access is for a task of another deployment");
  }
  setStanding(values, {
    identify: async () => {
      setPrincipal(values, await taskAccess.holder(opened, addressOf(values)));
    },
    ended: accessEnded,
  });
  return holdTo(values, { taskId: opened.taskId });
}
