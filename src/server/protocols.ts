/**
 * Mounts gRPC, Connect and REST on a Fastify instance: three protocols of the
 * same services behind the same interceptors. Other plugins get what they need
 * to call these services too.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyPluginOptions,
  FastifyRequest,
} from "fastify";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Access } from "../../gen/tessera/v1/access_pb.js";
import { type Authenticate, addressOf, type Principal, setPrincipal } from "../auth/principal.ts";
import type { Directory } from "../deployments/directory.ts";
import { toProblem } from "../errors.ts";
import { appOf, type HostKind } from "../hosting/hosts.ts";
import type { Protocol } from "../metrics/metrics.ts";
import type { ReaderThreads } from "../service/input/threads.ts";
import { DEFAULT_MAX_BODY_BYTES } from "./http/body-limits.ts";
import { createReadLarge, createRewriteLarge } from "./large-messages.ts";
import { restPlugin } from "./rest/plugin.ts";
import { hostOf, requestValues } from "./rpc/engine/caller.ts";
import { createInvoker, type Invoker, type ServiceRegistration } from "./rpc/engine/invoker.ts";
import { rpcPlugin } from "./rpc/engine/plugin.ts";
import { Standings } from "./rpc/engine/standing.ts";
import { createHealthService, type HealthSource } from "./rpc/health.ts";
import {
  accessTable,
  createAuthenticateInterceptor,
  createAuthorizeInterceptor,
  createIdentify,
  createLocate,
  createStandingInterceptor,
  DEPLOYMENT_HEADER,
  type Identify,
  locatedOf,
  questionOf,
} from "./rpc/interceptors/access.ts";
import { createCountInterceptor } from "./rpc/interceptors/count.ts";
import { createValidateInterceptor } from "./rpc/interceptors/validate.ts";
import { createReflectionServices } from "./rpc/reflection.ts";

export interface ProtocolOptions {
  /** Served on every host, in addition to health and reflection. Every method needs the option `access`. */
  readonly services: readonly ServiceRegistration[];
  /** Served on the platform's hosts only, not on those of deployments. */
  readonly platformServices?: readonly ServiceRegistration[];
  readonly authenticate: Authenticate;
  /**
   * True for `tessera serve`, which has no people and no organizations: every
   * authenticated caller may call everything. Reflection then needs the same
   * credential as calls do; the platform's descriptors are public.
   */
  readonly standalone: boolean;
  /** Requests to `<organization>.<platformDomain>` are for that organization. Absent: hosts name no organization. */
  readonly platformDomain?: string;
  /** The deployments that this server serves; absent on a server without any. */
  readonly directory?: Directory;
  /** Hosts below this domain are those of deployments. Absent: hosts name no deployment. */
  readonly appsDomain?: string;
  readonly health: HealthSource;
  /** Where large messages in JSON are read. Default: on the serving thread. */
  readonly readers?: ReaderThreads | undefined;
  /** Calls back when what callers may do has changed. Default: nothing changes while it runs. */
  readonly onAccessChange?: (changed: () => void) => void;
  /** Aborts the calls that are still under way when the server stops, with the error that they end with. */
  readonly shutdownSignal: AbortSignal;
}

/** What a plugin needs to call the services for its requests. */
export interface PluginContext {
  readonly invoke: Invoker;
  /**
   * Authenticates the sender of a request for this method, so that it can be
   * refused before its body is read. Returns a promise only if the answer is
   * not known at once. Errors: TOKEN_MISSING, TOKEN_INVALID.
   */
  readonly contextValues: (
    req: FastifyRequest,
    method: DescMethod,
  ) => ContextValues | Promise<ContextValues>;
  /**
   * The same for a method of a deployment: also finds the deployment that host
   * or header name, and checks that the caller may call it. Errors: also those
   * of `Locate`.
   */
  readonly targetValues: (
    req: FastifyRequest,
    method: DescMethod,
  ) => ContextValues | Promise<ContextValues>;
  /** The same for a caller who is found otherwise than by the headers of the request. */
  readonly targetValuesFor: (
    req: FastifyRequest,
    find: (address: string) => Principal | Promise<Principal>,
  ) => ContextValues | Promise<ContextValues>;
  /**
   * Asks again and again whether the caller of what lasts may go on (`engine/standing.ts`), and
   * calls `end` when they may not, or when the server stops. Returns the function that stops it.
   */
  readonly keepStanding: (
    req: FastifyRequest,
    called: { readonly values: ContextValues; readonly method: DescMethod },
    end: () => void,
  ) => () => void;
}

export type ServerPlugin = FastifyPluginAsync<PluginContext>;

