/**
 * `service` defines a service. With `endpoints` it returns a service of functions;
 * without, it is the decorator of a service class. Both forms check everything
 * except the schemas, which are checked when a worker loads the service.
 */

import type { Duration } from "../protocol/duration.ts";
import { MAX_MOUNTS, type MetricManifest, type ServiceManifest } from "../protocol/manifest.ts";
import type { PlacementManifest } from "../protocol/placement.ts";
import type { SetupContext } from "./context.ts";
import {
  type CallTypes,
  ENDPOINT_OPTIONS,
  type Endpoint,
  type EndpointDefinition,
  type EndpointFunction,
} from "./endpoint.ts";
import { ServiceDefinitionError } from "./errors.ts";
import { checkMetrics } from "./metric-rules.ts";
import type { MetricDeclarations, MetricsOf, NoMetrics } from "./metrics.ts";
import {
  checkMount,
  checkMounts,
  DEFAULT_PROGRAM_PROCESSES,
  type MountOptions,
  type ServiceMount,
} from "./mounts.ts";
import {
  checkDescription,
  checkGpus,
  checkImage,
  checkModels,
  checkPackages,
  checkPlacement,
  checkProcesses,
  checkReadyTimeout,
  type PlacementOptions,
  type ResolvedOptions,
  resolveOptions,
} from "./options.ts";
import { socketOn } from "./sockets.ts";
import { isAsyncGenerator } from "./stream.ts";
import { ENDPOINT, SERVICE, SOCKET } from "./symbols.ts";
import { refuseUnknown } from "./unknown.ts";

export interface ServiceOptions<Declared extends MetricDeclarations = NoMetrics>
  extends PlacementOptions {
  /** The service's name, a DNS label: lower-case letters, digits and inner hyphens, at most 63. */
  readonly name: string;
  /** What the service does, for its documentation. At most 10,000 characters. Default: none. */
  readonly description?: string;
  /** Custom metrics by name, at most 50, recorded through `ctx.metrics`. Default: none. */
  readonly metrics?: Declared;
  /**
   * How long a worker may take to load it, such as `"15m"` for one that reads a large model, from
   * 1 s to 24 h. The deployment's setting goes before it. Default: as the operator says, which is
   * 10 minutes unless they say otherwise.
   */
  readonly readyTimeout?: Duration;
  /**
   * Processes that a worker may start besides its own, by `node:child_process`, from 0 to 1,000.
   * The deployment's setting goes before it. Default: 0, and 64 with a command among `mounts`.
   */
  readonly processes?: number;
  /**
   * GPUs of each worker, which it shares with nobody, from 0 to 16, or a part of one, such as 0.5;
   * with `gpuMemory`, GPUs of whose memory it has a share. The deployment's settings go before both.
   * Default: none.
   */
  readonly gpus?: number;
  /** Memory that each worker has of a GPU, such as `"20GiB"`, or of each of its `gpus`. Default: the whole, or its part. */
  readonly gpuMemory?: string;
  /**
   * System packages that it needs, by the names of Debian, such as `["ffmpeg"]`, at most 64. Where
   * it is deployed, their programs and libraries are in its sandbox. Default: none.
   */
  readonly packages?: readonly string[];
  /**
   * The container image that is the root of its workers' file system where it is deployed, such as
   * `"registry.example.com/acme/reader:1"`, instead of `packages`. A deploy pins it to its digest.
   * Default: none.
   */
  readonly image?: string;
  /**
   * Where its models are, by the names that it has for them, such as
   * `{ qwen: "hf://Qwen/Qwen3-0.6B" }`. A deploy pins each; `modelPath("qwen")` is its folder in
   * a worker. Default: none.
   */
  readonly models?: { readonly [name: string]: string };
  /**
   * Servers of the service by their paths, such as `{ "/": { app } }` with an application of Hono,
   * `{ "/": { command, port, health } }` with a program that listens on a port of its own, or
   * `{ "/live": socket(async (ctx) => …) }` with a function that speaks through WebSockets.
   * Each answers all requests at its path and below it that are for no endpoint. Default: none.
   */
  readonly mounts?: { readonly [path: string]: MountOptions };
}

/** Endpoints of the function form by name, which may record only these metrics. */
export interface Endpoints<Declared extends MetricDeclarations = never> {
  readonly [name: string]: Endpoint<never, unknown, CallTypes, Declared>;
}

export interface FunctionServiceOptions<
  Named extends Endpoints = Endpoints,
  Declared extends MetricDeclarations = NoMetrics,
