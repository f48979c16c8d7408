/**
 * `/docs.json`: generates the OpenAPI 3.1 description of a deployment's own paths
 * from the manifest of its service. The JSON Schemas of the service are copied (3.1
 * uses the same dialect), with adjusted references.
 */
import type { JsonSchema, ServiceManifest } from "../../protocol/manifest.ts";
import { mountTask } from "../mounts.ts";
import { SCHEMAS } from "./components.ts";
import { endpointSchemas } from "./endpoint.ts";
import { failureComponents, failures } from "./failures.ts";
import { componentReference } from "./hoist.ts";
import { type MountDocument, withMounted } from "./mounted.ts";
import { PARAMETERS } from "./parameters.ts";
import { endpointPaths, queuePaths, tagOfQueue } from "./paths.ts";

interface OpenApiOptions {
  /** The address of the deployment. Default: that of the document. */
  readonly serverUrl?: string;
  /** Version of the described API. */
  readonly version: string;
  /** True when calls need a bearer token. */
  readonly authorization: boolean;
  /** What its mounted servers say of themselves. Default: they were not asked. */
  readonly documents?: readonly MountDocument[];
}

/** Describes the data plane of a service. */
export function openApiDocument(manifest: ServiceManifest, options: OpenApiOptions): JsonSchema {
  const { serverUrl = "/", version, authorization, documents = [] } = options;
  const { endpoints, mounts = [] } = manifest;
  const queues = mounts.flatMap((mount) => mountTask(mount) ?? []);
  const own = {
    openapi: "3.1.0",
    info: {
      title: manifest.name,
      version,
      ...(manifest.description ? { description: manifest.description } : {}),
    },
    servers: [{ url: serverUrl }],
    tags: [
      ...endpoints.map(({ name, description }) => ({
        name,
        ...(description ? { description } : {}),
      })),
      ...queues.map(({ name }) => ({
        name: tagOfQueue(name),
        description: "Requests to the server as tasks.",
      })),
      { name: "the server", description: "Health and descriptions." },
    ],
    ...(authorization ? { security: [{ token: [] }] } : {}),
    paths: Object.assign(
      {},
      ...queues.map((queue, index) => queuePaths(queue, index + 1, authorization)),
      ...endpoints.map((endpoint) => endpointPaths(endpoint, authorization)),
      serverPaths(authorization),
    ),
    components: {
      schemas: Object.assign({}, ...endpoints.map(endpointSchemas), SCHEMAS),
      parameters: PARAMETERS,
      responses: failureComponents(authorization),
      ...(authorization ? { securitySchemes: { token: TOKEN } } : {}),
    },
  };
  return withMounted(own, manifest, documents, authorization);
}

const TOKEN = {
  type: "http",
  scheme: "bearer",
  description: "A token with access to this deployment.",
};

const OBJECT = { "application/json": { schema: { type: "object" } } };

/** The paths of the server itself: health, which never needs a token, and descriptions, which need what calls need. */
function serverPaths(authorization: boolean): { [path: string]: JsonSchema } {
  const described = (description: string) => ({
    200: { description, content: OBJECT },
    ...failures([], authorization),
  });
  return {
    "/livez": health("tessera.livez", "Whether the server is alive", { 200: ok("It is.") }),
    "/readyz": health("tessera.readyz", "Whether the server can take calls", {
      200: ok("It can."),
      503: {
        description: "Not yet, or not any more.",
        content: { "application/json": { schema: { $ref: componentReference("tessera.Error") } } },
      },
    }),
    "/schema.json": read(
      "tessera.schema",
      "The endpoints with flat schemas",
      described("As the Python clients of BentoML read it."),
    ),
    "/docs.json": read("tessera.docs", "This document", described("OpenAPI 3.1.")),
  };
}

function health(operationId: string, summary: string, responses: JsonSchema): JsonSchema {
  const { get } = read(operationId, summary, responses);
  return { get: { ...get, security: [] } };
}

function read(operationId: string, summary: string, responses: JsonSchema) {
  return { get: { operationId, tags: ["the server"], summary, responses } };
}

function ok(description: string): JsonSchema {
  return { description };
}
