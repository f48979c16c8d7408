import { execFileSync } from "node:child_process";
import { expect, test, vi } from "vitest";
import { launchNode, nodeProgram } from "../../src/pool/launch/node.ts";
import { launchSandboxed } from "../../src/pool/launch/sandboxed.ts";
import { startLocal } from "./local-workers.ts";
import { kernelSandbox, skipped } from "./sandbox/available.ts";
import { workerContract } from "./worker-contract.ts";

workerContract("a worker in Node", startLocal(launchNode()));
workerContract(
  "a worker in the sandbox",
  startLocal((options) => launchSandboxed(kernelSandbox(), nodeProgram)(options)),
  { skipped },
);

test("a worker that has gone is heard to its end, also where the node writes to it before it reads", async () => {
  const worker = await startLocal(launchNode())("serve/contract.ts");
  await worker.load();
  const said: string[] = [];
  const ended = Promise.withResolvers<unknown>();
  worker.execute(
    {
      ...{ endpoint: "last_words", kind: "api", taskId: "t", attempt: 1, timeoutMs: 60_000 },
      arguments: { json: '{"how":"exits"}', files: [] },
    },
    { onLog: ({ message }) => said.push(message), onEnd: ended.resolve },
  );
  // Then it has been sent.
  await new Promise(setImmediate);
  // As a loop that is late: nothing is read until the process has ended, and a ping is due before.
  const dueMs = performance.now() + 500;
  while (!hasGone(worker.pid) || performance.now() < dueMs) {}
  await ended.promise;
  expect(said).toEqual(["one", "two", "three"]);
});

/** Whether a process has ended; nobody has asked for its code yet. */
function hasGone(pid = 0): boolean {
  return execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith(
    "Z",
  );
}

test("a worker that is not ready for five minutes ends once it has no calls, so that another takes its place", async () => {
  // The real ones are those of the test and of the worker; what the node waits for comes by hand.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const worker = await startLocal(launchNode())("serve/readiness.ts");
    const { endpoints } = await worker.load();
    const tire = endpoints.find(({ name }) => name === "tire");
    if (tire === undefined) {
      throw new Error("the service has no such endpoint");
    }
    worker.capacity.take(tire);
    const tired = new Promise((onEnd) =>
      worker.execute(
        {
          ...{ endpoint: "tire", kind: "api", taskId: "t", attempt: 1, timeoutMs: 60_000 },
          arguments: { json: '{"times":100}', files: [] },
        },
        { onEnd },
      ),
    );
    await tired;
    await expect.poll(() => worker.isBlocked, { timeout: 20_000 }).toBe(true);
    vi.advanceTimersByTime(310_000);
    expect(worker.ended).toBe(false);
    worker.release(tire);
    vi.advanceTimersByTime(1_000);
    expect(await worker.exited).toEqual({
      cause: "killed",
      message: "it was not ready for 5 min: ready said it is tired",
    });
  } finally {
    vi.useRealTimers();
  }
});
