import { afterEach, expect, it } from "vitest";
import { ArgumentsReader, type CallInput } from "../../../src/service/input/arguments.ts";
import { ReaderThreads, type ReaderThreadsOptions } from "../../../src/service/input/threads.ts";
import { localFiles } from "../../storage/files/local.ts";
import { endpoint } from "../manifests.ts";

let threads: ReaderThreads;
afterEach(() => threads[Symbol.asyncDispose]());

const failures: unknown[] = [];
const open = (options: Partial<ReaderThreadsOptions> = {}) => {
  threads = new ReaderThreads({ onFailed: (err) => failures.push(err), ...options });
};

const numbers = { type: "array", items: { type: "number" } };
const sum = endpoint({
  name: "sum",
  input: { type: "object", properties: { numbers }, required: ["numbers"] },
});
const body = (value: unknown) => Buffer.from(JSON.stringify(value));

it("arguments are read as on the serving thread", async () => {
  open();
  const right = body({ numbers: [1, 2] });
  expect(await threads.read(sum, right)).toEqual({ json: right.toString(), files: [] });
  await expect(threads.read(sum, body({ numbers: ["x"] }))).rejects.toMatchObject({
    reason: "ARGUMENTS_INVALID",
    violations: [{ field: "numbers.0", description: "must be number" }],
  });
  await expect(threads.read(sum, Buffer.from("{"))).rejects.toMatchObject({
    reason: "BODY_MALFORMED",
  });
  expect(failures).toEqual([]);
});

it("large JSON of an api is the bytes that came, and that of a task their text", async () => {
  open();
  const text = JSON.stringify({ numbers: Array(50_000).fill(1.5), ä: "ö" });
  const read = async (kind: "api" | "task") => {
    const input = {
      case: "body",
      value: { contentType: "application/json", data: Buffer.from(text) },
    };
    const reader = new ArgumentsReader({ ...sum, kind });
    return reader.read(input as CallInput, localFiles()[kind], threads);
  };
  expect(await read("task")).toEqual({ json: text, files: [] });
  const { json, jsonBytes } = await read("api");
  expect(json).toBe("");
  expect(Buffer.from(jsonBytes ?? []).toString() === text).toBe(true);
});

it("the texts of a form are read as on the serving thread", async () => {
  open();
  const read = (texts: string[]) =>
    threads.readTexts(sum, { texts: new Map([["numbers", texts]]), violations: [] });
  expect(await read(["1", "2.50"])).toMatchObject({
    fields: new Map([["numbers", "[1,2.50]"]]),
    faults: { count: 0 },
  });
  expect(await read(["x"])).toMatchObject({ faults: { violations: [{ field: "numbers.0" }] } });
  const violations = [{ field: "image", description: "is no picture" }];
  await expect(threads.readTexts(sum, { texts: new Map(), violations })).rejects.toMatchObject({
    reason: "ARGUMENTS_INVALID",
    violations,
  });
});

it("each endpoint is checked by its own schema", async () => {
  open({ size: 1 });
  const named = Array.from({ length: 3 }, (_, i) =>
    endpoint({ name: "one", input: { type: "object", properties: {}, required: [`a${i}`] } }),
  );
  for (const one of [...named, ...named]) {
    const [required = ""] = one.input.required as string[];
    await threads.read(one, body({ [required]: 1 }));
    await expect(threads.read(one, body({}))).rejects.toMatchObject({
      violations: [{ field: required, description: "is required" }],
    });
  }
});

it("arguments that refer to others are checked as these are", async () => {
  open();
  const numbers = { type: "array", items: { type: "integer" } };
  for (const [$ref, inner] of [
    ["#", { numbers: ["x"] }],
    ["#/properties/numbers", ["x"]],
  ]) {
    const input = { type: "object", properties: { numbers, again: { $ref } } };
    const large = { numbers: Array.from({ length: 40_000 }, (_, i) => i), again: inner };
    await expect(threads.read(endpoint({ name: "one", input }), body(large))).rejects.toMatchObject(
      {
        reason: "ARGUMENTS_INVALID",
      },
    );
  }
});

it("a message is parted from its arguments, and those of its tasks", async () => {
  open();
  const tasks = [{ endpoint: "a", arguments: { x: 1 } }, { endpoint: "b" }];
  expect(await threads.lift(body({ endpoint: "c", arguments: { ä: [] }, tasks }))).toEqual({
    json: '{"endpoint":"c","tasks":[{"endpoint":"a"},{"endpoint":"b"}]}',
    own: '{"ä":[]}',
    tasks: ['{"x":1}', undefined],
  });
  for (const left of [{ arguments: [1] }, { arguments: null }, { arguments: {}, body: {} }, [1]]) {
    expect(await threads.lift(body(left))).toMatchObject({ json: JSON.stringify(left) });
  }
});

it("a body that takes too long is refused, and its thread replaced", async () => {
  open({ size: 1, timeoutMs: 1 });
  // A thread takes longer than that to start.
  const refused = [threads.read(sum, body({ numbers: [] })), threads.lift(body({}))];
  for (const one of refused) {
    await expect(one).rejects.toMatchObject({ reason: "SERVER_BUSY", retryAfterMs: 1_000 });
  }
});

it("bodies that find the queue full are refused, and those in it when the node ends", async () => {
  open({ size: 1, maxWaiting: 1 });
  const [read, waits, refused] = [1, 2, 3].map(() => threads.lift(body({})));
  await expect(refused).rejects.toMatchObject({ reason: "SERVER_BUSY" });
  await read;
  await waits;
  const [, last] = [threads.lift(body({})), threads.lift(body({}))].map((one) =>
    one.catch((err) => err),
  );
  await threads[Symbol.asyncDispose]();
  expect(await last).toMatchObject({ reason: "SHUTTING_DOWN" });
});
