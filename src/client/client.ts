/**
 * The client of a deployment: its endpoints are members.
 *
 *     import { createClient } from "tessera-platform/client";
 *     import type service from "./service.ts";
 *
 *     const client = createClient<typeof service>({ url: "http://localhost:3000" });
 *     const summary = await client.summarize({ text });
 */
import { type ClientOptions, Connection } from "./connection.ts";
import { createEndpoint, type EndpointFacts } from "./endpoint.ts";
import type { AnyService, DeploymentClient } from "./typing.ts";

export interface DeploymentClientOptions extends ClientOptions {
  /** Facts about the endpoints, from a generated client. Default: the responses tell. */
  readonly endpoints?: Readonly<Record<string, EndpointFacts>>;
}

const ENDPOINT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
/**
 * Properties that the language itself reads from any object. They are not
 * endpoints; any other name is.
 */
const OF_OBJECTS = new Set(["then", "toJSON", "constructor"]);

/** Of an endpoint, or of a mounted server, whose name is its path. */
function isName(name: string): boolean {
  return name.startsWith("/") || (ENDPOINT_NAME.test(name) && !OF_OBJECTS.has(name));
}

/**
 * Creates a client of a deployment. Only calls open connections. Throws a
 * `TypeError` for invalid options.
 */
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
    get: (_target, name) => (typeof name === "string" && isName(name) ? endpoint(name) : undefined),
  });
  return client as DeploymentClient<Service>;
}
