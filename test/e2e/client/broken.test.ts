/** Connections that break, by a proxy that cuts them. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ConnectionLostError,
  createClient,
  createTesseraClient,
  type TaskLogEvent,
} from "../../../src/client/index.ts";
import { type Cut, CuttingProxy } from "./cutting-proxy.ts";
import { type Clients, type ServedClients, serveClients } from "./served.ts";

const CUTS: readonly Cut[] = ["request", "between", "response"];

let served: ServedClients;
beforeAll(async () => {
  served = await serveClients();
});
afterAll(() => served[Symbol.asyncDispose]());

/** The ids of all tasks of an endpoint. */
async function taskIds(endpoint: string): Promise<string[]> {
  const { tasks } = createTesseraClient({ url: served.url });
  const ids: string[] = [];
  let pageToken = "";
  do {
    const page = await tasks.listTasks({ endpoint, pageSize: 1_000, pageToken });
    ids.push(...page.tasks.map(({ taskId }) => taskId));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return ids;
}

/** The first request of each idempotency key is cut, in turns at each place. */
function cuttingEachKeyOnce(): Promise<CuttingProxy> {
  const seen = new Set<string>();
  return CuttingProxy.start(served.port, (head) => {
    const key = /^idempotency-key: (\S+)/im.exec(head)?.[1];
    if (key === undefined || seen.has(key)) {
      return undefined;
    }
    seen.add(key);
    return CUTS[seen.size % CUTS.length];
  });
}

/** The ids of the tasks that 200 calls make, ten at a time. */
async function tasksOf200(make: (number: number) => Promise<{ id: string }>): Promise<string[]> {
  const ids: string[] = [];
  const numbers = Array.from({ length: 200 }, (_, index) => index).values();
  const caller = async (): Promise<void> => {
    for (const number of numbers) {
      ids.push((await make(number)).id);
    }
  };
  await Promise.all(Array.from({ length: 10 }, caller));
  expect(ids).toHaveLength(200);
  return ids;
}

describe("a submit", () => {
  it("leaves exactly one task, each of 200 times that its connection is cut", async () => {
    await using proxy = await cuttingEachKeyOnce();
    const client = createClient<Clients>({ url: proxy.url });
    const ids = await tasksOf200((number) => client.greet_later.submit({ name: `${number}` }));
    expect(proxy.cuts).toBe(200);
    expect((await taskIds("greet_later")).toSorted()).toEqual(ids.toSorted());
  });

  it("sends its files again, and they arrive whole", async () => {
    const cuts = [...CUTS];
    await using proxy = await CuttingProxy.start(served.port, () => cuts.pop());
    const client = createClient<Clients>({ url: proxy.url });
    const bytes = Buffer.alloc(3_000_000, "tessera");
    const task = await client.measure_later.submit({ document: new File([bytes], "a.bin") });
    expect(proxy.cuts).toBe(3);
    expect(await task.wait()).toMatchObject({
      document: { bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") },
    });
    expect(await taskIds("measure_later")).toEqual([task.id]);
  });
});

describe("a retry", () => {
  it("leaves exactly one new task, each of 200 times that its connection is cut", async () => {
    const direct = createClient<Clients>({ url: served.url });
    const first = await direct.climb.submit({ steps: 3 });
    await first.wait();
    const before = new Set(await taskIds("climb"));
    await using proxy = await cuttingEachKeyOnce();
    const task = createClient<Clients>({ url: proxy.url }).climb.task(first.id);
    const ids = await tasksOf200(() => task.retry());
    expect(proxy.cuts).toBe(200);
    const made = (await taskIds("climb")).filter((id) => !before.has(id));
    expect(made.toSorted()).toEqual(ids.toSorted());
  });

  it("with a key of the caller's gives the same task, however often it is called", async () => {
    const client = createClient<Clients>({ url: served.url });
    const first = await client.add.submit({ numbers: [1] });
    await first.wait();
    const again = () => first.retry({ idempotencyKey: `again ${first.id}` });
    expect((await again()).id).toBe((await again()).id);
  });
});

describe("what might run twice", () => {
  it.each(["between", "response"] as const)("is not sent again after a cut: %s", async (cut) => {
    const direct = createClient<Clients>({ url: served.url });
    const before = await direct.ticks();
    const cuts: Cut[] = [cut];
    await using proxy = await CuttingProxy.start(served.port, () => cuts.pop());
    const client = createClient<Clients>({ url: proxy.url });
    const called = client.tick();
    await expect(called).rejects.toThrow(ConnectionLostError);
    await expect(called).rejects.toThrow(/may have been done all the same/);
    expect(await direct.ticks()).toBe(before + 1);
  });
});

it("a cancel whose answer was lost is done all the same", async () => {
  const cuts: (Cut | undefined)[] = ["between", undefined];
  await using proxy = await CuttingProxy.start(served.port, () => cuts.pop());
  const client = createClient<Clients>({ url: proxy.url });
  const task = await client.add.submit({ numbers: [] }, { delay: "1h" });
  await task.cancel();
  expect(proxy.cuts).toBe(1);
  expect((await task.getStatus()).value).toBe("cancelled");
});

it("a result that breaks off is fetched again", async () => {
  const direct = createClient<Clients>({ url: served.url });
  const { id } = await direct.produce.submit({ bytes: 500_000 });
  const cuts: Cut[] = ["response"];
  await using proxy = await CuttingProxy.start(served.port, () => cuts.pop());
  const file = await createClient<Clients>({ url: proxy.url }).produce.task(id).wait();
  expect(proxy.cuts).toBe(1);
  expect(file).toMatchObject({ name: "produced.bin", size: 500_000 });
});

it("a log is followed over broken connections, without a gap and without a repeat", async () => {
  await using proxy = await CuttingProxy.start(served.port);
  const client = createClient<Clients>({ url: proxy.url });
  const task = await client.hold.submit();
  const events: TaskLogEvent[] = [];
  for await (const event of task.watch()) {
    events.push(event);
    if (event.type === "progress") {
      proxy.cutAll();
      await task.cancel({ abort: true });
    }
  }
  expect(proxy.cuts).toBe(1);
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  expect(events.map((event) => (event.type === "state" ? event.status : event.type))).toEqual([
    "queued",
    "running",
    "progress",
    "cancelled",
  ]);
});

it("a wait goes on when the connection breaks", async () => {
  await using proxy = await CuttingProxy.start(served.port);
  const client = createClient<Clients>({ url: proxy.url });
  const direct = createClient<Clients>({ url: served.url });
  const task = await client.hold.submit();
  const waited = task.wait({ onProgress: () => proxy.cutAll() });
  const ended = expect(waited).rejects.toMatchObject({ reason: "TASK_CANCELLED" });
  for await (const event of direct.hold.task(task.id).watch()) {
    if (event.type === "progress") {
      break;
    }
  }
  await expect.poll(() => proxy.cuts).toBe(1);
  await direct.hold.task(task.id).cancel({ abort: true });
  await ended;
});

it("waits, and reads on a kept connection, go on when connections are silent for ever", async () => {
  await using proxy = await CuttingProxy.start(served.port);
  const client = createClient<Clients>({ url: proxy.url });
  const direct = createClient<Clients>({ url: served.url });
  const task = await client.hold.submit();
  const reported = Promise.withResolvers<void>();
  const waited = task.wait({ onProgress: () => reported.resolve() }).catch((err: unknown) => err);
  await reported.promise;
  // Leaves a connection that is kept, beside that of the wait.
  const known = await client.hold.task(task.id).getStatus();
  proxy.silenceAll();
  const read = client.hold.task(task.id).getStatus();
  await direct.hold.task(task.id).cancel({ abort: true });
  expect(known.value).toBe("running");
  expect((await read).value).toBe("cancelled");
  expect(await waited).toMatchObject({ reason: "TASK_CANCELLED" });
}, 60_000);
