import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("calls", { maxWaiting: 1 }), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

async function startGated() {
  const id = await served.submit("gated", { url: gate.url });
  return { id, arrival: await gate.arrival() };
}

describe("when as many callers wait as may", () => {
  const full = { status: 429, code: "resource_exhausted", reason: "TOO_MANY_WAITING" };

  it("the next is refused with Retry-After, and those who do not wait are served", async () => {
    const { id, arrival } = await startGated();
    const wait = async (): Promise<string> => {
      const { status, text } = await served.result("gated", id);
      return status === 429 ? wait() : text;
    };
    const waiting = wait();
    const ask = () => served.get(`/gated/get?task_id=${id}&wait=0.01`);
    await expect.poll(async () => (await ask()).status).toBe(429);
    const refused = await served.get(`/gated/status?task_id=${id}&wait=1`);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refusal(refused)).toMatchObject(full);
    expect(refusal(await served.get(`/gated/events?task_id=${id}`))).toMatchObject(full);
    expect((await served.status("gated", id)).status).toBe("running");
    arrival.open("through");
    expect(await waiting).toBe("through");
  });

  it.each([
    ["a long poll", (id: string) => `/gated/get?task_id=${id}&wait=60`],
    ["a stream of events", (id: string) => `/gated/events?task_id=${id}`],
  ])("one that leaves makes room: %s", async (_, path) => {
    const { id, arrival } = await startGated();
    const leaving = new AbortController();
    // Until it gets in: the questions below may be there first.
    const wait = async (): Promise<string> => {
      const res = await fetch(served.origin + path(id), { signal: leaving.signal });
      return res.status === 429 ? wait() : res.text();
    };
    const left = wait().catch((err: Error) => err.name);
    const ask = async () => (await served.get(`/gated/get?task_id=${id}&wait=0.01`)).status;
    await expect.poll(ask).toBe(429);
    leaving.abort();
    expect(await left).toBe("AbortError");
    await expect.poll(ask).toBe(400);
    arrival.open("");
    expect((await served.result("gated", id)).status).toBe(200);
  });
});

describe("a submit with a preference to wait", () => {
  const prefer = { prefer: "wait=30" };

  it("answers the failure of the task, naming the task", async () => {
    const found = refusal(await served.post("/fail_later/submit", { how: "not_found" }, prefer));
    expect(found).toMatchObject({ status: 404, reason: "TASK_FAILED", message: "no such model" });
    const id = found.metadata.task_id ?? "";
    expect((await served.status("fail_later", id)).status).toBe("failure");
  });

  it("and a key that was used before gives the result of the first task", async () => {
    const headers = { ...prefer, "idempotency-key": "again" };
    const first = await served.post("/sum/submit", { numbers: [5] }, headers);
    const again = await served.post("/sum/submit", { numbers: [5] }, headers);
    expect(again).toMatchObject({ status: 200, json: 5 });
    const name = "tessera-task-id";
    expect(again.headers.get(name)).toBe(first.headers.get(name));
  });

  it("that cannot be understood is a submit like any other", async () => {
    for (const preference of ["wait=soon", "wait", "handling=lenient", "wait=0"]) {
      const answer = await served.post("/sum/submit", { numbers: [] }, { prefer: preference });
      expect(answer.status, preference).toBe(202);
    }
  });
});

it("what only the function's own schema can refuse is told with its fields", async () => {
  const found = refusal(await served.post("/between", { from: 2, to: 1 }));
  expect(found).toMatchObject({ status: 400, code: "invalid_argument", fields: ["to"] });
  expect(found.message).toContain("must not be before from");
  expect(await served.post("/between", { from: 1, to: 2 })).toMatchObject({ json: 1 });
});
