import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FileValue } from "../../src/protocol/messages.ts";
import { WorkerProcess } from "./process.ts";

function fileValue(text: string, contentType: string, filename?: string): FileValue {
  return { data: Buffer.from(text), contentType, ...(filename && { filename }) };
}

describe("a worker", () => {
  let worker: WorkerProcess;

  beforeAll(async () => {
    ({ worker } = await WorkerProcess.ready("zod-functions.ts"));
  });

  afterAll(() => worker[Symbol.asyncDispose]());

  describe("executes calls", () => {
    it("with defaults filled in", async () => {
      expect(await worker.result("greet", { name: "you" })).toBe("hello you");
      expect(await worker.result("add", { numbers: [1, 2] })).toBe(3);
    });

    it("and answers those of one message together", async () => {
      const ids = Array.from({ length: 200 }, (_, index) => 1_000_000 + index);
      worker.send({
        type: "calls",
        calls: ids.map((id) => ({
          id,
          endpoint: "greet",
          arguments: '{"name":"all"}',
          taskId: "same",
          attempt: 1,
          deadlineMs: 0,
        })),
      });
      await Promise.all(ids.map((id) => worker.outcome(id)));
      const lists = worker.messages.filter(
        (message) =>
          message.type === "results" && message.results.some(({ id }) => id >= 1_000_000),
      );
      expect(lists.length).toBeLessThan(20);
    });

    it("with files in the places of the arguments", async () => {
      const files = [
        fileValue("pixels", "image/gif", "a.gif"),
        fileValue("1", ""),
        fileValue("22", "text/x"),
      ];
      expect(await worker.result("inspect", { image: 0, rest: [1, 2] }, files)).toEqual({
        name: "a.gif",
        type: "image/gif",
        text: "pixels",
        rest: [1, 2],
      });
    });

    it("with a file that zod describes", async () => {
      const files = [fileValue("pixels", "image/png")];
      expect(await worker.result("inspect_zod", { image: 0, title: "t" }, files)).toEqual({
        type: "image/png",
        size: 6,
        title: "t",
      });
    });

    it("and returns files", async () => {
      const drawn = await worker.payload("draw", { bytes: 3 });
      expect(drawn.json).toBe("0");
      expect(drawn.files).toEqual([{ contentType: "image/png", data: expect.any(Uint8Array) }]);
      const [file] = drawn.files;
      expect([...(file && "data" in file ? file.data : [])]).toEqual([7, 7, 7]);
      expect((await worker.payload("named_file", {})).files[0]).toMatchObject({
        contentType: "text/csv",
        filename: "table.csv",
      });
    });

    it("and gives the function its context", async () => {
      expect(await worker.result("context", {})).toEqual({
        taskId: expect.stringMatching(/^task-\d+$/),
        attempt: 1,
        deadline: new Date(1_900_000_000_000).toISOString(),
        aborted: false,
      });
    });
  });

  describe("refuses arguments", () => {
    it("that the schema refuses, with the path of each", async () => {
      expect(await worker.failure("add", { numbers: [1, "two"], sum: 3 })).toEqual({
        code: "invalid_argument",
        reason: "ARGUMENTS_INVALID",
        message: expect.stringContaining("numbers.1: "),
        violations: [
          { path: "sum", message: "no such argument (there are: numbers, start)" },
          { path: "numbers.1", message: expect.any(String) },
        ],
      });
    });

    it("that are not an object", async () => {
      expect(await worker.failure("add", [1])).toMatchObject({
        reason: "ARGUMENTS_INVALID",
        violations: [{ path: "", message: "arguments must be an object" }],
      });
    });

    it("where a file is missing, of another type, or one too many", async () => {
      expect(await worker.failure("inspect", { image: "text" })).toMatchObject({
        violations: [{ path: "image", message: "must be a file" }],
      });
      const files = [fileValue("", "text/plain"), fileValue("", ""), fileValue("", "")];
      expect(await worker.failure("inspect", { image: 0, rest: [1, 2, 1] }, files)).toMatchObject({
        violations: [
          { path: "image", message: "must be image/*, not text/plain" },
          { path: "rest", message: "must be at most 2 files, not 3" },
        ],
      });
    });

    it("with at most 50 violations", async () => {
      const failure = await worker.failure("add", { numbers: Array(80).fill("x") });
      expect(failure.violations).toHaveLength(50);
      expect(failure.message).toContain("and 30 more");
    });

    it("of an endpoint that does not exist", async () => {
      expect(await worker.failure("constructor", {})).toMatchObject({
        code: "not_found",
        reason: "ENDPOINT_NOT_FOUND",
      });
    });
  });

  describe("refuses results", () => {
    it("that the output schema refuses", async () => {
      expect(await worker.failure("wrong_output", {})).toEqual({
        code: "internal",
        reason: "OUTPUT_INVALID",
        message: expect.stringMatching(
          /^wrong_output returned what its output schema refuses: digit: /,
        ),
      });
      expect(await worker.failure("wrong_type", {})).toMatchObject({
        reason: "OUTPUT_INVALID",
        message: expect.stringContaining("must be image/png, not text/plain"),
      });
    });

    it.each([
      ["function", "fn in it is a function"],
      ["cycle", "contains itself"],
      ["nan", "1 in it is NaN"],
      ["map", "it is a Map"],
      ["vector", "values in it is a Float32Array"],
      ["buffer", "it is a Buffer"],
    ])("that JSON cannot carry: %s", async (kind, message) => {
      expect(await worker.failure("anything", { kind })).toMatchObject({
        code: "internal",
        reason: "OUTPUT_INVALID",
        message: expect.stringContaining(message),
      });
    });

    it("but takes nothing for null, a date for its text, and a BigInt for its number", async () => {
      expect(await worker.result("anything", { kind: "bigint" })).toEqual({ total: 10 });
      expect(await worker.result("anything", { kind: "nothing" })).toBeNull();
      expect(await worker.result("anything", { kind: "date" })).toBe("1970-01-01T00:00:00.000Z");
    });
  });

  describe("reports what a function throws", () => {
    it("with the code it chose", async () => {
      expect(await worker.failure("fail", { how: "bad_input" })).toMatchObject({
        code: "invalid_argument",
        reason: "CALL_FAILED",
        message: "the image is empty",
      });
      expect(await worker.failure("fail", { how: "not_found" })).toMatchObject({
        code: "not_found",
      });
    });

    it("as internal otherwise, with the trace of the source apart from the message", async () => {
      const failure = await worker.failure("fail", { how: "any" });
      expect(failure).toMatchObject({ code: "internal", message: "out of luck" });
      expect(failure.stack).toMatch(/zod-functions\.ts:\d+:\d+/);
      expect(failure.stack).toContain("caused by: Error: deeper");
      expect(failure.stack).not.toContain("/src/worker/");
    });

    it("with the places that a deployed service has in its author's folder", async () => {
      await using deployed = (await WorkerProcess.ready("zod-functions.ts", { isolated: true }))
        .worker;
      const { stack = "" } = await deployed.failure("fail", { how: "any" });
      expect(stack).toMatch(/^Error: out of luck\n {4}at .*[ (]zod-functions\.ts:\d+:\d+/);
      expect(stack).not.toContain("/fixtures/");
    });

    it("even when it is not an error", async () => {
      expect(await worker.failure("fail", { how: "not_an_error" })).toMatchObject({
        code: "internal",
        message: "something was thrown that is not an error",
      });
    });
  });
});
