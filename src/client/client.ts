/**
 * The client of a deployment: its endpoints are members.
 *
 *     import { createClient } from "tessera/client";
 *     import type service from "./service.ts";
 *
 *     const client = createClient<typeof service>({ url: "http://localhost:3000" });
 *     const summary = await client.summarize({ text });
 */
import { type ClientOptions, Connection } from "./connection.ts";
import { createEndpoint, type EndpointFacts } from "./endpoint.ts";
import type { AnyService, DeploymentClient } from "./typing.ts";

export interface DeploymentClientOptions extends ClientOptions {
  /** What a generated client knows of the endpoints; without it, their answers tell. */
  readonly endpoints?: Readonly<Record<string, EndpointFacts>>;
}

const ENDPOINT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
/** Asked of any object by the language itself, and no endpoint; `createEndpoint` takes every name. */
const OF_OBJECTS = new Set(["then", "toJSON", "constructor"]);

/** Connects to nothing yet: calls do. Throws a `TypeError` on options that make no sense. */
export function createClient<Service = AnyService>(
  options: DeploymentClientOptions,
): DeploymentClient<Service> {
  const connection = new Connection(options);
  const made = new Map<string, unknown>();
  const endpoint = (name: string): unknown => {
    if (!made.has(name)) {
      made.set(name, createEndpoint(connection, name, options.endpoints?.[name]));
    }
    return made.get(name);
  };
  const client = new Proxy(Object.create(null) as object, {
    get: (_target, name) =>
      typeof name === "string" && ENDPOINT_NAME.test(name) && !OF_OBJECTS.has(name)
        ? endpoint(name)
        : undefined,
  });
  return client as DeploymentClient<Service>;
}
