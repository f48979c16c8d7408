import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../../src/client/index.ts";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, type Shown, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("calls"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

/** Submits a task that waits at the gate, with these query parameters. */
async function submitGated(query = ""): Promise<Shown> {
  const answer = await served.post(`/gated/submit${query}`, { url: gate.url });
  expect(answer.status, answer.text).toBe(202);
  return answer.json as Shown;
}

async function startGated() {
  const { task_id: id } = await submitGated();
  return { id, arrival: await gate.arrival() };
}

function rfc3339(inMs: number): string {
  return encodeURIComponent(new Date(Date.now() + inMs).toISOString());
}

describe("priority", () => {
  it("lets a task start before those that were submitted earlier", async () => {
    const first = await startGated();
    const low = await submitGated();
    const high = await submitGated("?priority=7");
    expect(await served.status("gated", low.task_id)).toMatchObject({ queue_position: 1 });
    expect(await served.status("gated", high.task_id)).toMatchObject({ queue_position: 0 });
    first.arrival.open("");
    const second = await gate.arrival();
    expect((await served.status("gated", high.task_id)).status).toBe("running");
    expect((await served.status("gated", low.task_id)).status).toBe("queued");
    second.open("");
    (await gate.arrival()).open("");
    await served.result("gated", low.task_id);
  });
});

describe("a key", () => {
  it("stands in the query or in a header, and is shown with the task and found", async () => {
    const body = { numbers: [1] };
    const written = await served.post("/sum/submit?key=ada", body);
    const sent = await served.post("/sum/submit", body, { "tessera-key": "ada" });
    const ids = [written, sent].map(({ json }) => (json as Shown).task_id);
    for (const id of ids) {
      expect(await served.ended("sum", id)).toMatchObject({ key: "ada", status: "success" });
    }
    const called = await served.post("/sum", body, { "tessera-key": "bob" });
    expect(called.status).toBe(200);
    const listed = (await served.get("/api/v1/tasks?key=ada")).json as {
      readonly tasks: readonly Shown[];
    };
    expect(listed.tasks.map(({ task_id: id }) => id).sort()).toEqual(ids.sort());
  });

  it.each([
    ["has 10,000 characters", `/sum/submit?key=${"k".repeat(10_000)}`, {}],
    ["has control characters", "/sum/submit?key=a%00b", {}],
    ["contradicts the header", "/sum/submit?key=ada", { "tessera-key": "bob" }],
  ])("is refused where it %s", async (_what, path, headers) => {
    const answer = await served.post(path, { numbers: [1] }, headers);
    const refused = { status: 400, reason: "REQUEST_INVALID", fields: ["key"] };
    expect(refusal(answer)).toMatchObject(refused);
  });
});

describe("tags", () => {
  it("are shown, found and kept over a retry; those that cannot be are refused by name", async () => {
    const query = "?tags=customer:42,%20night%20run&delay=60";
    const { json } = await served.post(`/sum/submit${query}`, { numbers: [1] });
    const { task_id: id } = json as Shown;
    const tags = ["customer:42", "night run"];
    expect(await served.status("sum", id)).toMatchObject({ tags });
    const listed = await served.fetch("/api/v1/tasks?tags=night+run&tags=customer:42");
    expect(listed.json).toMatchObject({ tasks: [{ task_id: id, tags }] });
    expect((await served.fetch("/api/v1/tasks?tags=night")).json).not.toHaveProperty("tasks.0");
    await served.fetch(`/sum/cancel?task_id=${id}`, { method: "POST" });
    const retry = await served.fetch(`/sum/retry?task_id=${id}`, { method: "PUT" });
    const { task_id: retried } = retry.json as Shown;
    expect(await served.ended("sum", retried)).toMatchObject({ tags, retry_of: id });
    for (const [refused, field] of [
      ["a,b,c,d,e,f,g,h,i,j,k", "tags"],
      [`a,${"b".repeat(65)}`, "tags[1]"],
      ["a,,b", "tags[1]"],
      ["", "tags[0]"],
      ["a,b,a", "tags[2]"],
      ["a%0Ab", "tags[0]"],
    ] as const) {
      const answer = await served.post(`/sum/submit?tags=${refused}`, { numbers: [] });
      expect(refusal(answer), refused).toMatchObject({ status: 400, fields: [field] });
    }
  });
});

