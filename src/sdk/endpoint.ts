/**
 * `api` and `task` define endpoints. With a function they return an endpoint of
 * the function form; without one they are decorators for methods of a service
 * class.
 */
import type { BatchOptions } from "./batch.ts";
import type { BatchContext, TaskContext } from "./context.ts";
import { ServiceDefinitionError } from "./errors.ts";
import type { MetricDeclarations, MetricsOf, NoMetrics } from "./metrics.ts";
import type { EndpointKind, RunOptions } from "./options.ts";
import type {
  Answered,
  Given,
  Input,
  InputSchema,
  Output,
  OutputSchema,
  Returnable,
} from "./schema.ts";
import { socketOn } from "./sockets.ts";
import { ENDPOINT, ENDPOINT_METHODS } from "./symbols.ts";

// biome-ignore lint/complexity/noBannedTypes: a record with no members is exactly what is meant
type NoArguments = {};

/** The schemas of an endpoint, and how it runs. */
export interface EndpointOptions<
  In extends InputSchema = InputSchema,
  Out extends OutputSchema = OutputSchema,
> extends RunOptions {
  /**
   * The schema of the arguments: a Standard Schema of an object, or an object with
   * one schema per argument. `file()` is the schema of a file. Default: no arguments.
   */
  readonly input?: In;
  /**
   * The schema of the result: a Standard Schema, or `file()`. For a function that streams,
   * `stream(schema)` with that of a piece. Default: any JSON value.
   */
  readonly output?: Out;
}

/** How calls of an endpoint are put together; its function then takes several at once. */
export interface Batched {
  readonly batch: BatchOptions;
}

/** Options of a decorated method. */
export interface MethodOptions<
  In extends InputSchema = InputSchema,
  Out extends OutputSchema = OutputSchema,
> extends EndpointOptions<In, Out> {
  /** The endpoint's name. Default: the name of the method. */
  readonly name?: string;
}

/** The options of an endpoint by their names. */
export const ENDPOINT_OPTIONS: Readonly<Record<keyof (MethodOptions & Batched), true>> = {
  name: true,
  input: true,
  output: true,
  batch: true,
  description: true,
  timeout: true,
  abortGrace: true,
  idempotent: true,
  concurrency: true,
  retention: true,
  retries: true,
  queueLimit: true,
  maxJson: true,
  priority: true,
  concurrencyPerKey: true,
  ratePerKey: true,
  fair: true,
  headers: true,
  requires: true,
  place: true,
};

/** The function of an endpoint. It may return a `Response` of the Fetch API, which is sent as it is. */
export type EndpointFunction<
  Arguments,
  Returned,
  Declared extends MetricDeclarations = NoMetrics,
> = (args: Arguments, ctx: TaskContext<Declared>) => Returned | Promise<Returned>;

/**
 * The function of an endpoint with `batch`: takes the arguments of several calls, and returns
 * a result for each, in their order. An `Error` in the list fails its own call only.
 */
export type BatchFunction<Arguments, Returned, Declared extends MetricDeclarations = NoMetrics> = (
  items: readonly Arguments[],
  ctx: BatchContext<Declared>,
) => readonly (Returned | Error)[] | Promise<readonly (Returned | Error)[]>;

/** The definition that `api` or `task` makes; `service` and the worker read it. */
export interface EndpointDefinition {
  readonly kind: EndpointKind;
  readonly options: MethodOptions & Partial<Batched>;
  /** Undefined for a method, which is called on the service's instance. */
  readonly run?: EndpointFunction<never, unknown>;
}

/** The types of an endpoint as its callers see it. */
export interface CallTypes<Kind = EndpointKind, Sent = unknown, Received = unknown> {
  readonly kind: Kind;
  /** The arguments before validation: those with a default may be left out. */
  readonly arguments: Sent;
  /** The result after validation, before it becomes JSON. */
  readonly result: Received;
}

/** An endpoint of the function form: a value for `service({ endpoints })`. */
export interface Endpoint<
  Arguments = never,
  Returned = unknown,
  Call = CallTypes,
  Declared extends MetricDeclarations = never,
> {
  readonly [ENDPOINT]: EndpointDefinition;
  /** For the type checker only; undefined at run time. */
  readonly types?: {
    readonly arguments: (args: Arguments) => void;
    readonly result: Returned;
    readonly call: Call;
    readonly metrics: (counted: MetricsOf<Declared>) => void;
  };
}

/** The argument type of an endpoint of the function form: `ArgumentsOf<typeof endpoint>`. */
export type ArgumentsOf<E> = E extends Endpoint<infer Arguments, unknown> ? Arguments : never;

/** The return type of an endpoint of the function form: `ResultOf<typeof endpoint>`. */
export type ResultOf<E> = E extends Endpoint<never, infer Returned> ? Returned : never;

/**
 * A standard (TC39) decorator that accepts only methods that match the schemas.
 * `@service` checks the metrics of their context.
 */
export type EndpointDecorator<Arguments, Returned> = <
  This,
  Method extends (
    this: This,
    args: Arguments,
    ctx: TaskContext<never>,
  ) => Returned | Promise<Returned>,
>(
  method: Method,
  context: ClassMethodDecoratorContext<This, Method>,
) => void;

/** As `EndpointDecorator`, for methods that take several calls at once. */
export type BatchDecorator<Arguments, Returned> = <
  This,
  Method extends (
    this: This,
    items: readonly Arguments[],
    ctx: BatchContext<never>,
  ) => readonly (Returned | Error)[] | Promise<readonly (Returned | Error)[]>,
