import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { DeploymentLog, sharedLog } from "../../src/hosting/logs.ts";
import type { NewLogLine } from "../../src/storage/hosting/logs.ts";
import { unavailable } from "../../src/storage/unavailable.ts";
import { until } from "../e2e/hosting/world.ts";

/** A log on a storage that a test lets answer or not. */
function open() {
  const written: NewLogLine[] = [];
  const storage = { answers: true };
  const silent = pino({ level: "silent" });
  const lines = new DeploymentLog({
    organizationId: "a",
    deploymentId: "b",
    nodeId: "c",
    now: () => 5,
    log: silent,
    hosting: {
      appendLogs: async ({ lines: added }) => {
        if (!storage.answers) {
          throw unavailable(new Error("it is away"));
        }
        written.push(...added);
      },
    },
  });
  const write = (text: string) =>
    lines.write({ worker: "w", revision: 1, taskId: "", stream: "stdout", level: "info", text });
  return { lines, written, storage, write, log: sharedLog(silent, "b", lines) };
}

describe("the log of a deployment", () => {
  it("is written in order, also what is held when the node ends", async () => {
    const { lines, written, write } = open();
    const all = Array.from({ length: 1_200 }, (_, index) => String(index));
    all.forEach(write);
    await lines[Symbol.asyncDispose]();
    expect(written.map(({ text }) => text)).toEqual(all);
  });

  it("holds so many lines while the storage is away, and tells how many were dropped", async () => {
    const { lines, written, storage, write } = open();
    storage.answers = false;
    for (let index = 0; index < 3_000; index += 1) {
      write(String(index));
    }
    storage.answers = true;
    await until(
      async () => written.length,
      (count) => count > 2_000,
    );
    expect(written.map(({ text }) => text)).toContain(
      "1000 lines were dropped here: the database did not take them in time",
    );
    await lines[Symbol.asyncDispose]();
  });

  it("has what becomes of workers and what functions throw, but no errors of the node", async () => {
    const { lines, written, log } = open();
    log.warn({ worker: "w", reason: "it was killed by SIGKILL" }, "a worker ended");
    log.error({ err: new Error("a password of the database") }, "tasks could not be claimed");
    log.info(
      { endpoint: "say", err: { message: "no", stack: "Error: no\n at say" } },
      "a function failed",
    );
    log.info(
      {
        endpoint: "read",
        err: { message: "no", stack: "Traceback (most recent call last):\nValueError: no" },
      },
      "a function failed",
    );
    log.info({ endpoint: "say", skipped: 7 }, "line 9");
    await lines[Symbol.asyncDispose]();
    expect(written.map(({ text }) => text)).toEqual([
      "a worker ended: it was killed by SIGKILL",
      "say failed: Error: no\n at say",
      "read failed: no\nTraceback (most recent call last):\nValueError: no",
      "say: line 9 (7 lines before it were dropped)",
    ]);
  });
});