> extends ServiceOptions<Declared> {
  readonly endpoints: Named;
  /**
   * Asked in each worker once it has loaded, and every second until it returns true: before that
   * it takes no calls, and the revision does not take over. False, or a text that says why, is
   * "not yet"; an error refuses the service. Asked every 5 s afterwards: a worker that says no gets
   * no calls. Default: ready when it has loaded.
   */
  readonly ready?: Ready;
  /**
   * Awaited in each worker before `ready` is asked and its first call comes, for what is loaded
   * once: weights, connections. An error refuses the service. Default: nothing.
   */
  readonly setup?: (context: SetupContext<Declared>) => unknown;
}

/** Whether a worker may take calls: true, or false or a text that says why not yet. */
type Ready = () => boolean | string | Promise<boolean | string>;

/** An endpoint of a service, with its final name and checked options. */
export interface ServiceEndpoint {
  readonly name: string;
  readonly definition: EndpointDefinition;
  readonly options: ResolvedOptions;
  /** The method that implements it in a service class. */
  readonly method?: string;
}

export interface ServiceDefinition
  extends PlacementManifest,
    Pick<
      ServiceManifest,
      "readyTimeoutMs" | "processes" | "gpus" | "gpuMemoryMib" | "packages" | "image" | "models"
    > {
  readonly name: string;
  readonly description?: string;
  readonly endpoints: readonly ServiceEndpoint[];
  readonly metrics: readonly MetricManifest[];
  readonly mounts: readonly ServiceMount[];
  /** Of the function form; a class has a method. */
  readonly ready?: Ready;
  /** The same. */
  readonly setup?: (context: SetupContext) => unknown;
}

/** A service of the function form. Export it as default. */
export interface Service<Named extends Endpoints = Endpoints> {
  readonly [SERVICE]: ServiceDefinition;
  /** For the type checker only; undefined at run time. */
  readonly types?: { readonly endpoints: Named };
}

/**
 * A class that is constructed without arguments, once per worker. If it has a
 * method `setup()`, the worker awaits `setup(context)` before its first call, with
 * a `SetupContext`. If it has a method `ready()`, it takes no calls before that says true
 * (see `FunctionServiceOptions.ready`).
 */
export type ServiceClass = new () => object;

/** A decorator for service classes whose methods record only these metrics. */
export type ServiceDecorator<Declared extends MetricDeclarations = NoMetrics> = <
  Class extends ServiceClass,
>(
  target: Class & CountsOnly<InstanceType<Class>, Declared>,
  context: ClassDecoratorContext<Class>,
) => void;

/** A type error for a class with a method that records metrics the service does not declare. */
type CountsOnly<Instance, Declared extends MetricDeclarations> = [
  Undeclared<Instance, MetricsOf<Declared>>,
] extends [never]
  ? unknown
  : { readonly metricsNotDeclaredByTheServiceIn: Undeclared<Instance, MetricsOf<Declared>> };

/** Names of the methods whose context has undeclared metrics. */
type Undeclared<Instance, Counted> = {
  [Name in keyof Instance]: Instance[Name] extends (args: never, ctx: infer Ctx) => unknown
    ? Ctx extends { readonly taskId: string; readonly metrics: infer Metrics }
      ? Counted extends Metrics
        ? never
        : Name
      : never
    : never;
}[keyof Instance];

/** Defines a service of functions. Throws a `ServiceDefinitionError` for an invalid definition. */
export function service<
  Named extends Endpoints<Declared>,
  Declared extends MetricDeclarations = NoMetrics,
>(options: FunctionServiceOptions<Named, Declared>): Service<Named>;
/**
 * Decorates a service class, which is constructed once per worker without arguments.
 * Throws a `ServiceDefinitionError` for an invalid definition.
 */
export function service<Declared extends MetricDeclarations = NoMetrics>(
  options: ServiceOptions<Declared>,
): ServiceDecorator<Declared>;
export function service(options: ServiceOptions | FunctionServiceOptions): unknown {
  if (typeof options !== "object" || options === null) {
    throw new ServiceDefinitionError("service()", "needs an options object with a name");
  }
  const place = checkServiceName(options.name);
  refuseUnknown(options, SERVICE_OPTIONS, place);
  const mounts = checkMounts(options.mounts, place);
  const startsPrograms = mounts.some(({ serves }) => "program" in serves);
  const { processes = startsPrograms ? DEFAULT_PROGRAM_PROCESSES : undefined } = options;
  const described = {
    name: options.name,
    ...checkDescription(options.description, place),
    ...checkPlacement(options, place),
    ...checkReadyTimeout(options.readyTimeout, place),
    ...checkGpus(options, place),
    ...checkPackages(options.packages, place),
    ...checkImage(options.image, place),
    ...checkModels(options.models, place),
    metrics: checkMetrics(options.metrics, place),
    ...checkProcesses(processes, place),
    mounts,
  };
  const hooks = checkHooks(options as Partial<FunctionServiceOptions>, place);
  if (!("endpoints" in options)) {
    const [hook] = Object.keys(hooks);
    if (hook !== undefined) {
      throw new ServiceDefinitionError(place, `a class has a method for it, ${hook}()`);
    }
    return classDecorator(described, place);
  }
  const endpoints = functionEndpoints(options.endpoints, place, described.mounts.length > 0);
  checkPaths(mounts, endpoints, place);
  return { [SERVICE]: { ...described, ...hooks, endpoints } };
}

