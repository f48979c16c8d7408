/** Streamed results of tasks in the TypeScript client, through a proxy that cuts connections. */
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  createClient,
  type RemoteTask,
  TaskCancelledError,
  TaskRestartedError,
} from "../../../src/client/index.ts";
import { Gate } from "../serve/gate.ts";
import { type Served, serve } from "../serve/served.ts";
import { CuttingProxy } from "./cutting-proxy.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("streamed-tasks"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

/** Submits a task through this address, or directly. */
async function submit(
  endpoint: string,
  given: Record<string, unknown>,
  url = served.origin,
): Promise<RemoteTask> {
  const task = await createClient({ url })[endpoint]?.submit(given);
  if (task === undefined) {
    throw new Error(`there is no endpoint ${endpoint}`);
  }
  return task;
}

async function all(pieces: AsyncIterable<unknown>): Promise<unknown[]> {
  const read: unknown[] = [];
  for await (const piece of pieces) {
    read.push(piece);
  }
  return read;
}

it("yields what the task gave, as what it is", async () => {
  const values = [1, null, { a: "b\nc" }];
  expect(await all((await submit("values", { list: values })).stream())).toEqual(values);
  expect(await all((await submit("texts", { list: ["a", "\n"] })).stream())).toEqual(["a", "\n"]);
  const audio = await all((await submit("audio", { list: ["ab", "c"] })).stream());
  expect(audio).toEqual([Uint8Array.from(Buffer.from("ab")), Uint8Array.from(Buffer.from("c"))]);
});

it("loses and repeats nothing when the connection breaks, however often", async () => {
  await using proxy = await CuttingProxy.start(served.port);
  const task = await submit("gated", { gate: gate.url }, proxy.url);
  const read: unknown[] = [];
  for await (const piece of task.stream()) {
    read.push(piece);
    proxy.cutAll();
    (await gate.arrival()).open(read.length === 6 ? "end" : `${read.length};`);
  }
  expect(read).toEqual(["begun 1;", "1;", "2;", "3;", "4;", "5;"]);
  expect(await task.wait()).toBe(read.join(""));
  expect(proxy.cuts).toBe(6);
});

it("tells of a restart, or rejects with it", async () => {
  const task = await submit("gated", { gate: gate.url });
  const restarts: number[] = [];
  const told: unknown[] = [];
  const following = (async () => {
    for await (const piece of task.stream({ onRestart: (attempt) => restarts.push(attempt) })) {
      told.push(piece);
    }
  })();
  const unprepared = all(task.stream());
  const refused = expect(unprepared).rejects.toBeInstanceOf(TaskRestartedError);
  await expect.poll(() => told).toEqual(["begun 1;"]);
  process.kill((await gate.arrival()).pid, "SIGKILL");
  const again = await gate.arrival();
  again.open("end");
  await following;
  await refused;
  expect([told, restarts]).toEqual([["begun 1;", "begun 2;"], [2]]);
});

it("rejects with the end of a task that did not succeed, after its pieces", async () => {
  const task = await submit("gated", { gate: gate.url });
  const pieces = task.stream();
  expect((await pieces.next()).value).toBe("begun 1;");
  await gate.arrival();
  await task.cancel({ abort: true });
  await expect(pieces.next()).rejects.toBeInstanceOf(TaskCancelledError);
  await expect(all((await submit("whole", {})).stream())).rejects.toMatchObject({
    reason: "REQUEST_INVALID",
  });
});

it("is left without an effect on the task", async () => {
  const task = await submit("gated", { gate: gate.url });
  for await (const piece of task.stream()) {
    expect(piece).toBe("begun 1;");
    break;
  }
  (await gate.arrival()).open("end");
  expect(await task.wait()).toBe("begun 1;");
});
