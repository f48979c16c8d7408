import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";
import { readyService } from "../../src/sdk/describe.ts";
import { api, file, service, stream, task } from "../../src/sdk/index.ts";
import { serviceDefinitionOf } from "../../src/sdk/service.ts";

async function described(exported: unknown): Promise<EndpointManifest> {
  const definition = serviceDefinitionOf(exported);
  if (definition === undefined) {
    throw new Error("not a service");
  }
  const { manifest } = await readyService(exported, definition);
  return manifest.endpoints[0] as EndpointManifest;
}

async function* nothing(): AsyncGenerator<never> {}

const one = (endpoint: ReturnType<typeof api> | object) =>
  described(service({ name: "one", endpoints: { go: endpoint as never } }));

describe("an endpoint streams", () => {
  test("values when it is an async generator without an output", async () => {
    expect(await one(api({}, nothing))).toMatchObject({ stream: { pieces: "json" }, output: {} });
  });

  test("values of a schema, and any function may return them", async () => {
    const manifest = await one(api({ output: stream(z.int()) }, () => nothing()));
    expect(manifest).toMatchObject({ stream: { pieces: "json" }, output: { type: "integer" } });
  });

  test("a text when its pieces are strings", async () => {
    const manifest = await one(api({ output: stream(z.string()) }, nothing));
    expect(manifest).toMatchObject({ stream: { pieces: "text" }, output: { type: "string" } });
  });

  test("a file when its pieces are bytes", async () => {
    const manifest = await one(
      api({ output: stream(file({ contentType: "audio/mpeg" })) }, nothing),
    );
    expect(manifest).toMatchObject({
      stream: { pieces: "bytes" },
      outputFile: { contentType: "audio/mpeg" },
    });
  });

  test("from a method of a class, also of its superclass", async () => {
    class Base {
      async *go(): AsyncGenerator<string> {
        yield "a";
      }
    }
    const { value } = Object.getOwnPropertyDescriptor(Base.prototype, "go") ?? {};
    const context = { kind: "method", name: "go", static: false, private: false };
    api({ output: stream(z.string()) })(value, context as never);
    class Derived extends Base {}
    service({ name: "one" })(Derived as never, { kind: "class" } as never);
    expect(await described(Derived)).toMatchObject({ stream: { pieces: "text" } });
  });

  test("as an api or as a task", async () => {
    expect(await one(task({}, nothing))).toMatchObject({ stream: { pieces: "json" } });
  });

  test("not when it is any other function", async () => {
    expect(await one(api({}, () => 1))).not.toHaveProperty("stream");
  });
});

describe("an endpoint is refused", () => {
  test("when an async generator has the output of a whole", async () => {
    await expect(one(api({ output: z.string() }, nothing as never))).rejects.toThrow(
      'endpoint "go": the output of an async generator must be stream(schema of a piece)',
    );
  });

  test("when a stream has no schema of its pieces", async () => {
    await expect(one(api({ output: stream("text" as never) }, nothing))).rejects.toThrow(
      'endpoint "go": the output of a piece must be a Standard Schema or file()',
    );
  });
});
