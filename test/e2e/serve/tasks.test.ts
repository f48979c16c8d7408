import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, type Shown, serve } from "./served.ts";

const UUID_V8 = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("calls"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

/** Submits a task that waits at the gate, and gives it back when it is there. */
async function startGated() {
  const id = await served.submit("gated", { url: gate.url });
  return { id, arrival: await gate.arrival() };
}

describe("submit", () => {
  it("answers 202 with the id of the task, its times and where its status is", async () => {
    const before = Date.now();
    const { status, json, headers } = await served.post("/sum/submit", { numbers: [1] });
    const shown = json as Shown;
    expect(status).toBe(202);
    const { queue_position: _position, estimated_start: _start, ...rest } = shown;
    expect(Object.keys(rest).sort()).toEqual(["created_at", "expires_at", "status", "task_id"]);
    expect(shown).toMatchObject({ status: "queued", task_id: expect.stringMatching(UUID_V8) });
    expect(headers.get("location")).toBe(`/sum/status?task_id=${shown.task_id}`);
    expect(headers.get("idempotent-replayed")).toBeNull();
    const created = Date.parse(shown.created_at);
    expect(created).toBeGreaterThanOrEqual(before);
    expect(Date.parse(shown.expires_at) - created).toBe(24 * 3_600_000);
  });

  it("gives the same task again for the same key and body, and 409 for another body", async () => {
    const headers = { "idempotency-key": "order 1" };
    const first = await served.post("/sum/submit", { numbers: [1] }, headers);
    const again = await served.post("/sum/submit", { numbers: [1] }, headers);
    expect((again.json as Shown).task_id).toBe((first.json as Shown).task_id);
    expect(again.status).toBe(202);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(refusal(await served.post("/sum/submit", { numbers: [2] }, headers))).toMatchObject({
      status: 409,
      code: "already_exists",
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
  });

  it("takes the key of another endpoint as another key", async () => {
    const headers = { "idempotency-key": "order 2" };
    const first = await served.post("/sum/submit", { numbers: [1] }, headers);
    const other = await served.post("/repeat_later/submit", { text: "a" }, headers);
    expect(other.status).toBe(202);
    expect((other.json as Shown).task_id).not.toBe((first.json as Shown).task_id);
  });

  it("gives ten callers with one key one task", async () => {
    const submit = () =>
      served.post("/sum/submit", { numbers: [3] }, { "idempotency-key": "order 3" });
    const answers = await Promise.all(Array.from({ length: 10 }, submit));
    expect(new Set(answers.map(({ json }) => (json as Shown).task_id)).size).toBe(1);
    expect(answers.filter(({ headers }) => !headers.has("idempotent-replayed"))).toHaveLength(1);
  });

  it("answers with the result when it is preferred to wait and the task ends in time", async () => {
    const answer = await served.post("/sum/submit", { numbers: [4] }, { prefer: "wait=20" });
    expect(answer).toMatchObject({ status: 200, json: 4 });
    expect(answer.headers.get("preference-applied")).toBe("wait=20");
    const id = answer.headers.get("tessera-task-id") ?? "";
    expect((await served.status("sum", id)).status).toBe("success");
  });

  it("answers 202 when the preferred wait was not enough", async () => {
    const answer = await served.post(
      "/gated/submit",
      { url: gate.url },
      { prefer: "respond-async, wait=1" },
    );
    expect(answer).toMatchObject({ status: 202, json: { status: "queued" } });
    (await gate.arrival()).open("late");
    const { task_id: id } = answer.json as Shown;
    expect((await served.result("gated", id)).text).toBe("late");
  });
});

describe("status", () => {
  it("tells all of a task, and with wait answers at its next change", async () => {
    const { id, arrival } = await startGated();
    const running = await served.until("gated", id, ({ progress }) => progress !== null);
    expect(running).toEqual({
      task_id: id,
      status: "running",
      created_at: expect.any(String),
      started_at: expect.any(String),
      finished_at: null,
      priority: 0,
      run_at: null,
      start_by: null,
      expires_at: expect.any(String),
      attempt: 1,
      attempts: [
        {
          number: 1,
          worker: expect.any(String),
          node: expect.any(String),
          started_at: expect.any(String),
          ended_at: null,
          failure: null,
          retry_at: null,
          peak_memory_bytes: null,
        },
      ],
      progress: { fraction: 0.25, message: "at the gate" },
      retry_of: null,
      tags: [],
      failure: null,
    });
    const next = served.status("gated", id, 30);
    arrival.open("done");
    expect(await next).toMatchObject({ status: "success", finished_at: expect.any(String) });
  });

  it("with wait answers at once for a task that has ended", async () => {
    const id = await served.submit("sum", { numbers: [] });
    await served.result("sum", id);
    expect((await served.status("sum", id, 60)).status).toBe("success");
  });

  it("says when the wait was not enough that nothing has changed", async () => {
    const { id, arrival } = await startGated();
    await served.until("gated", id, ({ progress }) => progress !== null);
    const answer = await served.get(`/gated/status?task_id=${id}&wait=0.05`);
    expect(answer.json).toMatchObject({ status: "running" });
    arrival.open("");
    await served.result("gated", id);
  });
});

describe("get", () => {
  it("gives a string as text, and reading does not consume it", async () => {
    const id = await served.submit("repeat_later", { text: "ü", times: 3 });
    const first = await served.result("repeat_later", id);
    expect(first.text).toBe("üüü");
    expect(first.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect((await served.get(`/repeat_later/get?task_id=${id}`)).text).toBe("üüü");
  });

  it("gives a file with its content type and name", async () => {
    const id = await served.submit("draw", { name: 'b "1" é.png' });
    const { body, headers } = await served.result("draw", id);
    expect(body.toString("hex")).toBe("89504e470d0a1a0a");
    expect(headers.get("content-type")).toBe("image/png");
    expect(headers.get("content-disposition")).toBe(
      "inline; filename=\"b _1_ _.png\"; filename*=UTF-8''b%20%221%22%20%C3%A9.png",
    );
    const unnamed = await served.result("draw", await served.submit("draw", { name: "" }));
    expect(unnamed.headers.get("content-type")).toBe("image/png");
    expect(unnamed.headers.get("content-disposition")).toBe("inline");
  });

  it("with wait answers when the task ends", async () => {
    const { id, arrival } = await startGated();
    const result = served.result("gated", id);
    arrival.open("through");
    expect((await result).text).toBe("through");
  });
});

describe("cancel", () => {
  it.each([
    ["POST", (id: string) => [`?task_id=${id}`, undefined] as const],
    ["PUT", (id: string) => [`?task_id=${id}`, undefined] as const],
    ["POST", (id: string) => ["", JSON.stringify({ task_id: id })] as const],
    ["PUT", (id: string) => [`?task_id=${id}`, JSON.stringify({ task_id: id })] as const],
  ])("with %s stops a task that is queued (%#)", async (method, request) => {
    const { id: first, arrival } = await startGated();
    const id = await served.submit("gated", { url: gate.url });
    const [query, body] = request(id);
    const init = { method, ...(body !== undefined && { body }) };
    const answer = await served.fetch(`/gated/cancel${query}`, init);
    expect(answer).toMatchObject({ status: 200, json: { task_id: id, status: "cancelled" } });
    arrival.open("");
    await served.result("gated", first);
    expect(await served.status("gated", id)).toMatchObject({ status: "cancelled", attempt: 0 });
    expect(gate.waiting).toBe(0);
  });
});

describe("update", () => {
  const update = (id: string, change: object) =>
    served.fetch(`/api/v1/tasks/${id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(change),
    });
  const later = async () => {
    const { json } = await served.post("/sum/submit?delay=3600&start_within=7200", {
      numbers: [7],
    });
    return (json as Shown).task_id;
  };

  it("starts a task at once that was to start later", async () => {
    const id = await later();
    expect(await update(id, { priority: 5 })).toMatchObject({
      status: 200,
      json: { priority: 5, status: "queued" },
    });
    const changed = await update(id, { update_mask: "runAt,startBy,retention", retention: "60s" });
    expect(changed.status).toBe(200);
    expect((await served.result("sum", id)).json).toBe(7);
    expect(refusal(await update(id, { priority: 1 }))).toMatchObject({ reason: "TASK_FINISHED" });
  });

  it.each([
    [{}, "update_mask"],
    [{ priority: 101 }, "priority"],
    [{ update_mask: "retention" }, "retention"],
    [{ update_mask: "status" }, "update_mask"],
    [{ retention: "0.5s" }, "retention"],
    [{ run_at: new Date(Date.now() + 40 * 86_400_000).toISOString() }, "run_at"],
    [{ run_at: new Date(Date.now() + 9_000_000).toISOString() }, "run_at"],
    [{ start_by: new Date(Date.now() + 1_000_000).toISOString() }, "start_by"],
    [{ start_by: "2020-01-01T00:00:00Z" }, "start_by"],
  ])("is refused: %j", async (change, field) => {
    const id = await later();
    const refused = refusal(await update(id, change));
    expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
    expect(refused.fields).toEqual([field]);
    await served.fetch(`/api/v1/tasks/${id}`, { method: "DELETE" });
  });

  it("is refused for a task that runs or has ended, whatever it says of times", async () => {
    const { json } = await served.post("/gated/submit?start_within=60", { url: gate.url });
    const id = (json as Shown).task_id;
    const arrival = await gate.arrival();
    const change = { priority: 1, run_at: new Date(Date.now() + 600_000).toISOString() };
    expect(refusal(await update(id, change))).toMatchObject({ reason: "TASK_ALREADY_STARTED" });
    arrival.open("done");
    expect((await served.result("gated", id)).text).toBe("done");
    expect(refusal(await update(id, change))).toMatchObject({ reason: "TASK_FINISHED" });
  });
});

describe("delete", () => {
  it("ends the wait for a task, whose id then says that it was deleted", async () => {
    const submitted = await served.post("/sum/submit?delay=3600", { numbers: [1] });
    const id = (submitted.json as Shown).task_id;
    const waiting = served.fetch(`/sum/get?task_id=${id}&wait=30`);
    const path = `/api/v1/tasks/${id}`;
    expect(await served.fetch(path, { method: "DELETE" })).toMatchObject({ status: 200, json: {} });
    const gone = { status: 404, reason: "TASK_NOT_FOUND" };
    expect(refusal(await waiting)).toMatchObject(gone);
    for (const about of ["status", "get", "arguments", "events"]) {
      expect(refusal(await served.fetch(`/sum/${about}?task_id=${id}`))).toMatchObject({
        ...gone,
        message: expect.stringContaining("was deleted on"),
      });
    }
    expect(refusal(await served.fetch(path, { method: "DELETE" }))).toMatchObject(gone);
  });

  it("takes a result that this server remembers", async () => {
    const id = await served.submit("sum", { numbers: [40, 2] });
    expect(await served.ended("sum", id)).toMatchObject({ status: "success" });
    const other = `/api/v1/tasks/${id}?endpoint=describe_later`;
    expect((await served.fetch(other, { method: "DELETE" })).status).toBe(404);
    await served.fetch(`/api/v1/tasks/${id}`, { method: "DELETE" });
    expect((await served.fetch(`/sum/get?task_id=${id}`)).status).toBe(404);
  });
});

describe("retry", () => {
  it.each(["PUT", "POST"])("with %s makes a new task with the same arguments", async (method) => {
    const id = await served.submit("sum", { numbers: [20, 22] });
    await served.result("sum", id);
    const answer = await served.fetch(`/sum/retry?task_id=${id}`, { method });
    const again = answer.json as Shown;
    expect(answer.status).toBe(202);
    expect(answer.headers.get("location")).toBe(`/sum/status?task_id=${again.task_id}`);
    expect(again).toMatchObject({ status: "queued", retry_of: id });
    expect(again.task_id).not.toBe(id);
    expect((await served.result("sum", again.task_id)).json).toBe(42);
    expect(await served.status("sum", again.task_id)).toMatchObject({ retry_of: id });
    expect(await served.status("sum", id)).toMatchObject({ status: "success", retry_of: null });
  });

  it("is counted as a call of its endpoint, whether the caller names that or not", async () => {
    const counted = async (code: string): Promise<number> => {
      const { text } = await served.get("/metrics");
      const lines =
        /^tessera_requests_total\{(?=[^}]*code="(\w+)")(?=[^}]*endpoint="sum")[^}]*\} (\d+)$/gm;
      return [...text.matchAll(lines)].reduce(
        (sum, [, of, count]) => sum + (of === code ? Number(count) : 0),
        0,
      );
    };
    const id = await served.submit("sum", { numbers: [1] });
    await served.result("sum", id);
    const before = await counted("ok");
    const refusedBefore = await counted("already_exists");
    await served.fetch(`/sum/retry?task_id=${id}`, { method: "POST" });
    const transport = createConnectTransport({ baseUrl: served.origin, httpVersion: "1.1" });
    const { retryTask } = createClient(TaskService, transport);
    const key = { idempotencyKey: "counted retry" };
    const { taskId } = await retryTask({ taskId: id, ...key });
    await retryTask({ taskId: id, ...key });
    expect(await counted("ok")).toBe(before + 3);
    await served.result("sum", taskId);
    await expect(retryTask({ taskId, ...key })).rejects.toThrow("was used for another call");
    expect(await counted("already_exists")).toBe(refusedBefore + 1);
  });

  it("gives the same new task again for the same key, and 409 for another task", async () => {
    const [id, other] = await Promise.all([
      served.submit("sum", { numbers: [1] }),
      served.submit("sum", { numbers: [1] }),
    ]);
    await Promise.all([served.result("sum", id), served.result("sum", other)]);
    const headers = { "idempotency-key": "retry 1" };
    const retry = (task: string) =>
      served.fetch(`/sum/retry?task_id=${task}`, { method: "PUT", headers });
    const answers = await Promise.all([retry(id), retry(id), retry(id)]);
    const [first = "", ...rest] = answers.map(({ json }) => (json as Shown).task_id);
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
    expect(rest).toEqual([first, first]);
    expect(answers.filter(({ headers }) => !headers.has("idempotent-replayed"))).toHaveLength(1);
    await served.result("sum", first);
    const later = await retry(id);
    expect(later.headers.get("idempotent-replayed")).toBe("true");
    expect(later.json).toMatchObject({ task_id: first, retry_of: id, status: "success" });
    const reused = { status: 409, reason: "IDEMPOTENCY_KEY_REUSED" };
    expect(refusal(await retry(other))).toMatchObject(reused);
    expect(refusal(await served.post("/sum/submit", { numbers: [1] }, headers))).toMatchObject(
      reused,
    );
  });

  it("says over REST too that a key has been used", async () => {
    const id = await served.submit("sum", { numbers: [1] });
    await served.result("sum", id);
    const body = { idempotency_key: "retry 2" };
    const first = await served.post(`/api/v1/tasks/${id}:retry`, body);
    const again = await served.post(`/api/v1/tasks/${id}:retry`, body);
    expect((again.json as Shown).task_id).toBe((first.json as Shown).task_id);
    expect(first.headers.has("idempotent-replayed")).toBe(false);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
  });

  it("keeps files, and runs what failed or was cancelled", async () => {
    const id = await served.submit("describe_later", { image: "data:image/png;base64,aGk=" });
    const first = await served.result("describe_later", id);
    const retried = await served.fetch("/describe_later/retry", {
      method: "PUT",
      body: JSON.stringify({ task_id: id }),
    });
    const again = (retried.json as Shown).task_id;
    expect((await served.result("describe_later", again)).json).toEqual(first.json);
    const failed = await served.submit("fail_later", { how: "error" });
    expect((await served.ended("fail_later", failed)).status).toBe("failure");
    expect((await served.send(`/fail_later/retry?task_id=${failed}`, undefined)).status).toBe(202);
  });
});
