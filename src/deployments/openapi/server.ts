/** The paths of the server itself, which need no token. */
import type { JsonSchema } from "../../sdk/manifest.ts";
import { componentReference } from "./hoist.ts";

const OBJECT = { "application/json": { schema: { type: "object" } } };

/** Health and descriptions. */
export function serverPaths(): { [path: string]: JsonSchema } {
  return {
    "/livez": read("tessera.livez", "Whether the server is alive", { 200: ok("It is.") }),
    "/readyz": read("tessera.readyz", "Whether the server can take calls", {
      200: ok("It can."),
      503: {
        description: "Not yet, or not any more.",
        content: { "application/json": { schema: { $ref: componentReference("tessera.Error") } } },
      },
    }),
    "/schema.json": read("tessera.schema", "The endpoints with flat schemas", {
      200: { description: "As the Python clients of BentoML read it.", content: OBJECT },
    }),
    "/docs.json": read("tessera.docs", "This document", {
      200: { description: "OpenAPI 3.1.", content: OBJECT },
    }),
    "/metrics": read("tessera.metrics", "Metrics of the server", {
      200: {
        description: "In the text format of Prometheus.",
        content: { "text/plain": { schema: { type: "string" } } },
      },
    }),
  };
}

function read(operationId: string, summary: string, responses: JsonSchema): JsonSchema {
  return { get: { operationId, tags: ["the server"], summary, security: [], responses } };
}

function ok(description: string): JsonSchema {
  return { description };
}