describe("a delay", () => {
  // On a busy machine a moment can be long; the poll would be late every time.
  it("keeps a task from starting before its time, and no longer than a moment after", {
    retry: 3,
  }, async () => {
    const answer = await served.post("/sum/submit?delay=0.6", { numbers: [1] });
    const { task_id: id, created_at, expires_at, ...rest } = answer.json as Shown;
    expect(rest).toEqual({ status: "queued" });
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBeGreaterThan(24 * 3_600_000 + 500);
    const { started_at } = await served.ended("sum", id);
    const delayMs = Date.parse(started_at ?? "") - Date.parse(created_at);
    expect(delayMs).toBeGreaterThanOrEqual(590);
    // The poll, without the alarm, comes up to 1.1 s later.
    expect(delayMs).toBeLessThan(1_100);
  });

  it("can be a time; one that has passed is none", async () => {
    const later = await served.post(`/sum/submit?run_at=${rfc3339(60_000)}`, { numbers: [] });
    const { task_id: id } = later.json as Shown;
    expect((await served.status("sum", id)).status).toBe("queued");
    expect((await served.fetch(`/sum/cancel?task_id=${id}`, { method: "POST" })).status).toBe(200);
    const past = await served.post(`/sum/submit?run_at=${rfc3339(-60_000)}`, { numbers: [2] });
    expect((await served.result("sum", (past.json as Shown).task_id)).json).toBe(2);
  });
});

describe("a deadline to start", () => {
  it("fails a task that still waits at it, tells those who wait, and never runs it", async () => {
    const { id: first, arrival } = await startGated();
    const { task_id: id } = await submitGated("?start_within=0.3");
    const waiting = served.result("gated", id);
    const failed = refusal(await waiting);
    expect(failed).toMatchObject({
      status: 504,
      code: "deadline_exceeded",
      reason: "TASK_FAILED",
      metadata: { failure_reason: "expired" },
    });
    const shown = await served.status("gated", id);
    expect(shown).toMatchObject({ status: "failure", attempt: 0, failure: { reason: "expired" } });
    const lateMs = Date.parse(shown.finished_at ?? "") - Date.parse(shown.created_at) - 300;
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(5_000);
    arrival.open("");
    await served.result("gated", first);
    expect(gate.waiting).toBe(0);
    const events = await served.get(`/gated/events?task_id=${id}`);
    expect(events.text).toContain('"reason":"expired"');
  });

  it("does nothing to a task that starts in time", async () => {
    const answer = await served.post(`/sum/submit?start_by=${rfc3339(60_000)}`, { numbers: [3] });
    expect((await served.result("sum", (answer.json as Shown).task_id)).json).toBe(3);
  });
});

describe("the place in the queue", () => {
  it("is told of a task that waits, with an estimate once a run was measured", async () => {
    const { arrival } = await startGated();
    const next = await submitGated();
    const after = await submitGated();
    expect([next.queue_position, after.queue_position]).toEqual([0, 1]);
    const [first, second] = [next, after].map(({ estimated_start }) => estimated_start ?? "");
    expect(Date.parse(first ?? "")).toBeGreaterThanOrEqual(Date.parse(next.created_at));
    expect(Date.parse(second ?? "")).toBeGreaterThan(Date.parse(first ?? ""));
    const { json } = await served.get(`/api/v1/tasks/${after.task_id}`);
    expect(json).toMatchObject({ queue_position: 1, estimated_start: expect.any(String) });
    expect((json as { readonly queued_reason: object }).queued_reason).toEqual({
      code: "workers_busy",
      message: "its worker is busy; 1 task is before it",
    });
    arrival.open("");
    const second_ = await gate.arrival();
    expect(await served.status("gated", after.task_id)).toMatchObject({ queue_position: 0 });
    second_.open("");
    (await gate.arrival()).open("");
    await served.result("gated", after.task_id);
    const ended = await served.status("gated", after.task_id);
    expect(ended).not.toHaveProperty("queue_position");
    expect(ended).not.toHaveProperty("estimated_start");
  });

  it("sets the time after which a full queue should be asked again", async () => {
    const { arrival } = await startGated();
    const ids = [await submitGated(), await submitGated()];
    const refused = await served.post("/gated/submit", { url: gate.url });
    expect(refusal(refused).reason).toBe("QUEUE_FULL");
    // The runs so far took far less than a second, which is the least that is told.
    expect(refused.headers.get("retry-after")).toBe("1");
    arrival.open("");
    for (const { task_id: id } of ids) {
      (await gate.arrival()).open("");
      await served.result("gated", id);
    }
  });
});

