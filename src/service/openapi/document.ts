/**
 * `/docs.json`: generates the OpenAPI 3.1 description of a deployment's own paths
 * from the manifest of its service. The JSON Schemas of the service are copied (3.1
 * uses the same dialect), with adjusted references.
 */
import type { JsonSchema, ServiceManifest } from "../../protocol/manifest.ts";
import { SCHEMAS } from "./components.ts";
import { endpointSchemas } from "./endpoint.ts";
import { failureComponents } from "./failures.ts";
import { PARAMETERS } from "./parameters.ts";
import { endpointPaths } from "./paths.ts";
import { serverPaths } from "./server.ts";

interface OpenApiOptions {
  /** The address of the deployment. Default: that of the document. */
  readonly serverUrl?: string;
  /** Version of the described API. */
  readonly version: string;
  /** True when calls need a bearer token. */
  readonly authorization: boolean;
}

/** Describes the data plane of a service. */
export function openApiDocument(manifest: ServiceManifest, options: OpenApiOptions): JsonSchema {
  const { serverUrl = "/", version, authorization } = options;
  const { endpoints } = manifest;
  return {
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
      { name: "the server", description: "Health and descriptions." },
    ],
    ...(authorization ? { security: [{ token: [] }] } : {}),
    paths: Object.assign(
      {},
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
}

const TOKEN = {
  type: "http",
  scheme: "bearer",
  description: "A token with access to this deployment.",
};
