import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { workerRights } from "../../src/deployments/permissions.ts";
import { ServiceProcess } from "../../src/pool/process.ts";
import type { WorkerMessage } from "../../src/protocol/messages.ts";

let scratchFolder: string;
beforeEach(() => {
  scratchFolder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-process-test-"));
});
afterEach(() => rmSync(scratchFolder, { recursive: true, force: true }));

/** Loads what is no service, which the worker says; takes messages with `onMessage`. */
async function run(
  onMessage: (message: WorkerMessage) => void,
): Promise<{ readonly reason: string; readonly faults: unknown[] }> {
  const faults: unknown[] = [];
  const servicePath = join(scratchFolder, "service.js");
  const worker = new ServiceProcess({
    rights: workerRights({ servicePath, selfContained: true, scratchFolder }),
    scratchFolder,
    env: {},
    maxMessageBytes: 10_000_000,
    onMessage,
    onOutput() {},
    onFault: (err) => faults.push(err),
  });
  const limits = { maxResultBytes: 1_000, maxFileBytes: 1_000 };
  worker.send({ type: "load", servicePath, code: "export default 5", ...limits, scratchFolder });
  const { message: reason } = await worker.exited;
  return { reason, faults };
}

test("an error of the node while it takes a message is told, and ends that worker only", async () => {
  const fault = new Error("a mistake of the node");
  const { reason, faults } = await run(() => {
    throw fault;
  });
  expect(faults).toEqual([fault]);
  expect(reason).toBe("it sent a message that the protocol does not have");
});

test("a message that is taken ends nothing", async () => {
  const messages: WorkerMessage[] = [];
  const { reason, faults } = await run((message) => messages.push(message));
  expect(faults).toEqual([]);
  expect(messages).toEqual([{ type: "refused", message: expect.any(String) }]);
  expect(reason).toBe("it exited with code 1");
});