describe("the schedule of a task", () => {
  it("is shown with its status", async () => {
    const query = `?priority=7&run_at=${rfc3339(60_000)}&start_by=${rfc3339(90_000)}`;
    const submitted = (await served.post(`/sum/submit${query}`, { numbers: [] })).json as Shown;
    const shown = await served.status("sum", submitted.task_id);
    const { priority, run_at, start_by } = shown as unknown as Record<string, string>;
    expect(priority).toBe(7);
    expect(Date.parse(start_by ?? "") - Date.parse(run_at ?? "")).toBeGreaterThan(25_000);
    const plain = (await served.post("/sum/submit", { numbers: [] })).json as Shown;
    const usual = { priority: 0, run_at: null, start_by: null };
    expect(await served.ended("sum", plain.task_id)).toMatchObject(usual);
  });

  it("gives a retry the priority of the original, and no delay", async () => {
    const submitted = await served.post("/sum/submit?priority=7&delay=0.1", { numbers: [1] });
    const { task_id: original } = submitted.json as Shown;
    await served.ended("sum", original);
    const retried = await served.post(`/sum/retry?task_id=${original}`, undefined);
    const { task_id: id } = retried.json as Shown;
    expect(await served.ended("sum", id)).toMatchObject({ priority: 7, run_at: null });
  });

  it("belongs to what an idempotency key stands for, as it was written", async () => {
    const submit = (key: string, query: string) =>
      served.post(`/sum/submit${query}`, { numbers: [1] }, { "idempotency-key": key });
    const schedules = ["?delay=0.2&priority=3", "?delay=0.2", "", `?start_by=${rfc3339(60_000)}`];
    for (const [index, query] of schedules.entries()) {
      const first = await submit(`key-${index}`, query);
      const again = await submit(`key-${index}`, query);
      expect(again.json).toMatchObject({ task_id: (first.json as Shown).task_id });
      const other = await submit(`key-${index}`, schedules[(index + 1) % 4] ?? "");
      expect(refusal(other)).toMatchObject({ status: 409, reason: "IDEMPOTENCY_KEY_REUSED" });
    }
  });
});

it.each([
  ["priority=101", "priority"],
  ["priority=1.5", "priority"],
  ["priority=1&priority=2", "priority"],
  ["delay=-1", "delay"],
  ["delay=soon", "delay"],
  ["delay=2592001", "delay"],
  ["delay=1&run_at=2026-01-31T12:00:00Z", "delay"],
  ["run_at=tomorrow", "run_at"],
  ["run_at=2026-01-31T12:00:00", "run_at"],
  ["start_by=2001-01-31T12:00:00%2B01:00", "start_by"],
  ["start_by=2001-01-31T12:00:00+01:00", "start_by"],
  ["start_within=0", "start_within"],
  ["start_within=31622000", "start_within"],
  ["delay=20&start_within=10", "start_within"],
  ["retention=0.5", "retention"],
  ["retention=31536001", "retention"],
  ["retention=long", "retention"],
])("a submit with %s is refused naming what is wrong", async (query, field) => {
  const answer = await served.post(`/sum/submit?${query}`, { numbers: [] });
  expect(refusal(answer)).toMatchObject({
    status: 400,
    reason: "REQUEST_INVALID",
    fields: [field],
  });
});

