import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import type { JsonSchema, MountManifest, ServiceManifest } from "../../../src/protocol/manifest.ts";
import { openApiDocument } from "../../../src/service/openapi/document.ts";
import { threadTimer } from "../../thread-time.ts";
import { endpoint, manifestOf } from "../manifests.ts";

const mountedAt = (path: string): MountManifest => ({ path, timeoutMs: 60_000, concurrency: 1 });

function serviceWith(...paths: readonly string[]): ServiceManifest {
  const own = manifestOf(
    endpoint({ name: "price" }),
    endpoint({ name: "later", kind: "task" }),
    endpoint({ name: "server" }),
  );
  return { ...own, mounts: paths.map(mountedAt) };
}

interface Merged {
  readonly tags: readonly JsonSchema[];
  readonly paths: { readonly [path: string]: { readonly [method: string]: JsonSchema } };
  readonly components: { readonly [section: string]: { readonly [name: string]: JsonSchema } };
}

/** The document of a service with servers, which say this of themselves. */
function merged(documents: { readonly [path: string]: object }, authorization = false): Merged {
  const manifest = serviceWith(...Object.keys(documents));
  const servers = (manifest.mounts ?? []).map((mount) => ({
    mount,
    found: { text: JSON.stringify(documents[mount.path]) },
  }));
  const options = { version: "1", authorization, documents: servers };
  return openApiDocument(manifest, options) as unknown as Merged;
}

function describes(paths: object, rest: object = {}): object {
  return { openapi: "3.1.0", info: { title: "t", version: "1" }, paths, ...rest };
}

const OK = { responses: { 200: { description: "It is." } } };

function tagOf({ tags }: Merged, path: string): JsonSchema | undefined {
  return tags.find((tag) => tag["x-tessera-mount"] === path);
}

function withItem(reference: string, item: object): object {
  const content = { "application/json": { schema: { $ref: reference } } };
  return describes(
    { "/items": { post: { operationId: "create", requestBody: { content }, ...OK } } },
    { components: { schemas: { Item: item, Unused: {} } } },
  );
}

const NEXT = { next: { $ref: "#/components/schemas/Item" } };
const TREE = {
  type: "object",
  properties: {
    ...NEXT,
    $ref: { type: "string" },
    default: { $ref: "#/components/schemas/Item" },
  },
  default: { $ref: "#/components/schemas/Item" },
};

