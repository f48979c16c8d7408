/** The OpenAPI paths of the server itself. */
import type { JsonSchema } from "../../protocol/manifest.ts";
import { failures } from "./failures.ts";
import { componentReference } from "./hoist.ts";

const OBJECT = { "application/json": { schema: { type: "object" } } };

/** Health, which never needs a token, and descriptions, which need what calls need. */
export function serverPaths(authorization: boolean): { [path: string]: JsonSchema } {
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
