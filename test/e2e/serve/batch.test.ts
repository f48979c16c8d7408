import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("calls"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

interface Batch {
  readonly results: readonly {
    readonly task?: { readonly task_id: string; readonly status: string };
    readonly error?: { readonly reason: string; readonly message: string };
    readonly replayed?: boolean;
  }[];
  readonly accepted?: number;
  readonly refused?: number;
}

async function submit(tasks: readonly object[]): Promise<Batch> {
  const answer = await served.post("/api/v1/tasks:batchSubmit", { tasks });
  expect(answer.status, answer.text).toBe(200);
  return answer.json as Batch;
}

function sum(numbers: unknown, more: object = {}) {
  return { endpoint: "sum", arguments: { numbers }, ...more };
}

function idOf({ results }: Batch, index: number): string {
  return results[index]?.task?.task_id ?? "";
}

describe("a batch of tasks", () => {
  it("is queued whole, and answered in its order", async () => {
    const batch = await submit([sum([1]), { endpoint: "repeat_later", arguments: { text: "a" } }]);
    expect(batch).toMatchObject({ accepted: 2 });
    expect(batch.results.map(({ task }) => task?.status)).toEqual(["queued", "queued"]);
    expect((await served.result("sum", idOf(batch, 0))).json).toBe(1);
    expect((await served.result("repeat_later", idOf(batch, 1))).text).toBe("a");
  });

  it("of 1,000 runs to its end, with a result for each", async () => {
    const batch = await submit(Array.from({ length: 1_000 }, (_, number) => sum([number, 1])));
    expect(batch).toMatchObject({ accepted: 1_000 });
    const ids = batch.results.map((_, index) => idOf(batch, index));
    expect(new Set(ids).size).toBe(1_000);
    // Tasks of one priority start in the order of their ids.
    expect(ids.toSorted()).toEqual(ids);
    for (const index of [0, 499, 999]) {
      expect((await served.result("sum", ids[index] ?? "")).json).toBe(index + 1);
    }
    await Promise.all(ids.slice(-50).map((id) => served.ended("sum", id)));
  }, 30_000);

  it("has an error in the place of each task that is refused; the others are stored", async () => {
    const key = `batch ${Date.now()}`;
    const batch = await submit([
      sum("none"),
      sum([1], { idempotency_key: key }),
      { endpoint: "nothing" },
      { endpoint: "repeat", arguments: { text: "a" } },
      sum([1], { idempotency_key: key }),
      sum([2], { idempotency_key: key }),
      sum([1], { priority: 101 }),
      sum([1], { start_by: "2001-01-31T12:00:00Z" }),
      sum([1], { idempotency_key: "k".repeat(256) }),
      sum([5], { priority: 3, start_by: "2099-01-31T12:00:00Z" }),
      {},
    ]);
    const reasons = batch.results.map(({ error }) => error?.reason ?? "");
    expect(reasons).toEqual([
      ...["ARGUMENTS_INVALID", "", "ENDPOINT_NOT_FOUND", "ENDPOINT_NOT_A_TASK", ""],
      ...["IDEMPOTENCY_KEY_REUSED", "REQUEST_INVALID", "REQUEST_INVALID", "REQUEST_INVALID"],
      ...["REQUEST_INVALID", "ENDPOINT_NOT_FOUND"],
    ]);
    expect(batch).toMatchObject({ accepted: 2, refused: 9 });
    expect(batch.results[0]?.error).toMatchObject({
      code: "invalid_argument",
      message: expect.any(String),
      field_violations: [{ field: "numbers", description: expect.any(String) }],
    });
    expect(batch.results[4]).toMatchObject({ replayed: true });
    expect(idOf(batch, 4)).toBe(idOf(batch, 1));
  });

  it("fills a queue to its limit, and says when to come back for the rest", async () => {
    const first = await served.submit("gated", { url: gate.url });
    const arrival = await gate.arrival();
    const call = { endpoint: "gated", arguments: { url: gate.url } };
    const batch = await submit([call, call, call, sum([1])]);
    expect(batch).toMatchObject({ accepted: 3, refused: 1 });
    expect(batch.results[2]?.error).toMatchObject({
      code: "resource_exhausted",
      reason: "QUEUE_FULL",
      retry_after: expect.stringMatching(/^\d+s$/),
    });
    arrival.open("");
    await served.result("gated", first);
    for (const index of [0, 1]) {
      (await gate.arrival()).open(`${index}`);
      expect((await served.result("gated", idOf(batch, index))).status).toBe(200);
    }
  });

  it("starts with its most urgent task", async () => {
    const call = { endpoint: "gated", arguments: { url: gate.url } };
    const batch = await submit([call, { ...call, priority: 5 }]);
    const arrival = await gate.arrival();
    expect((await served.status("gated", idOf(batch, 1))).status).toBe("running");
    arrival.open("");
    (await gate.arrival()).open("");
    await served.result("gated", idOf(batch, 0));
  });

  it.each([
    ["no tasks", { tasks: [] }, "tasks"],
    ["1,001 tasks", { tasks: Array(1_001).fill({ endpoint: "sum" }) }, "tasks"],
    ["a field that is not there", { tasks: [{ endpoint: "sum", wait: "1s" }] }, "tasks[0].wait"],
  ])("with %s is refused as a whole", async (_, body, field) => {
    const found = refusal(await served.post("/api/v1/tasks:batchSubmit", body));
    expect(found).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
    expect(found.fields.join()).toContain(field.split("[")[0]);
  });

  it("is taken over gRPC as well", async () => {
    const sessionManager = new Http2SessionManager(served.origin);
    const transport = createGrpcTransport({ baseUrl: served.origin, sessionManager });
    const tasks = createClient(TaskService, transport);
    const input = { case: "arguments" as const, value: { numbers: [4] } };
    const batch = await tasks.submitTasks({
      tasks: [{ endpoint: "sum", input }, { endpoint: "sum" }],
    });
    expect([batch.accepted, batch.refused]).toEqual([1, 1]);
    expect(batch.results.map(({ outcome }) => outcome.case)).toEqual(["task", "error"]);
    sessionManager.abort();
  });
});
