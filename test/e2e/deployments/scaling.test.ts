import { afterEach, expect, it } from "vitest";
import { StartGate } from "../../../src/pool/room/start-gate.ts";
import { Hosting, source } from "./hosting.ts";

let hosting: Hosting;
afterEach(() => hosting[Symbol.asyncDispose]());

const SOURCE = source(
  "say: api({}, () => process.pid), " +
    "work: task({}, async () => { await new Promise((r) => setTimeout(r, 1500)); return process.pid; })",
);

/** A deployment without workers, as on a node that has just started. */
async function asleep(max = 4): Promise<void> {
  hosting = await Hosting.start({ workers: 0, scale: { min: 0, max }, readyTimeoutMs: 20_000 });
  const first = await Hosting.start();
  await first.deploy(SOURCE);
  const { manifest } = first.hosted;
  await first[Symbol.asyncDispose]();
  hosting.hosted.resume(await hosting.revision(SOURCE), manifest);
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it("a revision that has served before starts no worker until a call wakes it", async () => {
  await asleep();
  expect(hosting.hosted.status).toMatchObject({ state: "ready", ready: 0, wanted: 0, revision: 1 });
  expect(hosting.hosted.ready).toBe(true);
  const pids = await Promise.all([hosting.call("say"), hosting.call("say")]);
  expect(pids[0]).toEqual(expect.any(Number));
  expect(hosting.hosted.status).toMatchObject({ state: "ready", ready: 1, wanted: 1 });
});

it("a task wakes a deployment without workers", async () => {
  await asleep();
  expect(await hosting.ended(await hosting.submit("work"))).toMatchObject({ status: "success" });
});

it("a delayed task wakes it when it is due, and not before", async () => {
  await asleep();
  const runAtMs = Date.now() + 4_000;
  const taskId = await hosting.submit("work", {}, { runAtMs });
  await expect.poll(() => Date.now()).toBeGreaterThan(runAtMs - 2_500);
  expect(hosting.hosted.status).toMatchObject({ wanted: 0 });
  expect(await hosting.ended(taskId)).toMatchObject({ status: "success" });
});

it("many tasks get many workers, within the bound", async () => {
  await asleep(3);
  const ids = await Promise.all(Array.from({ length: 8 }, () => hosting.submit("work")));
  await expect.poll(() => hosting.hosted.status.ready).toBe(3);
  const pids = new Set<unknown>();
  for (const id of ids) {
    pids.add((await hosting.ended(id)).value);
  }
  expect(pids.size).toBe(3);
});

it("a deploy without workers proves the revision with one, which stops at once", async () => {
  hosting = await Hosting.start({ workers: 0, scale: { min: 0, max: 2 } });
  await expect(
    hosting.deploy(source("a: api({}, () => 1)", 'throw new Error("no");')),
  ).rejects.toThrow("no");
  await hosting.deploy(source("say: api({}, () => process.pid)", "console.log(process.pid);"));
  expect(hosting.hosted.status).toMatchObject({ state: "ready", ready: 0, wanted: 0 });
  const pid = Number(hosting.lines.at(-1)?.line);
  await expect.poll(() => lives(pid)).toBe(false);
  expect(await hosting.call("say")).not.toBe(pid);
  expect(hosting.hosted.status).toMatchObject({ state: "ready", ready: 1, wanted: 1 });
});

it("calls are refused with the reason when no worker can be started for them", async () => {
  await asleep();
  hosting.hosted.resume(
    await hosting.revision(source("say: api({}, () => 1)", 'throw new Error("no config");')),
    hosting.hosted.manifest,
  );
  await expect(hosting.call("say")).rejects.toMatchObject({
    reason: "NO_WORKER",
    rawMessage: expect.stringContaining("no config"),
  });
});

it("bounds that change are followed while calls run", async () => {
  hosting = await Hosting.start({ workers: 1, scale: { min: 1, max: 4 } });
  await hosting.deploy(SOURCE);
  const running = await hosting.submit("work");
  hosting.hosted.scale = { min: 3, max: 4 };
  await expect.poll(() => hosting.hosted.status.ready).toBe(3);
  hosting.hosted.scale = { min: 0, max: 1 };
  await expect.poll(() => hosting.hosted.status.wanted).toBe(1);
  expect(await hosting.ended(running)).toMatchObject({ status: "success" });
});

it("workers of several deployments wait for room to start, and one that gives up makes room", async () => {
  const starts = new StartGate(1, { longMs: 60_000 });
  const begins = source("say: api({}, () => 1)", 'console.log("begins");');
  const hangs = begins.replace('"begins");', '"begins"); await new Promise(() => {});');
  const began = Promise.withResolvers<void>();
  await using first = await Hosting.start({ starts, onOutput: () => began.resolve() });
  const abort = new AbortController();
  const given = first.hosted.deploy(await first.revision(hangs), abort.signal);
  await began.promise;
  hosting = await Hosting.start({ starts });
  const deployed = hosting.deploy(begins);
  // One that began later, with room of its own, is ready before it has begun.
  await using last = await Hosting.start();
  await last.deploy(begins);
  expect(hosting.lines).toEqual([]);
  abort.abort(new Error("given up"));
  await expect(given).rejects.toThrow("given up");
  await deployed;
  expect(hosting.lines.map(({ line }) => line)).toEqual(["begins"]);
});