it("a result is kept as long as its submit says, by its path, by REST and by the client", async () => {
  const kept = async (id: string): Promise<number> => {
    const { expires_at, finished_at } = await served.ended("sum", id);
    return Date.parse(expires_at) - Date.parse(finished_at ?? "");
  };
  const byPath = await served.post("/sum/submit?retention=90", { numbers: [1] });
  expect(await kept((byPath.json as { task_id: string }).task_id)).toBe(90_000);
  const call = { endpoint: "sum", arguments: { numbers: [1] }, retention: "7200s" };
  const batch = await served.post("/api/v1/tasks:batchSubmit", { tasks: [call] });
  const [{ task }] = (batch.json as { results: [{ task: { task_id: string } }] }).results;
  expect(await kept(task.task_id)).toBe(7_200_000);
  const { sum } = createClient({ url: served.origin });
  const submitted = await sum?.submit({ numbers: [1] }, { retention: "2h" });
  expect(await kept(submitted?.id ?? "")).toBe(7_200_000);
});

describe("what is refused at the door", () => {
  it.each([
    ["/sum/submit?prioritty=7", "prioritty", /did you mean priority\?/],
    ["/sum/submit?wait=3", "wait", /unknown query parameter/],
    ["/sum/submit?dleay=3", "dleay", /did you mean delay\?/],
    ["/sum?delay=3", "delay", /unknown query parameter/],
    ["/sum/submit?run_at=2026-11-31T00:00:00Z", "run_at", /a time that exists/],
    ["/sum/submit?start_within=0", "start_within", /longer than 0/],
    ["/sum/submit?delay=60&start_within=60", "start_within", /after delay/],
    ["/sum/cancel?task_di=1", "task_di", /did you mean task_id\?/],
    ["/sum/retry?task_id=1&abort=true", "abort", /unknown query parameter/],
  ])("%s names %s", async (path, field, description) => {
    const refused = refusal(await served.post(path, { numbers: [] }));
    expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID", fields: [field] });
    expect(refused.message).toMatch(description);
  });

  it.each(["h=3", "numbers=1", "file=a.txt", "run_id=7", "_=1712", "utm_source=mail&h=1&h=2"])(
    "a query ?%s of the function's own is nobody's fault",
    async (query) => {
      expect((await served.post(`/sum?${query}`, { numbers: [1] })).status).toBe(200);
      expect((await served.post(`/sum/submit?${query}`, { numbers: [1] })).status).toBe(202);
    },
  );

  it("REST takes no parameter that it does not know", async () => {
    const refused = refusal(await served.post("/api/v1/tasks?h=3", { endpoint: "sum" }));
    expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID", fields: ["h"] });
  });

  it.each(["/sum", "/sum/submit", "/sum/cancel", "/api/v1/tasks"])(
    "%s reads no charset but UTF-8",
    async (path) => {
      const type = "application/json; charset=iso-8859-1";
      expect(refusal(await served.post(path, {}, { "content-type": type }))).toMatchObject({
        status: 415,
        reason: "CONTENT_TYPE_UNSUPPORTED",
      });
    },
  );

  it("names the item of a batch that has two inputs, and unknown fields in it", async () => {
    const item = { endpoint: "sum", arguments: { numbers: [] } };
    const batch = (second: object) =>
      served.post("/api/v1/tasks:batchSubmit", { tasks: [item, { ...item, ...second }] });
    expect(refusal(await batch({ body: { content_type: "a", data: "" } })).fields).toEqual([
      "tasks[1].arguments",
    ]);
    const unknown = refusal(await batch({ endpont: "sum" }));
    expect(unknown.fields).toEqual(["tasks[1].endpont"]);
    expect(unknown.message).toMatch(/did you mean endpoint\?/);
  });
});