>(
  method: Method,
  context: ClassMethodDecoratorContext<This, Method>,
) => void;

/**
 * Defines an endpoint that answers in the call. Throws a `ServiceDefinitionError`
 * for wrong parameters.
 */
export function api<
  In extends InputSchema = NoArguments,
  Out extends OutputSchema = undefined,
  Declared extends MetricDeclarations = NoMetrics,
>(
  options: EndpointOptions<In, Out> & Batched,
  run: BatchFunction<Input<In>, Output<Out>, Declared>,
): Endpoint<Input<In>, Output<Out>, CallTypes<"api", Given<In>, Answered<Out>>, Declared>;
export function api<In extends InputSchema = NoArguments, Out extends OutputSchema = undefined>(
  options: MethodOptions<In, Out> & Batched,
): BatchDecorator<Input<In>, Output<Out>>;
export function api<
  In extends InputSchema = NoArguments,
  Out extends OutputSchema = undefined,
  Declared extends MetricDeclarations = NoMetrics,
>(
  options: EndpointOptions<In, Out>,
  run: EndpointFunction<Input<In>, Returnable<Out>, Declared>,
): Endpoint<Input<In>, Output<Out>, CallTypes<"api", Given<In>, Answered<Out>>, Declared>;
export function api<In extends InputSchema = NoArguments, Out extends OutputSchema = undefined>(
  options: MethodOptions<In, Out>,
): EndpointDecorator<Input<In>, Returnable<Out>>;
export function api(options: MethodOptions, run?: (...given: never[]) => unknown): unknown {
  return define("api", options, run);
}

/**
 * Defines an endpoint whose calls are stored in the queue and run when a worker is
 * free. Throws a `ServiceDefinitionError` for wrong parameters.
 */
export function task<
  In extends InputSchema = NoArguments,
  Out extends OutputSchema = undefined,
  Declared extends MetricDeclarations = NoMetrics,
>(
  options: EndpointOptions<In, Out> & Batched,
  run: BatchFunction<Input<In>, Output<Out>, Declared>,
): Endpoint<Input<In>, Output<Out>, CallTypes<"task", Given<In>, Answered<Out>>, Declared>;
export function task<In extends InputSchema = NoArguments, Out extends OutputSchema = undefined>(
  options: MethodOptions<In, Out> & Batched,
): BatchDecorator<Input<In>, Output<Out>>;
export function task<
  In extends InputSchema = NoArguments,
  Out extends OutputSchema = undefined,
  Declared extends MetricDeclarations = NoMetrics,
>(
  options: EndpointOptions<In, Out>,
  run: EndpointFunction<Input<In>, Returnable<Out>, Declared>,
): Endpoint<Input<In>, Output<Out>, CallTypes<"task", Given<In>, Answered<Out>>, Declared>;
export function task<In extends InputSchema = NoArguments, Out extends OutputSchema = undefined>(
  options: MethodOptions<In, Out>,
): EndpointDecorator<Input<In>, Returnable<Out>>;
export function task(options: MethodOptions, run?: (...given: never[]) => unknown): unknown {
  return define("task", options, run);
}

function define(
  kind: EndpointKind,
  options: MethodOptions,
  run: ((...given: never[]) => unknown) | undefined,
): unknown {
  if (typeof options !== "object" || options === null) {
    throw new ServiceDefinitionError(`${kind}()`, "the first parameter must be an options object");
  }
  if (run === undefined) {
    return decorator({ kind, options });
  }
  if (typeof run !== "function") {
    throw new ServiceDefinitionError(`${kind}()`, "the second parameter must be a function");
  }
  return { [ENDPOINT]: { kind, options, run } };
}

/** The used part of a decorator's context. Untyped code may call the decorator with anything. */
interface MethodContext {
  readonly kind: unknown;
  readonly name: string | symbol;
  readonly static: boolean;
  readonly private: boolean;
  readonly metadata?: Record<PropertyKey, unknown>;
}

function decorator(definition: EndpointDefinition) {
  return (method: unknown, context: MethodContext): void => {
    const place = `@${definition.kind}`;
    if (typeof context !== "object" || context === null || context.kind === undefined) {
      throw new ServiceDefinitionError(
        place,
        "needs standard decorators; remove experimentalDecorators from tsconfig.json",
      );
    }
    const at = `${place} ${String(context.name)}`;
    if (
      context.kind !== "method" ||
      typeof method !== "function" ||
      context.static ||
      context.private ||
      typeof context.name === "symbol"
    ) {
      throw new ServiceDefinitionError(at, "can only be put on a public method of the instance");
    }
    if (socketOn(method) !== undefined) {
      throw new ServiceDefinitionError(
        at,
        "speaks through a WebSocket: a method is one or the other",
      );
    }
    if (isKnown(context) || Object.hasOwn(method, ENDPOINT)) {
      throw new ServiceDefinitionError(
        at,
        `two endpoints named ${context.name}; one method and one decorator is enough`,
      );
    }
    Object.defineProperty(method, ENDPOINT, { value: definition });
  };
}

/**
 * True when a method of this name was decorated before. Of two methods with one
 * name the class keeps only the second, so its metadata records the names.
 */
function isKnown({ metadata, name }: MethodContext): boolean {
  if (metadata === undefined) {
    return false;
  }
  if (!Object.hasOwn(metadata, ENDPOINT_METHODS)) {
    metadata[ENDPOINT_METHODS] = new Set<PropertyKey>();
  }
  const methods = metadata[ENDPOINT_METHODS] as Set<PropertyKey>;
  const known = methods.has(name);
  methods.add(name);
  return known;
}