describe("the document of a mounted server, in that of its deployment", () => {
  it.each([false, true])("is valid OpenAPI 3.1 (tokens required: %s)", async (authorization) => {
    const document = merged(
      {
        "/": withItem("#/components/schemas/Item", { type: "object", properties: NEXT }),
        "/ui": describes(
          {
            "/a/{b}": {
              parameters: [{ name: "b", in: "path", required: true, schema: { nullable: true } }],
              get: OK,
            },
          },
          { openapi: "3.0.3" },
        ),
      },
      authorization,
    );
    const { errors } = await new Validator().validate(
      structuredClone(document) as unknown as Record<string, unknown>,
    );
    expect(errors).toBeUndefined();
    expect(document.paths["/ui/a/{b}"]?.get).toMatchObject({
      operationId: "server_ui.get_ui_a_b_",
      tags: ["the server at /ui"],
    });
  });

  it("has components under names of its own, in circles, too, and those alone that it refers to", () => {
    const { paths, components } = merged({
      "/": withItem("#/components/schemas/Item", TREE),
      "/ui": withItem("#/components/schemas/Item", { type: "string" }),
    });
    const names = Object.keys(components.schemas ?? {}).filter((name) => /Item|Unused/.test(name));
    expect(names).toEqual(["server.Item", "server_ui.Item"]);
    const reference = { $ref: "#/components/schemas/server.Item" };
    expect(components.schemas?.["server.Item"]).toEqual({
      ...TREE,
      properties: { next: reference, $ref: { type: "string" }, default: reference },
    });
    expect(paths["/ui/items"]?.post).toMatchObject({
      requestBody: {
        content: {
          "application/json": { schema: { $ref: "#/components/schemas/server_ui.Item" } },
        },
      },
    });
  });

  it("takes no name that an endpoint has", () => {
    const { components } = merged({
      "/": describes(
        { "/x": { get: { responses: { 200: { $ref: "#/components/responses/a~1b" } } } } },
        {
          components: {
            responses: {
              "a/b": {
                description: "",
                content: { a: { schema: { $ref: "#/components/schemas/input" } } },
              },
            },
            schemas: { input: { title: "of the server" } },
          },
        },
      ),
    });
    expect(components.responses?.["server.a_b"]).toBeDefined();
    const named = Object.entries(components.schemas ?? {}).filter(
      ([, { title }]) => title === "of the server",
    );
    expect(named.map(([name]) => name)).toEqual(["server.input2"]);
    expect(components.schemas?.["server.input"]).toMatchObject({ type: "object" });
  });

  it("leaves the paths of endpoints, of the platform and of other servers alone, and says so", () => {
    const own = merged({});
    const document = merged({
      "/": describes({
        ...{ "/price": { get: OK }, "/later/{verb}": { get: OK }, "/later/submit": { get: OK } },
        ...{ "/metrics": { get: OK }, "/docs.json": { get: OK }, "/ui/x": { get: OK } },
        ...{ "/a/{b}": { get: OK }, "/a/{c}": { get: OK }, "no path": { get: OK }, "/q?x": {} },
      }),
      "/ui": describes({ "/x": { get: OK } }),
    });
    const added = Object.keys(document.paths).filter((path) => !(path in own.paths));
    expect(added).toEqual(["/later/{verb}", "/a/{b}", "/ui/x"]);
    expect(document.paths["/price"]).toEqual(own.paths["/price"]);
    expect(tagOf(document, "/")?.description).toBe(
      'A mounted server, as it describes itself. Left out: "/price" is of an endpoint; ' +
        '"/later/submit" is of the platform or an endpoint; ' +
        '"/metrics" is of the platform or an endpoint; ' +
        '"/docs.json" is of the platform or an endpoint; "/ui/x" is of the server at /ui; and 3 more.',
    );
  });

  it("has the paths of requests, whether it is told where it is mounted or not", () => {
    const told = { servers: [{ url: "/v1" }] };
    expect(Object.keys(merged({ "/v1": describes({ "/v1/a": {} }, told) }).paths)).toContain(
      "/v1/v1/a",
    );
    expect(Object.keys(merged({ "/v1": describes({ "/v1/a": {} }) }).paths)).toContain("/v1/a");
    expect(Object.keys(merged({ "/v1": describes({ "/v1/a": {}, "/b": {} }) }).paths)).toContain(
      "/v1/v1/a",
    );
  });

  it("asks for the platform's token besides what the server asks for", () => {
    const secured = describes(
      { "/x": { get: { ...OK, security: [{ key: [] }, { none: [] }] }, put: OK } },
      { components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } } } },
    );
    const closed = merged({ "/": secured }, true);
    expect(closed.paths["/x"]?.get?.security).toEqual([
      { token: [], "server.key": [] },
      { token: [] },
    ]);
    expect(closed.paths["/x"]?.put).not.toHaveProperty("security");
    expect(closed.components.securitySchemes).toHaveProperty(["server.key"]);
    expect(merged({ "/": secured }).paths["/x"]?.get?.security).toEqual([{ "server.key": [] }, {}]);
  });

  it("is of OpenAPI 3.1 where the server's is of 3.0", () => {
    const item = {
      type: "object",
      properties: {
        nullable: { type: "string", nullable: true },
        number: { type: "number", minimum: 0, exclusiveMinimum: true, exclusiveMaximum: false },
      },
    };
    const { components } = merged({
      "/": { ...withItem("#/components/schemas/Item", item), openapi: "3.0.3" },
    });
    expect(components.schemas?.["server.Item"]?.properties).toEqual({
      nullable: { type: ["string", "null"] },
      number: { type: "number", exclusiveMinimum: 0 },
    });
  });

  it.each([
    ["#/components/schemas/Missing"],
    ["#/components/schemas/__proto__"],
    ["https://other.example/schema.json"],
    ["#/paths/~1items/post"],
    ["#/components/schemas/%E0%A4"],
  ])("leaves out the reference %s, which leads to no component", (reference) => {
    const document = merged({ "/": withItem(reference, {}) });
    expect(JSON.stringify(document.paths["/items"])).not.toContain("$ref");
    expect(JSON.stringify(document.paths["/items"])).toContain("is no component");
  });

  it.each([
    [{ swagger: "2.0", paths: {} }, "its document is not of OpenAPI 3.0 or 3.1"],
    [[], "its document is not of OpenAPI 3.0 or 3.1"],
    [{ openapi: "3.1.0", paths: 5 }, "its document has no paths"],
  ])("is left out with a reason where it is none: %j", (document, reason) => {
    const whole = merged({ "/": document });
    expect(tagOf(whole, "/")?.description).toBe(
      `A mounted server. Its operations are not here: ${reason}.`,
    );
    expect(whole.paths).toEqual(merged({}).paths);
  });

  it("may be wrong in every part", () => {
    const wrong = [null, 5, "x", [], [null], { $ref: 5 }, { $ref: {} }, { x: null }];
    const names = ["parameters", "requestBody", "responses", "security", "tags", "operationId"];
    const paths = names.flatMap((name) =>
      wrong.map((value, index) => [`/${name}/${index}`, { get: { [name]: value }, [name]: value }]),
    );
    const components = Object.fromEntries(["schemas", "responses"].map((name) => [name, wrong]));
    const document = describes(Object.fromEntries(paths), { components, servers: wrong });
    expect(Object.keys(merged({ "/ui": document }).paths)).toContain("/ui/security/7");
  });

  it("is merged in little time where all its names are alike", () => {
    const many = Array.from({ length: 8_000 }, (_, index) => "~".repeat(1 + (index % 90)) + index);
    const schemas = Object.fromEntries(many.map((name) => [name.replaceAll(/\d/g, "!"), {}]));
    const paths = Object.fromEntries(
      many.map((name) => [`/${name}`, { get: { operationId: "same", ...OK } }]),
    );
    const took = threadTimer();
    merged({ "/": describes(paths, { components: { schemas } }) });
    expect(took()).toBeLessThan(1_500);
  });

  it("is merged in little time where it says of its server nothing but slashes", () => {
    const servers = [{ url: `${"/".repeat(1024 ** 2)}x` }];
    const took = threadTimer();
    merged({ "/ui": describes({ "/items": { get: OK } }, { servers }) });
    expect(took()).toBeLessThan(1_500);
  });
});