const SERVICE_OPTIONS: Readonly<Record<keyof FunctionServiceOptions, true>> = {
  name: true,
  description: true,
  metrics: true,
  requires: true,
  place: true,
  readyTimeout: true,
  processes: true,
  gpus: true,
  gpuMemory: true,
  packages: true,
  image: true,
  models: true,
  mounts: true,
  ready: true,
  setup: true,
  endpoints: true,
};

type Hooks = Pick<ServiceDefinition, "setup" | "ready">;

function checkHooks(options: Partial<Record<keyof Hooks, unknown>>, place: string): Hooks {
  const hooks: Partial<Record<keyof Hooks, () => never>> = {};
  for (const name of ["setup", "ready"] as const) {
    const hook = options[name];
    if (hook === undefined) {
      continue;
    }
    if (typeof hook !== "function") {
      const what = name === "ready" ? "a function that returns true or false" : "a function";
      throw new ServiceDefinitionError(place, `${name} must be ${what}`);
    }
    hooks[name] = hook as () => never;
  }
  return hooks;
}

function classDecorator(described: Omit<ServiceDefinition, "endpoints">, place: string) {
  return (target: unknown, context: { readonly kind: unknown } | undefined): void => {
    if (typeof target !== "function" || context?.kind !== "class") {
      throw new ServiceDefinitionError(
        place,
        "@service needs a class and standard decorators " +
          "(without experimentalDecorators in tsconfig.json); " +
          "a service of functions needs endpoints: service({ name, endpoints })",
      );
    }
    const mounts = [...described.mounts, ...classSockets(target.prototype, place)];
    const endpoints = classEndpoints(target.prototype, place, mounts.length > 0);
    checkPaths(mounts, endpoints, place);
    const definition: ServiceDefinition = { ...described, mounts, endpoints };
    Object.defineProperty(target, SERVICE, { value: definition });
  };
}

function functionEndpoints(endpoints: unknown, place: string, mayLack: boolean): ServiceEndpoint[] {
  if (typeof endpoints !== "object" || endpoints === null) {
    throw new ServiceDefinitionError(place, "endpoints must be an object of api() and task()");
  }
  const found = Object.entries(endpoints).map(([name, endpoint]) => {
    const definition = definitionOn(endpoint);
    if (definition?.run === undefined) {
      throw new ServiceDefinitionError(
        endpointPlace(place, name),
        "must be api(options, function) or task(options, function)",
      );
    }
    if (definition.options.name !== undefined) {
      const message = "an endpoint of a function is named by its key in endpoints; remove name";
      throw new ServiceDefinitionError(endpointPlace(place, name), message);
    }
    return { name, definition };
  });
  return checkEndpoints(found, place, mayLack);
}

/** The decorated methods of a class and its superclasses; an override replaces its original. */
function classEndpoints(prototype: object, place: string, mayLack: boolean): ServiceEndpoint[] {
  const found = [...membersOf(prototype)].flatMap(([method, value]) => {
    const definition = definitionOn(value);
    return definition === undefined
      ? []
      : [{ name: definition.options.name ?? method, definition, method }];
  });
  return checkEndpoints(found, place, mayLack);
}

/** The methods of a class and its superclasses that speak through WebSockets. */
function classSockets(prototype: object, place: string): ServiceMount[] {
  return [...membersOf(prototype)].flatMap(([method, value]) => {
    const definition = socketOn(value);
    const path = definition?.options.route ?? `/${method}`;
    const at = `${place}, @socket ${method}`;
    return definition === undefined ? [] : [checkMount(path, { [SOCKET]: definition }, at, method)];
  });
}

/** The members of a prototype and of those above it by their names; an override replaces its original. */
function membersOf(prototype: object): ReadonlyMap<string, unknown> {
  const members = new Map<string, unknown>();
  let current: object | null = prototype;
  while (current !== null && current !== Object.prototype) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(current))) {
      if (!members.has(name)) {
        members.set(name, value);
      }
    }
    current = Object.getPrototypeOf(current);
  }
  return members;
}

