import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { bundled, Hosting, source } from "./hosting.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/forging.ts", import.meta.url));

let code: string;
beforeAll(async () => {
  code = await bundled({ entryPoints: [SERVICE] });
});

let hosting: Hosting;
let neighbour: Hosting;
let neighbourPid: unknown;
beforeEach(async () => {
  neighbour = await Hosting.start();
  await neighbour.deploy(source("pid: api({}, () => process.pid)"));
  neighbourPid = await neighbour.call("pid");
});
afterEach(async () => {
  expect(await neighbour.call("pid")).toBe(neighbourPid);
  await neighbour[Symbol.asyncDispose]();
  await hosting[Symbol.asyncDispose]();
});

async function start(workers: number): Promise<void> {
  hosting = await Hosting.start({ workers });
  await hosting.hosted.deploy({ ...(await hosting.revision("")), code });
}

/** The workers that the task has run in, as it says. */
async function ranIn(taskId: string): Promise<string[]> {
  return (await hosting.logOf(taskId)).filter((line) => line.startsWith("/"));
}

/** Waits until the task has run in so many workers; returns them. */
async function workersOf(taskId: string, count: number): Promise<string[]> {
  await expect.poll(() => ranIn(taskId)).toHaveLength(count);
  return ranIn(taskId);
}

const FRAMES = [
  "a frame of 4 GiB",
  "a frame of 0 bytes",
  "a header that is not JSON",
  "a header with a million keys",
  "attachments that overlap",
  "an attachment outside",
  "a result that nobody asked for",
];

it.each([
  ...FRAMES.map((what) => [what, "forge", { what }] as const),
  ["a result of a neighbour and one of nobody", "forge_results", { ids: [2, 9] }] as const,
])("%s costs a worker its life, and its tasks run again", async (_, endpoint, values) => {
  await start(1);
  const waiting = await hosting.submit("wait");
  const [first] = await workersOf(waiting, 1);
  const forging = await hosting.submit(endpoint, values);
  const [, second] = await workersOf(waiting, 2);
  expect(second).not.toBe(first);
  expect(await hosting.ended(waiting)).toMatchObject({ status: "success", value: second });
  const value = endpoint === "forge_results" ? "forged" : "again";
  expect(await hosting.ended(forging)).toMatchObject({ status: "success", value });
});

it("half a message and silence cost a worker its life when the task times out, and the others run again", async () => {
  await start(1);
  const waiting = await hosting.submit("wait");
  const [first] = await workersOf(waiting, 1);
  const half = await hosting.submit("half");
  expect(await hosting.ended(half)).toMatchObject({ failure: { reason: "timeout" } });
  const [, second] = await workersOf(waiting, 2);
  expect(second).not.toBe(first);
  expect(await hosting.ended(waiting)).toMatchObject({ status: "success", value: second });
});

it("a worker ends no call of another worker of its deployment, whose calls have the same ids", async () => {
  await start(2);
  const tasks = [await hosting.submit("wait"), await hosting.submit("wait")];
  const began = await Promise.all(tasks.map((taskId) => workersOf(taskId, 1)));
  expect(new Set(began.flat()).size).toBe(2);
  const ids = [1, 2, 3, 4];
  const forging = await hosting.submit("forge_results", { ids });
  const forged = await hosting.ended(forging);
  expect(forged).toMatchObject({ status: "success", value: "forged" });
  // Both wait; the one in the worker that forged has what its own worker said.
  const statusOf = async (taskId: string) => (await hosting.ended(taskId, 0)).status;
  await expect
    .poll(async () => (await Promise.all(tasks.map(statusOf))).sort())
    .toEqual(["success", "unfinished"]);
  await Promise.all([hosting.call("release"), hosting.call("release")]);
  const ends = await Promise.all(tasks.map((taskId) => hosting.ended(taskId)));
  const honest = ends.findIndex(({ value }) => value !== "forged");
  expect(ends[1 - honest]).toMatchObject({ status: "success", value: "forged" });
  expect(ends[honest]).toMatchObject({ status: "success", value: began[honest]?.[0] });
  expect(await ranIn(tasks[honest] ?? "")).toEqual(began[honest]);
});
