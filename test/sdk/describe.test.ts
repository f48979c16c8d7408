import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServiceManifest } from "../../src/protocol/manifest.ts";
import { WorkerProcess } from "../worker/process.ts";

describe("a worker", () => {
  let worker: WorkerProcess;
  let manifest: ServiceManifest;

  beforeAll(async () => {
    ({ worker, manifest } = await WorkerProcess.ready("zod-functions.ts"));
  });

  afterAll(() => worker[Symbol.asyncDispose]());

  describe("describes itself", () => {
    const endpoint = (name: string) => manifest.endpoints.find((one) => one.name === name);

    it("with its name and description", () => {
      expect(manifest).toMatchObject({
        name: "zod-functions",
        description: "Every behaviour that the tests of the host ask for.",
      });
    });

    it("with arguments by their input side, in which a default makes optional", () => {
      expect(endpoint("greet")).toMatchObject({
        kind: "api",
        description: "Greets somebody.",
        input: {
          type: "object",
          properties: { name: { type: "string", minLength: 1 }, times: { default: 1 } },
          required: ["name"],
        },
        output: { type: "string" },
        timeoutMs: 60_000,
        concurrency: 100,
      });
    });

    it("with the options as numbers in milliseconds", () => {
      expect(endpoint("add")).toMatchObject({
        timeoutMs: 300_000,
        retentionMs: 172_800_000,
        retries: { max: 3, backoffMs: 10_000 },
        queueLimit: 5,
        priority: 7,
        concurrency: 2,
      });
    });

    it("with the arguments of a record", () => {
      expect(endpoint("add")?.input).toEqual({
        type: "object",
        properties: {
          numbers: { type: "array", items: { type: "number" } },
          start: { type: "number", default: 0 },
        },
        required: ["numbers"],
        additionalProperties: false,
      });
    });

    it("with its files", () => {
      expect(endpoint("inspect")).toMatchObject({
        files: {
          image: { contentType: "image/*", required: true, array: false },
          rest: { required: false, array: true, maxItems: 2 },
        },
        input: {
          properties: {
            image: { type: "string", format: "binary", contentMediaType: "image/*" },
            rest: { type: "array", items: { type: "string", format: "binary" }, maxItems: 2 },
          },
        },
      });
      expect(endpoint("inspect_zod")?.files).toEqual({
        image: { contentType: "image/png", required: true, array: false },
      });
      expect(endpoint("draw")?.outputFile).toEqual({ contentType: "image/png" });
    });
  });
});

describe("a service", () => {
  it("can be a class with decorators, setup, inheritance and modules of its own", async () => {
    const { worker, manifest } = await WorkerProcess.ready("decorated.ts");
    await using _ = worker;
    expect(manifest.endpoints.map(({ name, kind }) => [name, kind])).toEqual([
      ["shout", "api"],
      ["shout-batch", "task"],
      ["where", "api"],
      ["inherited", "api"],
    ]);
    expect(await worker.result("shout", { text: "hey" })).toBe("HEY ready");
    expect(await worker.result("shout-batch", { texts: ["a", "b"] })).toEqual(["A!", "B!"]);
    expect(await worker.result("inherited", {})).toBe("from the base");
    const services = new URL("../fixtures/services/", import.meta.url);
    expect(await worker.result("where", {})).toEqual({
      entry: new URL("decorated.ts", services).href,
      folder: fileURLToPath(services).replace(/\/$/, ""),
      module: new URL("local/where.ts", services).href,
      beside: "beside",
    });
  });

  it("can use valibot, with JSON Schemas given by hand or by its own converter", async () => {
    const { worker, manifest } = await WorkerProcess.ready("valibot.ts");
    await using _ = worker;
    expect(manifest.endpoints[1]).toMatchObject({
      input: { properties: { count: { type: "integer" } }, required: ["count"] },
      output: { type: "integer" },
    });
    expect(await worker.result("repeat", { text: "ab" })).toBe("abab");
    expect(await worker.failure("double", { count: 0.5 })).toMatchObject({
      violations: [{ path: "count", message: expect.any(String) }],
    });
  });

  it("can use arktype", async () => {
    const { worker } = await WorkerProcess.ready("arktype.ts");
    await using _ = worker;
    expect(await worker.result("area", { width: 2, height: 3 })).toBe(6);
    expect(await worker.failure("area", { width: 2, height: -1 })).toMatchObject({
      violations: [{ path: "height", message: expect.any(String) }],
    });
  });
});