/** Refuses too many servers, two at a path, and sockets at paths at which something else would answer. */
function checkPaths(
  mounts: readonly ServiceMount[],
  endpoints: readonly ServiceEndpoint[],
  place: string,
): void {
  if (mounts.length > MAX_MOUNTS) {
    throw new ServiceDefinitionError(place, `mounts at most ${MAX_MOUNTS} servers`);
  }
  const taken = new Set<string>();
  for (const { serves, manifest } of mounts) {
    const { path } = manifest;
    if (taken.has(path)) {
      throw new ServiceDefinitionError(place, `two servers at ${path}`);
    }
    taken.add(path);
    const name = path.slice(1);
    const isReserved = RESERVED_NAMES.has(name);
    if ("socket" in serves && (isReserved || endpoints.some((each) => each.name === name))) {
      const holder = isReserved ? "the server" : "the endpoint of this name";
      throw new ServiceDefinitionError(
        place,
        `a socket cannot be at ${path}, which is for ${holder}; choose another path, such as /live`,
      );
    }
  }
}

function definitionOn(value: unknown): EndpointDefinition | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    return undefined;
  }
  return (value as Partial<Endpoint>)[ENDPOINT];
}

type Found = Omit<ServiceEndpoint, "options">;

/** `mayLack`: it may have none, because it has servers. */
function checkEndpoints(
  found: readonly Found[],
  place: string,
  mayLack: boolean,
): ServiceEndpoint[] {
  if (found.length === 0 && !mayLack) {
    throw new ServiceDefinitionError(
      place,
      "has no endpoints; mark at least one api or task, or mount a server",
    );
  }
  const names = new Set<string>();
  return found.map((endpoint) => {
    const { name, definition } = endpoint;
    const at = endpointPlace(place, name);
    checkEndpointName(name, at);
    if (names.has(name)) {
      throw new ServiceDefinitionError(place, `two endpoints named ${name}`);
    }
    names.add(name);
    refuseUnknown(definition.options, ENDPOINT_OPTIONS, at);
    return { ...endpoint, options: resolveOptions(definition.kind, definition.options, at) };
  });
}

const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const ENDPOINT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;

/** First path segments that the server uses itself, or may use later. */
const RESERVED_NAMES = new Set([
  ...["submit", "status", "get", "cancel", "retry", "events"],
  ...["schema", "schema.json", "docs", "docs.json", "openapi", "index", "assets"],
  ...["livez", "readyz", "healthz", "metrics", "federate", "api", "tessera"],
]);

function checkServiceName(name: unknown): string {
  const place = `service ${JSON.stringify(name) ?? "without a name"}`;
  if (typeof name !== "string" || !DNS_LABEL.test(name)) {
    throw new ServiceDefinitionError(
      place,
      "the name must be a DNS label: lower-case letters, digits and inner hyphens, at most 63",
    );
  }
  return place;
}

function checkEndpointName(name: unknown, at: string): void {
  if (typeof name === "string" && RESERVED_NAMES.has(name)) {
    throw new ServiceDefinitionError(at, "this name is reserved for the server; choose another");
  }
  if (typeof name !== "string" || !ENDPOINT_NAME.test(name)) {
    throw new ServiceDefinitionError(
      at,
      "the name must begin with a letter and have only letters, digits, _ and -, at most 63",
    );
  }
}

export function endpointPlace(place: string, name: unknown): string {
  return `${place}, endpoint ${JSON.stringify(name) ?? "without a name"}`;
}

/** The definition of an exported service; undefined for any other value. */
export function serviceDefinitionOf(exported: unknown): ServiceDefinition | undefined {
  if ((typeof exported !== "object" && typeof exported !== "function") || exported === null) {
    return undefined;
  }
  return (exported as Partial<Service>)[SERVICE];
}

/** The function of an endpoint, and whether it is an async generator. */
interface FoundFunction {
  readonly run: EndpointFunction<unknown, unknown>;
  readonly generates: boolean;
}

/** The function of an endpoint, bound to the instance of a service class. */
export function endpointFunction(
  { definition, method }: ServiceEndpoint,
  instance: unknown,
): FoundFunction {
  if (method === undefined) {
    const run = definition.run as EndpointFunction<unknown, unknown>;
    return { run, generates: isAsyncGenerator(run) };
  }
  const methods = instance as Record<string, EndpointFunction<unknown, unknown>>;
  return {
    run: (args, ctx) =>
      (methods[method] as EndpointFunction<unknown, unknown>).call(instance, args, ctx),
    generates: isAsyncGenerator(methods[method]),
  };
}
