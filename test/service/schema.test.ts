import { describe, expect, it } from "vitest";
import type { JsonSchema, ServiceManifest } from "../../src/protocol/manifest.ts";
import { bentomlDocument, resultIsText, schemaDocument } from "../../src/service/schema.ts";
import { endpoint, manifestOf, takes } from "./manifests.ts";

const FORBIDDEN = ["$ref", "$defs", "anyOf", "allOf", "oneOf"];

function argument(manifest: ServiceManifest): unknown {
  const properties = schemaDocument(manifest).routes[0]?.input.properties as JsonSchema;
  return properties.value;
}

function output(schema: JsonSchema): unknown {
  return schemaDocument(manifestOf(endpoint({ name: "run", output: schema }))).routes[0]?.output;
}

describe("the document at /schema.json", () => {
  it("lists the endpoints with their routes and kinds", () => {
    const manifest = manifestOf(
      endpoint({ name: "summarize", description: "Shortens a text." }),
      endpoint({ name: "summarize_batch", kind: "task" }),
    );
    expect(schemaDocument(manifest)).toEqual({
      name: "example",
      type: "service",
      routes: [
        {
          name: "summarize",
          route: "/summarize",
          is_task: false,
          description: "Shortens a text.",
          doc: "Shortens a text.",
          input: { type: "object", properties: {} },
          output: {},
        },
        {
          name: "summarize_batch",
          route: "/summarize_batch",
          is_task: true,
          input: { type: "object", properties: {} },
          output: {},
        },
      ],
    });
  });

  it("describes a file argument by its kind and content type", () => {
    const binary = { type: "string", format: "binary" };
    const run = endpoint({
      name: "run",
      input: {
        type: "object",
        properties: { photo: { ...binary, description: "A photo." }, papers: { type: "array" } },
        required: ["photo"],
      },
      files: {
        photo: { required: true, array: false, contentType: "image/*" },
        papers: { required: false, array: true, maxItems: 4, contentType: "application/pdf" },
      },
    });
    expect(schemaDocument(manifestOf(run)).routes[0]?.input).toEqual({
      type: "object",
      properties: {
        photo: {
          type: "file",
          format: "image",
          content_type: "image/*",
          description: "A photo.",
        },
        papers: {
          type: "array",
          items: { type: "file", format: "binary", content_type: "application/pdf" },
          maxItems: 4,
        },
      },
      required: ["photo"],
    });
  });

  it("describes a file result by its kind and content type", () => {
    const run = endpoint({ name: "run", outputFile: { contentType: "video/mp4" } });
    expect(schemaDocument(manifestOf(run)).routes[0]?.output).toEqual({
      type: "file",
      format: "video",
      content_type: "video/mp4",
    });
  });

  it("says of a result that it is streamed, and what one piece is", () => {
    const rows = endpoint({
      name: "rows",
      output: { type: "integer" },
      stream: { pieces: "json" },
    });
    const [route] = schemaDocument(manifestOf(rows)).routes;
    expect(route?.output).toEqual({ type: "integer", is_stream: true });
  });

  it("lists the known arguments even if further ones are allowed", () => {
    const input = { properties: { text: { type: "string" } }, additionalProperties: true };
    const { routes } = schemaDocument(manifestOf(endpoint({ name: "run", input })));
    expect(routes[0]?.input).toEqual({ type: "object", properties: { text: { type: "string" } } });
  });
});