/** Mounts the protocols. Throws when a method has no access, or when bindings contradict each other. */
export async function mountProtocols(
  app: FastifyInstance,
  options: ProtocolOptions,
): Promise<PluginContext> {
  const { standalone, authenticate, platformDomain, shutdownSignal } = options;
  const own = [...options.services, ...(options.platformServices ?? [])];
  const services = withHealth(own, options.health);
  const reflection = standalone ? Access.AUTHENTICATED : Access.PUBLIC;
  const limits = new Map<DescService, number | undefined>(
    own.map(({ service, maxMessageBytes }) => [service, maxMessageBytes]),
  );
  const accessOf = accessTable(services, {
    [Health.typeName]: Access.PUBLIC,
    [ServerReflection.typeName]: reflection,
    [ServerReflectionAlpha.typeName]: reflection,
  });
  const identify = withoutAppCookies(createIdentify(authenticate, accessOf), options.appsDomain);
  const { directory } = options;
  const readLarge = createReadLarge(options.readers);
  const rewriteLarge = createRewriteLarge(options.readers);
  const locate = directory && createLocate(directory, { standalone });
  const standings = new Standings();
  options.onAccessChange?.(() => standings.hurry());
  const endStreams = (): void => standings.endAll(toProblem(shutdownSignal.reason));
  shutdownSignal.addEventListener("abort", endStreams, { once: true });
  const standing = { standings, identify, accessOf, standalone, directory };
  const keepStanding: PluginContext["keepStanding"] = ({ headers }, { values, method }, end) => {
    const { authorization, cookie } = headers;
    const header = new Headers({
      ...(authorization !== undefined && { authorization }),
      ...(cookie !== undefined && { cookie }),
    });
    const ask = questionOf({ contextValues: values, method, header }, standing);
    return standings.add({ values, ask, end });
  };
  const interceptors = [
    createAuthenticateInterceptor(identify),
    createAuthorizeInterceptor(accessOf, { standalone, locate }),
    createCountInterceptor(),
    createStandingInterceptor(standing),
    createValidateInterceptor(),
  ];
  const valuesOver =
    (protocol: Protocol): PluginContext["contextValues"] =>
    (req, method) => {
      const values = requestValues(req, protocol, platformDomain);
      const { authorization, cookie } = req.headers;
      const pending = identify(method, { authorization, cookie }, values);
      return pending === undefined ? values : pending.then(() => values);
    };
  const contextValues = valuesOver("http");
  const located = (req: FastifyRequest, values: ContextValues) => {
    const header = String(req.headers[DEPLOYMENT_HEADER] ?? "");
    const known = (): ContextValues => {
      req.bodyShare?.of(locatedOf({ values }).facts.organizationId);
      return values;
    };
    if (locate === undefined) {
      return values;
    }
    return locate(values, { named: "", header })?.then(known) ?? known();
  };
  const targetValues: PluginContext["targetValues"] = (req, method) => {
    const known = contextValues(req, method);
    return known instanceof Promise
      ? known.then((values) => located(req, values))
      : located(req, known);
  };
  const targetValuesFor: PluginContext["targetValuesFor"] = async (req, find) => {
    const values = requestValues(req, "http", platformDomain);
    return located(req, setPrincipal(values, await find(addressOf(values))));
  };
  const mount = async (
    shown: readonly ServiceRegistration[],
    { services, hostKind }: Mounted,
  ): Promise<Invoker> => {
    const invoke = createInvoker({ services, interceptors });
    await app.register(onlyOn(hostKind, rpcPlugin), {
      services,
      interceptors,
      invoker: invoke,
      readMaxBytes: DEFAULT_MAX_BODY_BYTES,
      shutdownSignal,
      readLarge,
      rewriteLarge,
      contextValues: (req) => requestValues(req, rpcProtocol(req), platformDomain),
    });
    await app.register(onlyOn(hostKind, restPlugin), {
      services: shown.map(({ service }) => service),
      invoke,
      contextValues: valuesOver("rest"),
      readLarge,
      maxBodyBytes: ({ parent }) => limits.get(parent) ?? DEFAULT_MAX_BODY_BYTES,
    });
    return invoke;
  };
  if (options.appsDomain === undefined) {
    return {
      invoke: await mount(own, { services, hostKind: undefined }),
      contextValues,
      targetValues,
      targetValuesFor,
      keepStanding,
    };
  }
  const onApps = withHealth(options.services, options.health);
  await mount(options.services, { services: onApps, hostKind: "deployment" });
  const invoke = await mount(own, { services, hostKind: "platform" });
  return { invoke, contextValues, targetValues, targetValuesFor, keepStanding };
}

/** The services of one kind of host. */
interface Mounted {
  readonly services: readonly ServiceRegistration[];
  /** Undefined: every host. */
  readonly hostKind: HostKind | undefined;
}

/** Services together with their health and their descriptors. */
function withHealth(
  own: readonly ServiceRegistration[],
  source: HealthSource,
): ServiceRegistration[] {
  const names = own.map(({ service }) => service.typeName);
  const healthService = createHealthService(healthOf(source, names), names);
  const reflected = [...own, healthService].map(({ service }) => service);
  return [...own, healthService, ...createReflectionServices(reflected)];
}

/** The protocol of an RPC by its content type, as https://grpc.io and https://connectrpc.com define it. */
function rpcProtocol({ headers }: FastifyRequest): Protocol {
  const type = headers["content-type"] ?? "";
  if (!type.startsWith("application/grpc")) {
    return "connect";
  }
  return type.startsWith("application/grpc-web") ? "grpc_web" : "grpc";
}

/**
 * Ignores cookies on the hosts of deployments. Browsers show answers of
 * deployments there, and a session valid on such a host could be misused by
 * them.
 */
function withoutAppCookies(identify: Identify, appsDomain: string | undefined): Identify {
  return (method, headers, values) =>
    headers.cookie !== undefined &&
    appsDomain !== undefined &&
    appOf(hostOf(values), appsDomain) !== undefined
      ? identify(method, { ...headers, cookie: undefined }, values)
      : identify(method, headers, values);
}

/** The health of this server's services; that of others is unknown. */
function healthOf(source: HealthSource, names: readonly string[]): HealthSource {
  return {
    status: (service) =>
      service === "" || names.includes(service) ? source.status(service) : undefined,
    onChange: (listener) => source.onChange(listener),
  };
}

/** Limits the routes of a plugin to hosts of one kind; undefined: all hosts. */
export function onlyOn<Options extends FastifyPluginOptions>(
  hostKind: HostKind | undefined,
  plugin: FastifyPluginAsync<Options>,
): FastifyPluginAsync<Options> {
  if (hostKind === undefined) {
    return plugin;
  }
  return async (app, options) => {
    app.addHook("onRoute", (route) => {
      route.constraints = { ...route.constraints, hostKind };
    });
    await plugin(app, options);
  };
}
