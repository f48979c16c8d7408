import { afterEach, expect, it } from "vitest";
import { GpuLedger } from "../../../src/pool/gpus/ledger.ts";
import { NodeBudget } from "../../../src/pool/room/budget.ts";
import { Hosting, type RevisionSettings, source } from "./hosting.ts";

const resources = new AsyncDisposableStack();
let hosting: Hosting;
afterEach(() => hosting[Symbol.asyncDispose]());

const SOURCE = source("say: api({}, () => process.pid)");

/** A node with room for so many workers. */
function node(workers: number, gpus = new GpuLedger()): NodeBudget {
  const all = { workers, memoryBytes: 1024 ** 4 };
  const options = { gpus, gpuStayMs: 0 };
  return resources.use(new NodeBudget({ node: all, organization: all }, options));
}

/** A node with one GPU, which every revision of this needs. */
function nodeWithGpu(): { readonly budget: NodeBudget; readonly settings: RevisionSettings } {
  const name = "NVIDIA H100";
  const gpu = { ...{ index: 0, uuid: "GPU-0", name, minor: 0 }, memoryBytes: 1e10, usedBytes: 0 };
  return { budget: node(8, new GpuLedger({ list: [gpu] })), settings: { gpus: { count: 1 } } };
}

it("a call that waits for a worker without room is refused after its time and that of a start, and says why", async () => {
  const budget = node(1);
  await using other = await Hosting.start({ budget, scale: { min: 1, max: 1 } });
  await other.deploy(SOURCE);
  const scale = { min: 0, max: 1 };
  hosting = await Hosting.start({ budget, workers: 0, scale, readyTimeoutMs: 600 });
  const [say] = other.hosted.manifest.endpoints;
  const endpoints = say === undefined ? [] : [{ ...say, timeoutMs: 500 }];
  hosting.hosted.resume(await hosting.revision(SOURCE), { ...other.hosted.manifest, endpoints });
  const call = hosting.call("say");
  await expect.poll(() => hosting.hosted.status.reason).toContain("waiting for room on a node");
  await expect(call).rejects.toMatchObject({
    reason: "NO_WORKER",
    rawMessage:
      "no worker was ready within 600 ms, because the deployment is waiting for room on a node: try again",
  });
  // Nobody waits any more, so it gives its place up.
  await expect.poll(() => budget.use.waiting).toBe(0);
  expect(hosting.hosted.status).toMatchObject({ state: "ready", wanted: 0 });
});

it("a worker that was evicted does not come back before a call needs it", async () => {
  const budget = node(1);
  hosting = await Hosting.start({ budget, workers: 0, scale: { min: 0, max: 1 } });
  await hosting.deploy(SOURCE);
  await hosting.call("say");
  await using other = await Hosting.start({ budget, scale: { min: 1, max: 1 } });
  await other.deploy(SOURCE);
  expect(budget.use).toMatchObject({ workers: 1, waiting: 0, evictions: 1 });
  expect(hosting.hosted.status).toMatchObject({ state: "ready", ready: 0, wanted: 0 });
});

it("a roll-out that is given up while it waits for room leaves nothing behind", async () => {
  const budget = node(1);
  await using other = await Hosting.start({ budget, scale: { min: 1, max: 1 } });
  await other.deploy(SOURCE);
  hosting = await Hosting.start({ budget, scale: { min: 1, max: 1 } });
  const abort = new AbortController();
  const deployed = hosting.hosted.deploy(await hosting.revision(SOURCE), abort.signal);
  expect(hosting.hosted.status.state).toBe("starting");
  expect(hosting.hosted.rolloutWaits).toEqual(expect.any(String));
  abort.abort(new Error("something else is wanted"));
  await expect(deployed).rejects.toThrow("something else is wanted");
  expect(budget.use).toMatchObject({ workers: 1, waiting: 0 });
  expect(hosting.hosted.rolloutWaits).toBeUndefined();
});

it("a roll-out has as many workers as there were before it took their GPU", async () => {
  const { budget, settings } = nodeWithGpu();
  hosting = await Hosting.start({ budget });
  await hosting.deploy(SOURCE, settings);
  await hosting.deploy(SOURCE, settings);
  expect(hosting.hosted.status).toMatchObject({ state: "ready", revision: 2, ready: 1, wanted: 1 });
  expect(budget.use).toMatchObject({ workers: 1, waiting: 0, evictions: 1 });
});
