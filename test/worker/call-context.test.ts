import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WorkerMessage } from "../../src/protocol/messages.ts";
import { servicePath, WorkerProcess } from "./process.ts";

function of<Type extends WorkerMessage["type"]>(worker: WorkerProcess, type: Type, id: number) {
  return worker.messages.filter(
    (message): message is Extract<WorkerMessage, { type: Type; id: number }> =>
      message.type === type && "id" in message && message.id === id,
  );
}

describe("a worker", () => {
  let worker: WorkerProcess;

  beforeAll(async () => {
    ({ worker } = await WorkerProcess.ready("zod-functions.ts"));
  });

  afterAll(() => worker[Symbol.asyncDispose]());

  describe("aborts calls", () => {
    it.each([
      ["timeout", "deadline_exceeded"],
      ["cancelled", "canceled"],
    ] as const)("for the reason %s", async (reason, code) => {
      const id = worker.start("wait_for_abort", {});
      await worker.find(
        (message) => (message.type === "progress" && message.id === id) || undefined,
      );
      worker.send({ type: "abort", id, reason });
      expect(await worker.outcome(id)).toMatchObject({ failure: { code, reason: "CALL_FAILED" } });
    });

    it("and still reports a result", async () => {
      const id = worker.start("ignore_abort", {});
      await worker.find(
        (message) => (message.type === "progress" && message.id === id) || undefined,
      );
      worker.send({ type: "abort", id, reason: "shutdown" });
      expect(await worker.outcome(id)).toEqual({
        id,
        result: '"AbortError: the server is stopping"',
      });
    });
  });

  describe("passes on", () => {
    it("little of much progress, clamped, the last always, before the result", async () => {
      const id = worker.start("report", { times: 10_000 });
      await worker.outcome(id);
      const reports = of(worker, "progress", id);
      expect(reports.length).toBeGreaterThanOrEqual(2);
      expect(reports.length).toBeLessThan(100);
      expect(reports.at(-1)).toMatchObject({ fraction: 1, message: "step 10000" });
    });

    it("no progress of an api", async () => {
      const id = worker.start("report_in_api", {});
      expect(await worker.outcome(id)).toMatchObject({ result: '"quiet"' });
      expect(of(worker, "progress", id)).toEqual([]);
    });

    it("what a call used, once and before its end, also where it fails", async () => {
      for (const fails of [false, true]) {
        const id = worker.start("used", { fails });
        await worker.outcome(id);
        const units = { tokens: 5, pages: 0.5 };
        expect(of(worker, "usage", id)).toEqual([{ type: "usage", id, units }]);
        expect(of(worker, "log", id)).toMatchObject([
          {
            level: "warn",
            message:
              'usage of "minus": -1 is not counted: an amount is a number from 0 to 1000000000000',
          },
        ]);
      }
    });

    it("log lines with their fields", async () => {
      const id = worker.start("report", { times: 1 });
      await worker.outcome(id);
      expect(of(worker, "log", id)).toEqual([
        { type: "log", id, level: "info", message: "done", fieldsJson: '{"times":1}' },
      ]);
    });

    it("what a function writes to its output, as lines of its own call's log until it ends", async () => {
      const ids = ["ada", "grace"].map((name) => [name, worker.start("speak", { name })] as const);
      for (const [name, id] of ids) {
        await worker.outcome(id);
        expect(of(worker, "log", id).map(({ level, message }) => [level, message])).toEqual([
          ["info", `${name} loads { weights: 2 }`],
          ["info", "one part, and the other"],
          ["info", "20 %"],
          ["warn", `${name} is old`],
          ["warn", "the end"],
        ]);
      }
      await expect.poll(() => worker.stderr).toContain("grace has ended\n");
      expect(worker.stderr).not.toContain("is old");
    });

    it("log lines of 8,192 characters, and fields that JSON can carry", async () => {
      const id = worker.start("chatter", { lines: 2 });
      await worker.outcome(id);
      const [long, strange] = of(worker, "log", id);
      expect(long?.message).toHaveLength(8192);
      expect(long?.fieldsJson).toContain("dropped");
      expect(strange?.fieldsJson).toContain("BigInt");
    });

    it("the first and the last lines of a log that is written too fast, and how many are missing", async () => {
      await using fresh = (await WorkerProcess.ready("zod-functions.ts")).worker;
      const id = fresh.start("chatter", { lines: 100_000 });
      await fresh.outcome(id);
      const lines = of(fresh, "log", id);
      const numbers = lines.map(({ message }) => Number(/^line (\d+)$/.exec(message)?.[1]));
      expect(numbers.slice(2, 150)).toEqual(Array.from({ length: 148 }, (_, at) => at + 2));
      expect(numbers.slice(-700)).toEqual(Array.from({ length: 700 }, (_, at) => 99_300 + at));
      expect(lines.length).toBeLessThan(5_000);
      const skipped = lines.reduce((sum, line) => sum + (line.skipped ?? 0), 0);
      expect(skipped + lines.length).toBe(100_000);
    });
  });

  it("answers a ping", async () => {
    worker.send({ type: "ping", sequence: 5 });
    await worker.find(
      (message) => (message.type === "pong" && message.sequence === 5) || undefined,
    );
  });

  it("keeps its channel from user code", async () => {
    expect(await worker.result("touch_channel", {})).toBe("undefined");
    expect(await worker.result("greet", { name: "again" })).toBe("hello again");
    expect(worker.stderr).not.toContain("heard a message");
  });

  it("reads its own folder and nothing beside", async () => {
    expect(await worker.result("read", { path: servicePath("local/beside.txt") })).toBe(6);
    const outside = fileURLToPath(new URL("../../tsconfig.json", import.meta.url));
    expect(await worker.failure("read", { path: outside })).toMatchObject({
      message: expect.stringContaining("tessera serve --allow-read"),
    });
  });

  it("starts no process", async () => {
    expect(await worker.failure("spawn", {})).toMatchObject({
      message: expect.stringContaining("starts processes only if"),
    });
  });
});
