/** Turns the service that a module exports into its manifest and its executable endpoints. */

import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { type Arguments, describeArguments } from "./arguments.ts";
import { resolveBatch } from "./batch.ts";
import type { SetupContext } from "./context.ts";
import type { EndpointFunction } from "./endpoint.ts";
import { ServiceDefinitionError } from "./errors.ts";
import type { ServiceMount } from "./mounts.ts";
import { describeResult, type ResultDescription } from "./result.ts";
import {
  endpointFunction,
  endpointPlace,
  type ServiceClass,
  type ServiceDefinition,
  type ServiceEndpoint,
} from "./service.ts";
import type { SocketFunction } from "./sockets.ts";

/** An endpoint ready to be called. */
export interface Executable {
  readonly manifest: EndpointManifest;
  readonly arguments: Arguments;
  readonly result: ResultDescription;
  readonly run: EndpointFunction<unknown, unknown>;
}

/** A service that is ready to take calls. */
export interface ReadyService {
  readonly manifest: ServiceManifest;
  readonly endpoints: ReadonlyMap<string, Executable>;
  /** What its author asks whether it may take calls; undefined: it may. */
  readonly ready: (() => unknown) | undefined;
  readonly mounts: readonly ServiceMount[];
}

/**
 * Constructs a service class and awaits its `setup`, then asks every schema for
 * its JSON Schema. Rejects with a `ServiceDefinitionError`, or with the error of
 * the constructor or of `setup`. `context` is the parameter of `setup`.
 */
export async function readyService(
  exported: unknown,
  definition: ServiceDefinition,
  context: SetupContext = { metrics: {} },
): Promise<ReadyService> {
  const instance = typeof exported === "function" ? new (exported as ServiceClass)() : undefined;
  const setup = definition.setup ?? hookOf(instance, definition, "setup");
  await setup?.(context);
  const endpoints = new Map<string, Executable>();
  for (const endpoint of definition.endpoints) {
    const described = await describeEndpoint(definition.name, endpoint, instance);
    endpoints.set(endpoint.name, described);
  }
  const { name, description, metrics, mounts, requires, place } = definition;
  const { readyTimeoutMs, processes, gpus, gpuMemoryMib, packages, image, models } = definition;
  return {
    endpoints,
    mounts: mounts.map((mount) => boundMount(mount, instance)),
    ready: definition.ready ?? hookOf(instance, definition, "ready"),
    manifest: {
      name,
      ...(description !== undefined && { description }),
      ...(requires !== undefined && { requires }),
      ...(readyTimeoutMs !== undefined && { readyTimeoutMs }),
      ...(processes !== undefined && { processes }),
      ...(gpus !== undefined && { gpus }),
      ...(gpuMemoryMib !== undefined && { gpuMemoryMib }),
      ...(packages !== undefined && { packages }),
      ...(image !== undefined && { image }),
      ...(models !== undefined && { models }),
      ...(place !== undefined && { place }),
      endpoints: [...endpoints.values()].map(({ manifest }) => manifest),
      ...(mounts.length > 0 && { mounts: mounts.map(({ manifest }) => manifest) }),
      ...(metrics.length > 0 && { metrics }),
    },
  };
}

/** A method of a service class that the worker calls; undefined where it has none, or an endpoint. */
function hookOf(
  instance: object | undefined,
  { endpoints }: ServiceDefinition,
  name: "setup" | "ready",
): ((context?: SetupContext) => unknown) | undefined {
  const hook = (instance as Partial<Record<typeof name, unknown>> | undefined)?.[name];
  return typeof hook === "function" && !endpoints.some(({ method }) => method === name)
    ? hook.bind(instance)
    : undefined;
}

/** A mounted server; a method with a WebSocket is bound to its instance. */
function boundMount(mount: ServiceMount, instance: object | undefined): ServiceMount {
  const { serves } = mount;
  if (!("socket" in serves) || serves.socket.method === undefined) {
    return mount;
  }
  const { method } = serves.socket;
  const run: SocketFunction = (ctx) => (instance as Record<string, SocketFunction>)[method]?.(ctx);
  return { ...mount, serves: { socket: { ...serves.socket, run } } };
}

async function describeEndpoint(
  serviceName: string,
  endpoint: ServiceEndpoint,
  instance: unknown,
): Promise<Executable> {
  const { name, definition, options } = endpoint;
  const { run, generates } = endpointFunction(endpoint, instance);
  try {
    const described = await describeArguments(definition.options.input);
    const result = await describeResult(definition.options.output, generates);
    const { batch } = definition.options;
    if (batch && result.stream !== undefined) {
      throw new Error("a function with batch returns a list: it cannot stream");
    }
    const manifest: EndpointManifest = {
      name,
      kind: definition.kind,
      input: described.jsonSchema,
      files: described.files,
      output: result.jsonSchema,
      ...(result.file !== undefined && { outputFile: result.file }),
      ...(result.quoted && { quoted: result.quoted }),
      ...(result.stream !== undefined && { stream: result.stream }),
      ...(batch && { batch: resolveBatch(batch, endpointPlace(`service "${serviceName}"`, name)) }),
      ...options,
    };
    return { manifest, arguments: described, result, run };
  } catch (err) {
    const place = endpointPlace(`service "${serviceName}"`, name);
    throw new ServiceDefinitionError(place, err instanceof Error ? err.message : String(err), {
      cause: err,
    });
  }
}
