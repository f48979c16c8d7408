import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bundleService } from "../../src/artifacts/bundle.ts";
import { workerRights } from "../../src/deployments/permissions.ts";
import type { ExecutionEnd } from "../../src/pool/execution.ts";
import { LocalWorker } from "../../src/pool/local-worker.ts";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";
import { localFiles } from "../files/local.ts";
import { servicePath } from "../worker/process.ts";

let scratchFolder: string;
let worker: LocalWorker;
let endpoint: EndpointManifest | undefined;
beforeEach(async () => {
  scratchFolder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-worker-test-"));
  const service = await bundleService(servicePath("serve/escapes.ts"));
  const options = {
    service,
    scratchFolder,
    env: {},
    maxResultBytes: 1_000,
    graceMs: 100,
    maxFileBytes: 1_000,
    keepers: localFiles(),
    rights: workerRights({ ...service, scratchFolder }),
    readyTimeoutMs: 30_000,
    onSpawn() {},
    onOutput() {},
    onFault: (err: unknown) => expect.unreachable(String(err)),
  };
  worker = new LocalWorker("worker-1", options, () => {});
  const { endpoints } = await worker.load();
  endpoint = endpoints.find(({ name }) => name === "forge");
});
afterEach(async () => {
  worker.kill("the test is over");
  await worker.exited;
  rmSync(scratchFolder, { recursive: true, force: true });
});

/** Begins a call that sends this message by its own hand, and goes on. */
function forge(message: object): Promise<ExecutionEnd> {
  const ended = Promise.withResolvers<ExecutionEnd>();
  worker.execute(
    {
      endpoint: endpoint?.name ?? "",
      kind: "api",
      taskId: "t",
      attempt: 1,
      timeoutMs: 30_000,
      arguments: { json: JSON.stringify({ message }), files: [] },
    },
    { onEnd: ended.resolve },
  );
  return ended.promise;
}

const results = (...list: object[]) => ({ type: "results", results: list });

test("a result that nobody asked for ends its worker, whose calls are lost", async () => {
  const ended = forge(results({ id: 7, result: "1" }));
  const reason = "it sent a result of call 7, which is not under way";
  expect(await ended).toEqual({ kind: "lost", message: reason });
  expect(await worker.exited).toBe(reason);
});

test("two results of one call end its worker, and the first one stands", async () => {
  const ended = forge(results({ id: 1, result: "1" }, { id: 1, result: "2" }));
  expect(await ended).toEqual({ kind: "result", result: { json: "1", files: [] } });
  expect(await worker.exited).toBe("it sent a result of call 1, which is not under way");
});

test("a second result for a call whose first one is being read ends its worker", async () => {
  const onDisk = { json: "0", files: [{ contentType: "a/b", size: 1 }] };
  void forge(results({ id: 1, result: onDisk }, { id: 1, result: "2" }));
  expect(await worker.exited).toBe("it sent a result of call 1, which is not under way");
});

test("a result for another call of its own worker is that call's, and of no other worker's", async () => {
  const first = forge({ type: "progress", id: 1, fraction: 0.5, message: "" });
  const second = forge(results({ id: 1, result: '"forged"' }));
  expect(await first).toMatchObject({ kind: "result" });
  worker.kill("that was all");
  expect(await second).toEqual({ kind: "lost", message: "that was all" });
});