describe("a flat schema", () => {
  it("has what a reference names in its place", () => {
    const manifest = takes(
      { $ref: "#/$defs/a~1b", description: "Here." },
      { "a/b": { type: "string", minLength: 2, description: "There." } },
    );
    expect(argument(manifest)).toEqual({ type: "string", minLength: 2, description: "Here." });
  });

  it("accepts anything where a type contains itself", () => {
    const tree = {
      type: "object",
      properties: {
        name: { type: "string" },
        children: { type: "array", items: { $ref: "#/$defs/Tree" } },
      },
    };
    expect(argument(takes({ $ref: "#/$defs/Tree" }, { Tree: tree }))).toEqual({
      type: "object",
      properties: { name: { type: "string" }, children: { type: "array", items: {} } },
    });
  });

  it("accepts anything where two types contain each other", () => {
    const manifest = takes(
      { $ref: "#/$defs/A" },
      { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" } },
    );
    expect(argument(manifest)).toEqual({});
  });

  it("accepts anything where a reference leads nowhere", () => {
    expect(argument(takes({ $ref: "#/$defs/Missing" }))).toEqual({});
    expect(argument(takes({ $ref: "https://example.com/schema" }))).toEqual({});
  });

  it("stays small when references fan out", () => {
    const definitions: Record<string, JsonSchema> = { D0: { type: "string" } };
    for (let level = 1; level <= 40; level += 1) {
      const inner = { $ref: `#/$defs/D${level - 1}` };
      definitions[`D${level}`] = { type: "object", properties: { left: inner, right: inner } };
    }
    const text = JSON.stringify(argument(takes({ $ref: "#/$defs/D40" }, definitions)));
    expect(text.length).toBeLessThan(1_000_000);
  });

  it.each([
    { anyOf: [{ type: "string", maxLength: 9 }, { type: "null" }] },
    { type: ["string", "null"], maxLength: 9 },
    { oneOf: [{ type: "null" }, { $ref: "#/$defs/Text" }] },
  ])("keeps the type of a scalar that may be null: %j", (schema) => {
    const manifest = takes(schema, { Text: { type: "string", maxLength: 9 } });
    expect(argument(manifest)).toEqual({ type: "string", maxLength: 9 });
  });

  it("has no type for a list or an object that may be null, since clients walk into those", () => {
    expect(argument(takes({ type: ["array", "null"], items: { type: "string" } }))).toEqual({});
    expect(output({ anyOf: [{ type: "object", properties: {} }, { type: "null" }] })).toEqual({});
  });

  it("merges the members of allOf, each bound at its tightest", () => {
    const schema = {
      allOf: [
        { type: "object", properties: { n: { type: "number", minimum: 1 } }, required: ["n"] },
        {
          properties: { n: { type: "integer", minimum: 3 }, s: { type: "string" } },
          required: ["s"],
        },
      ],
    };
    expect(argument(takes(schema))).toEqual({
      type: "object",
      properties: { n: { type: "integer", minimum: 3 }, s: { type: "string" } },
      required: ["n", "s"],
    });
  });

  it("merges alternatives that are objects, requiring what all of them require", () => {
    const schema = {
      oneOf: [
        {
          type: "object",
          properties: { kind: { const: "circle" }, radius: { type: "number" } },
          required: ["kind", "radius"],
        },
        {
          type: "object",
          properties: { kind: { const: "square" }, side: { type: "number" } },
          required: ["kind", "side"],
        },
      ],
    };
    expect(argument(takes(schema))).toEqual({
      type: "object",
      properties: {
        kind: { type: "string", enum: ["circle", "square"] },
        radius: { type: "number" },
        side: { type: "number" },
      },
      required: ["kind"],
    });
  });

  it("has no type for alternatives of different types", () => {
    expect(argument(takes({ anyOf: [{ type: "string" }, { type: "array" }] }))).toEqual({});
    expect(argument(takes({ type: ["string", "number"], title: "Key" }))).toEqual({ title: "Key" });
  });

  it("takes integer or number for number", () => {
    expect(argument(takes({ anyOf: [{ type: "integer" }, { type: "number" }] }))).toEqual({
      type: "number",
    });
  });

  it("gives every array its items, however deep", () => {
    const schema = { type: "array", items: { type: "array", items: { type: "array" } } };
    expect(argument(takes(schema))).toEqual({
      type: "array",
      items: { type: "array", items: { type: "array", items: {} } },
    });
  });

  it("describes all places of a tuple by one schema", () => {
    const schema = { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] };
    expect(argument(takes(schema))).toEqual({ type: "array", items: {} });
  });

  it("lists no properties of a nested object that is open to others, since clients drop those", () => {
    const schema = {
      type: "object",
      properties: { id: { type: "string" } },
      additionalProperties: {},
    };
    expect(output(schema)).toEqual({ type: "object", additionalProperties: true });
  });

  it("never contains a keyword that clients cannot follow", () => {
    const nasty = {
      anyOf: [
        { allOf: [{ $ref: "#/$defs/A" }, { oneOf: [{ $ref: "#/$defs/B" }, true] }] },
        { type: "array", items: { anyOf: [{ $ref: "#" }, false] } },
      ],
    };
    const manifest = takes(nasty, {
      A: { type: "object", properties: { b: { $ref: "#/$defs/B" } } },
      B: { anyOf: [{ $ref: "#/$defs/A" }, { type: "null" }] },
    });
    const text = JSON.stringify(schemaDocument(manifest));
    for (const keyword of FORBIDDEN) {
      expect(text).not.toContain(`"${keyword}"`);
    }
  });
});

describe("a result sent as text", () => {
  const returns = (schema: JsonSchema) => endpoint({ name: "run", output: schema });

  it("is one whose schema accepts strings only", () => {
    expect(resultIsText(returns({ type: "string" }))).toBe(true);
    expect(resultIsText(returns({ enum: ["yes", "no"] }))).toBe(true);
    expect(resultIsText(returns({ $ref: "#/$defs/T", $defs: { T: { type: "string" } } }))).toBe(
      true,
    );
  });

  it("is not one that may be null or something else", () => {
    expect(resultIsText(returns({ type: ["string", "null"] }))).toBe(false);
    expect(resultIsText(returns({}))).toBe(false);
    expect(output({ type: ["string", "null"], title: "Answer" })).toEqual({ title: "Answer" });
  });
});

describe("the document for BentoML's own clients", () => {
  const described = (name: string, route: string) => ({ name, route, input: { type: "tensor" } });
  const routes = [described("routed", "/v1/x"), described("moved", "/metrics")];
  const compat = { bentoml: { name: "Example", type: "service", routes, paths: {} } };

  it("is BentoML's, but for paths that the node has another use for", () => {
    const endpoints = [endpoint({ name: "routed", route: "/v1/x" }), endpoint({ name: "moved" })];
    expect(bentomlDocument({ ...manifestOf(...endpoints), compat })).toEqual({
      ...compat.bentoml,
      routes: [described("routed", "/v1/x"), described("moved", "/moved")],
    });
  });

  it("is none of a service that is not BentoML's, or of what a worker made up", () => {
    const manifest = manifestOf(endpoint({ name: "run" }));
    expect(bentomlDocument(manifest)).toBeUndefined();
    expect(bentomlDocument({ ...manifest, compat: { bentoml: { routes: 1 } } })).toBeUndefined();
  });
});
