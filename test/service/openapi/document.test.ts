import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { problem } from "../../../src/errors.ts";
import type { JsonSchema, ServiceManifest } from "../../../src/protocol/manifest.ts";
import { httpStatus } from "../../../src/server/http/error-status.ts";
import { openApiDocument } from "../../../src/service/openapi/document.ts";
import { exampleOf } from "../../../src/service/openapi/example.ts";
import { reasonsByStatus } from "../../../src/service/openapi/failures.ts";
import { endpoint, manifestOf, takes } from "../manifests.ts";

const text = { type: "string" };
const photo = { type: "string", format: "binary", contentMediaType: "image/png" };

const SERVICE = manifestOf(
  endpoint({
    name: "summarize",
    input: {
      type: "object",
      properties: { text, sentences: { type: "integer", minimum: 1, default: 3 } },
      required: ["text"],
    },
    output: text,
  }),
  endpoint({
    name: "batch",
    kind: "task",
    input: {
      type: "object",
      properties: { tree: { $ref: "#/$defs/Tree" } },
      $defs: { Tree: { type: "object", properties: { next: { $ref: "#/$defs/Tree" } } } },
    },
    output: { type: "array", items: text },
  }),
  endpoint({
    name: "classify",
    input: {
      type: "object",
      properties: { photo, papers: { type: "array", items: photo }, labels: { type: "array" } },
      required: ["photo"],
    },
    files: {
      photo: { required: true, array: false, contentType: "image/*" },
      papers: { required: false, array: true },
    },
    outputFile: { contentType: "image/png" },
  }),
  endpoint({ name: "tell", output: text, stream: { pieces: "text" } }),
  endpoint({ name: "rows", output: { type: "integer" }, stream: { pieces: "json" } }),
  endpoint({ name: "later", kind: "task", output: text, stream: { pieces: "text" } }),
  endpoint({
    name: "speak",
    stream: { pieces: "bytes" },
    outputFile: { contentType: "audio/mpeg" },
  }),
);

/** The member at a path, for expectations deep within the document. */
function at(document: JsonSchema, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>((value, key) => (value as JsonSchema | undefined)?.[key], document);
}

function describeService(manifest: ServiceManifest, authorization = false): JsonSchema {
  return openApiDocument(manifest, { version: "1.0.0", authorization });
}

const document = describeService(SERVICE);

