import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseUrl } from "../../storage/postgres/databases.ts";
import { Gate } from "./gate.ts";
import { type Served, serve } from "./served.ts";

let nodes: [Served, Served];
let gate: Gate;
beforeAll(async () => {
  const database = await databaseUrl();
  const options = { database, graceMs: 100, drainMs: 1_000 };
  const first = await serve("faults", options);
  nodes = [first, await serve("faults", options)];
  gate = await Gate.build();
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  await gate[Symbol.asyncDispose]();
});

const deaf = () => ({ url: gate.url, listens: false });

describe("two nodes on one Postgres", () => {
  it("a task submitted on one is known on the other, which waits for its result", async () => {
    const [one, other] = nodes;
    const id = await one.submit("gated", deaf());
    const result = other.result("gated", id);
    (await gate.arrival()).open("from the first");
    expect((await result).json).toBe("from the first");
    expect((await other.status("gated", id)).status).toBe("success");
  });

  it("the events of a task are told on the other node as they happen", async () => {
    const [one, other] = nodes;
    const id = await one.submit("gated", deaf());
    const events = await fetch(`${other.origin}/gated/events?task_id=${id}`);
    const arrival = await gate.arrival();
    let text = "";
    for await (const chunk of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes('"running"')) {
        arrival.open("seen");
      }
    }
    expect(text.match(/"status":"(\w+)"/g)).toEqual([
      '"status":"queued"',
      '"status":"running"',
      '"status":"success"',
    ]);
  });

  it("what one cannot take is run by the other", async () => {
    const [one] = nodes;
    // Two on one worker of a node, so that the third has to go elsewhere.
    const ids = [];
    for (let count = 0; count < 3; count++) {
      ids.push(await one.submit("gated", deaf()));
    }
    const arrivals = [await gate.arrival(), await gate.arrival(), await gate.arrival()];
    expect(new Set(arrivals.map(({ pid }) => pid)).size).toBe(2);
    for (const arrival of arrivals) {
      arrival.open("done");
    }
    for (const id of ids) {
      expect((await one.result("gated", id)).json).toBe("done");
    }
  });

  it("a running task is aborted from the other node, within a quarter of a second", async () => {
    const [one, other] = nodes;
    const id = await one.submit("gated", { url: gate.url, listens: true });
    const arrival = await gate.arrival();
    const begunMs = performance.now();
    const cancelled = other.fetch(`/gated/cancel?task_id=${id}&abort=true`, { method: "POST" });
    await arrival.gone;
    const tookMs = performance.now() - begunMs;
    expect((await cancelled).json).toMatchObject({ task_id: id, status: "cancelled" });
    // The machine of a test may be busy; alone it takes some 30 ms.
    expect(tookMs).toBeLessThan(1_000);
  });

  it("an idempotency key means the same on both", async () => {
    const key = { "idempotency-key": "once" };
    const answers = [];
    for (const node of nodes) {
      answers.push((await node.post("/pid_later/submit", {}, key)).json as { task_id: string });
    }
    expect(answers[1]?.task_id).toBe(answers[0]?.task_id);
  });
});