describe("the document at /docs.json", () => {
  it.each([false, true])("is valid OpenAPI 3.1 (tokens required: %s)", async (authorization) => {
    const { valid, errors } = await new Validator().validate(
      structuredClone(describeService(SERVICE, authorization)) as Record<string, unknown>,
    );
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
  });

  it("describes every path of an endpoint by its kind", () => {
    expect(Object.keys(document.paths as object)).toEqual([
      "/summarize",
      ...[
        "/batch",
        "/batch/submit",
        "/batch/status",
        "/batch/get",
        "/batch/arguments",
        "/batch/cancel",
      ],
      ...["/batch/retry", "/batch/access", "/batch/events"],
      ...[
        "/classify",
        "/tell",
        "/rows",
        "/later",
        ...["submit", "status", "get", "arguments", "cancel", "retry"].map(
          (verb) => `/later/${verb}`,
        ),
        ...["/later/access", "/later/events", "/later/stream"],
        "/speak",
      ],
      ...["/livez", "/readyz", "/schema.json", "/docs.json"],
    ]);
    expect(Object.keys(at(document, "paths", "/batch/cancel") as object)).toEqual(["post", "put"]);
    expect(Object.keys(at(document, "paths", "/batch/retry") as object)).toEqual(["put", "post"]);
  });

  it("gives every operation an id of its own", () => {
    const ids = Object.values(document.paths as JsonSchema).flatMap((path) =>
      Object.values(path as JsonSchema).map((operation) =>
        at(operation as JsonSchema, "operationId"),
      ),
    );
    expect(ids.every((id) => typeof id === "string")).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("has no reference that leads nowhere", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)];
    expect(references.length).toBeGreaterThan(20);
    for (const [, path] of references) {
      expect(at(document, ...(path ?? "").split("/")), path).toBeDefined();
    }
  });

  it("says what a result is sent as: text, JSON or the file's own type", () => {
    const contentOf = (...path: string[]) =>
      Object.keys(at(document, "paths", ...path, "responses", 200, "content") as object);
    expect(contentOf("/summarize", "post")).toEqual(["text/plain"]);
    expect(contentOf("/batch/get", "get")).toEqual(["application/json"]);
    expect(contentOf("/classify", "post")).toEqual(["image/png"]);
    expect(contentOf("/batch/events", "get")).toEqual(["text/event-stream"]);
  });

  it("describes a form for files, with the content type of every part", () => {
    const content = at(document, "paths", "/classify", "post", "requestBody", "content");
    expect(Object.keys(content as object)).toEqual(["multipart/form-data", "application/json"]);
    expect(at(content as JsonSchema, "multipart/form-data", "encoding")).toEqual({
      photo: { contentType: "image/*" },
      papers: { contentType: "*/*" },
      labels: { contentType: "application/json" },
    });
    expect(at(document, "components", "schemas", "classify.form", "properties", "photo")).toEqual(
      photo,
    );
    expect(
      at(document, "components", "schemas", "classify.input", "properties", "photo"),
    ).toMatchObject({
      type: "string",
      pattern: expect.stringMatching(/^\^data:image\//),
    });
  });

  it("answers a submit with 202 and where the status is", () => {
    const responses = at(document, "paths", "/batch/submit", "post", "responses") as JsonSchema;
    expect(at(responses, 202, "headers", "Location")).toBeDefined();
    expect(at(responses, 200)).toBeDefined();
  });

  it("asks for a token only when tokens are required, and never for health", () => {
    const secured = describeService(SERVICE, true);
    expect(document.security).toBeUndefined();
    expect(at(document, "components", "responses", "Error401")).toBeUndefined();
    expect(secured.security).toEqual([{ token: [] }]);
    expect(at(secured, "paths", "/batch/get", "get", "responses", 401)).toBeDefined();
    for (const path of ["/livez", "/readyz"]) {
      expect(at(secured, "paths", path, "get", "security"), path).toEqual([]);
    }
    for (const path of ["/schema.json", "/docs.json"]) {
      expect(at(secured, "paths", path, "get", "security"), path).toBeUndefined();
      expect(at(secured, "paths", path, "get", "responses", 401), path).toBeDefined();
      expect(at(document, "paths", path, "get", "responses", 401), path).toBeUndefined();
    }
  });

  it("names with each status the reasons that answer with it", () => {
    for (const [status, reasons] of reasonsByStatus()) {
      for (const reason of reasons) {
        expect(httpStatus(problem(reason, "")), reason).toBe(status);
      }
    }
    expect(at(document, "paths", "/batch/cancel", "post", "responses", 409)).toEqual({
      $ref: "#/components/responses/Error409",
      description: expect.stringMatching(/Reasons: TASK_ALREADY_STARTED, TASK_FINISHED\.$/),
    });
  });

  it("moves the references within a schema to where the schema stands", () => {
    const tree = {
      type: "object",
      properties: { default: { $ref: "#/$defs/Tree" }, again: { $ref: "#" } },
      default: { $ref: "not a reference" },
    };
    const described = describeService(takes({ $ref: "#/$defs/Tree" }, { Tree: tree }));
    const input = at(described, "components", "schemas", "run.input") as JsonSchema;
    const base = "#/components/schemas/run.input";
    expect(at(input, "properties", "value")).toEqual({ $ref: `${base}.Tree` });
    expect(at(described, "components", "schemas", "run.input.Tree")).toEqual({
      type: "object",
      properties: { default: { $ref: `${base}.Tree` }, again: { $ref: base } },
      default: { $ref: "not a reference" },
    });
  });
});

describe("an endpoint that streams", () => {
  const call = (name: string) => at(document, "paths", `/${name}`, "post") as JsonSchema;
  const types = (name: string) =>
    Object.keys(at(call(name), "responses", "200", "content") as JsonSchema);

  it("names the forms of its result, the default first", () => {
    const framed = ["application/x-ndjson", "application/jsonl", "text/event-stream"];
    expect(types("tell")).toEqual(["text/plain", ...framed, "application/json"]);
    expect(types("rows")).toEqual([...framed, "application/json"]);
    expect(types("speak")).toEqual(["audio/mpeg", ...framed]);
    expect(call("tell").summary).toBe("Call tell and stream its result");
  });

  it("has a path for the pieces of its tasks, and gives the whole by its result", () => {
    const stream = at(document, "paths", "/later/stream", "get") as JsonSchema;
    const framed = ["application/x-ndjson", "application/jsonl", "text/event-stream"];
    const content = at(stream, "responses", "200", "content") as JsonSchema;
    expect(Object.keys(content)).toEqual(["text/plain", ...framed]);
    expect(at(stream, "responses", "409")).toBeDefined();
    expect(types("later")).toEqual(["text/plain"]);
    expect(at(document, "paths", "/batch/stream")).toBeUndefined();
  });

  it("has a list of its values as the whole", () => {
    const whole = ["responses", "200", "content", "application/json", "schema"];
    expect(at(call("rows"), ...whole)).toEqual({
      type: "array",
      items: { $ref: "#/components/schemas/rows.output" },
    });
  });
});

describe("an example", () => {
  it("is the schema's own where it has one", () => {
    expect(exampleOf({ type: "string", default: "b", examples: ["a"] })).toBe("a");
    expect(exampleOf({ type: "string", default: "b" })).toBe("b");
    expect(exampleOf({ enum: ["x", "y"] })).toBe("x");
  });

  it("lies within the bounds of its schema", () => {
    expect(exampleOf({ type: "integer", minimum: 7 })).toBe(7);
    expect(exampleOf({ type: "integer", exclusiveMinimum: 7 })).toBe(8);
    expect(exampleOf({ type: "number", maximum: -1 })).toBe(-1);
    expect(exampleOf({ type: "integer", minimum: 4, multipleOf: 5 })).toBe(5);
    expect(exampleOf({ type: "integer", minimum: -10, exclusiveMaximum: 0 })).toBe(-1);
    expect(exampleOf({ type: "number", exclusiveMinimum: 0, maximum: 0.2 })).toBe(0.2);
    expect(exampleOf({ type: "number", exclusiveMinimum: 2 })).toBe(2.5);
    expect(exampleOf({ type: "integer", maximum: 12, minimum: 9, multipleOf: 4 })).toBe(12);
    expect(exampleOf({ type: "string", minLength: 6 })).toHaveLength(6);
    expect(exampleOf({ type: "string", maxLength: 2 })).toHaveLength(2);
    expect(exampleOf({ type: "array", items: { type: "boolean" }, minItems: 2 })).toEqual([
      true,
      true,
    ]);
  });

  it("is a plain value within wide bounds, not their end", () => {
    const { MIN_SAFE_INTEGER: minimum, MAX_SAFE_INTEGER: maximum } = Number;
    expect(exampleOf({ type: "integer", minimum, maximum })).toBe(1);
    expect(exampleOf({ type: "integer", minimum: 0, maximum })).toBe(1);
    expect(exampleOf({ type: "number", minimum: -1e9 })).toBe(0.5);
    const count = { type: "integer", minimum, maximum };
    expect(exampleOf({ type: "object", additionalProperties: count })).toEqual({ key: 1 });
    expect(exampleOf({ type: "string", format: "cidrv4" })).toBe("192.0.2.0/24");
  });

  it("is a text as its name suggests, unless its schema says otherwise", () => {
    const properties = {
      city: { type: "string" },
      userEmails: { type: "array", items: { type: "string" } },
      constructor: { type: "string" },
      url: { type: "string", maxLength: 4 },
      name: { type: "string", pattern: "^t" },
      message: { type: "string", examples: ["hi"] },
    };
    expect(exampleOf({ type: "object", properties })).toEqual({
      city: "Lisbon",
      userEmails: ["someone@example.com"],
      constructor: "text",
      url: "text",
      name: "text",
      message: "hi",
    });
  });

  it("is of the first alternative, and has the items of a tuple", () => {
    const circle = { properties: { radius: { type: "number", minimum: 1 } } };
    const square = { properties: { side: { type: "number" } } };
    expect(exampleOf({ type: "object", oneOf: [circle, square] })).toEqual({ radius: 1 });
    expect(exampleOf({ anyOf: [{ type: "null" }, { type: "boolean" }] })).toBe(true);
    expect(
      exampleOf({ type: "array", prefixItems: [{ type: "boolean" }, { type: "integer" }] }),
    ).toEqual([true, 1]);
  });

  it("is left out of the document where its endpoint would refuse it", () => {
    const input = (code: JsonSchema): JsonSchema => ({
      type: "object",
      properties: { code },
      required: ["code"],
    });
    const exampleIn = (code: JsonSchema) => {
      const made = openApiDocument(manifestOf(endpoint({ name: "coded", input: input(code) })), {
        version: "1",
        authorization: false,
      });
      const place = ["requestBody", "content", "application/json", "example"] as const;
      return at(made, "paths", "/coded", "post", ...place);
    };
    expect(exampleIn({ type: "string", maxLength: 4 })).toEqual({ code: "text" });
    expect(exampleIn({ type: "string", pattern: "^[A-Z]{2}$" })).toBeUndefined();
  });

  it("ends for a type that contains itself", () => {
    const schema = {
      $ref: "#/$defs/Tree",
      $defs: { Tree: { type: "object", properties: { next: { $ref: "#/$defs/Tree" } } } },
    };
    expect(exampleOf(schema)).toEqual({ next: {} });
  });
});
