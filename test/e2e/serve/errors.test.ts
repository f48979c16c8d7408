import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { type Answer, type Served, type Shown, serve } from "./served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([
    serve("calls", { jsonBodyBytes: 10_000, fileBodyBytes: 20_000, maxResultBytes: 30 }),
    Gate.build(),
  ]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

const UNKNOWN_ID = "01990000-0000-7000-8000-000000000000";

describe("bad arguments", () => {
  const wrong = {
    status: 400,
    code: "invalid_argument",
    reason: "ARGUMENTS_INVALID",
  };

  it("are refused with one field violation each, by call and by submit alike", async () => {
    for (const path of ["/repeat", "/repeat_later", "/repeat_later/submit"]) {
      const found = refusal(await served.post(path, { text: "", times: 9 }));
      expect(found).toMatchObject({ ...wrong, fields: ["text", "times"] });
      expect(found.message).toMatch(/^endpoint repeat(_later)?: argument "text" .*and 1 more/);
    }
  });

  it.each([
    [{}, "text"],
    [{ text: 1 }, "text"],
    [{ text: "a", bogus: 1 }, "bogus"],
    [{ text: "a", times: 1.5 }, "times"],
    [{ text: "a", times: "2" }, "times"],
  ])("name what is wrong: %j", async (values, field) => {
    expect(refusal(await served.post("/repeat", values))).toMatchObject({
      ...wrong,
      fields: [field],
    });
  });

  it("name places inside of lists, at most 20 of them", async () => {
    const answer = await served.post("/sum/submit", { numbers: Array(50).fill("1") });
    const { fields, message } = refusal(answer);
    expect(fields).toHaveLength(20);
    expect(fields[0]).toBe("numbers.0");
    expect(message).toContain("(and 49 more)");
  });

  it("are not queued", async () => {
    const { status } = await served.post("/gated/submit", { url: 1 });
    expect(status).toBe(400);
    expect(gate.waiting).toBe(0);
  });
});

describe("a body", () => {
  it.each([
    ["that is not JSON", "{nope", "application/json", 400, "BODY_MALFORMED"],
    ["that is a list", "[1]", "application/json", 400, "BODY_MALFORMED"],
    ["that is null", "null", "application/json", 400, "BODY_MALFORMED"],
    ["of text", "text", "text/plain", 400, "BODY_MALFORMED"],
    ["of another type", "<text/>", "application/xml", 415],
  ])("%s is refused", async (_, body, type, status, reason = "CONTENT_TYPE_UNSUPPORTED") => {
    for (const path of ["/repeat", "/sum/submit"]) {
      expect(refusal(await served.send(path, body, { "content-type": type }))).toMatchObject({
        status,
        reason,
        code: "invalid_argument",
      });
    }
  });

  it("may lack its type, or be a form", async () => {
    const bytes = Buffer.from('{"text":"a"}');
    const form = new FormData();
    form.set("text", new Blob(['"a"'], { type: "application/json" }));
    for (const body of [bytes, new URLSearchParams({ text: "a" }), form]) {
      expect((await served.send("/repeat", body)).text).toBe("a");
    }
  });

  it("compressed in a way that is not read is refused", async () => {
    const json = { "content-type": "application/json", "content-encoding": "compress" };
    expect(refusal(await served.send("/repeat", '{"text":"a"}', json))).toMatchObject({
      status: 415,
      reason: "CONTENT_TYPE_UNSUPPORTED",
    });
  });

  it("larger than the limit is refused, which is another for endpoints with files", async () => {
    const tooLarge = { status: 413, code: "resource_exhausted", reason: "BODY_TOO_LARGE" };
    const text = "x".repeat(10_001);
    expect(refusal(await served.post("/repeat", { text }))).toMatchObject(tooLarge);
    const image = `data:image/png,${text}`;
    expect((await served.post("/describe_later/submit", { image })).status).toBe(202);
    const larger = await served.post("/describe", { image: image + text });
    expect(refusal(larger)).toMatchObject(tooLarge);
    const control = JSON.stringify({ task_id: "x".repeat(20_000) });
    expect(refusal(await served.send("/sum/cancel", control))).toMatchObject(tooLarge);
  });
});

describe("what does not exist", () => {
  it.each([
    ["an unknown endpoint", "POST", "/nope", "ENDPOINT_NOT_FOUND"],
    ["submit to an unknown endpoint", "POST", "/nope/submit", "ENDPOINT_NOT_FOUND"],
    ["submit to an api", "POST", "/repeat/submit", "ENDPOINT_NOT_A_TASK"],
    ["a path", "GET", "/one/two/three", "ROUTE_NOT_FOUND"],
    ["a path of the API", "GET", "/api/v1/nope", "ROUTE_NOT_FOUND"],
    ["a task", "GET", `/sum/status?task_id=${UNKNOWN_ID}`, "TASK_NOT_FOUND"],
    ["a task that no id names", "GET", "/sum/get?task_id=1%27%20OR%201", "TASK_NOT_FOUND"],
    ["a task to cancel", "PUT", `/sum/cancel?task_id=${UNKNOWN_ID}`, "TASK_NOT_FOUND"],
    ["a task to retry", "PUT", `/sum/retry?task_id=${UNKNOWN_ID}`, "TASK_NOT_FOUND"],
  ])("is 404: %s", async (_, method, path, reason) => {
    const init = method === "POST" ? { method, body: "{}" } : { method };
    expect(refusal(await served.fetch(path, init))).toMatchObject({
      status: 404,
      code: "not_found",
      reason,
    });
  });

  it("is a task asked for under another endpoint, before and after its end", async () => {
    const { id, arrival } = await startGated();
    const ask = async () => {
      for (const [method, verb, wait = ""] of [
        ["GET", "status", "&wait=0"],
        ["GET", "get", "&wait=0"],
        ["GET", "events"],
        ["PUT", "cancel"],
        ["PUT", "retry"],
      ] as const) {
        const answer = await served.fetch(`/sum/${verb}?task_id=${id}${wait}`, { method });
        expect(refusal(answer), verb).toMatchObject({ status: 404, reason: "TASK_NOT_FOUND" });
      }
    };
    await ask();
    arrival.open("");
    await served.result("gated", id);
    await ask();
  });

  it("is another deployment than the one that is served", async () => {
    const other = { "tessera-deployment": "acme/other" };
    expect(refusal(await served.post("/repeat", { text: "a" }, other))).toMatchObject({
      status: 404,
      reason: "DEPLOYMENT_NOT_FOUND",
    });
    const own = { "tessera-deployment": "local/calls" };
    expect((await served.post("/repeat", { text: "a" }, own)).status).toBe(200);
  });
});

/** Submits a task that waits at the gate, and gives it back when it is there. */
async function startGated() {
  const id = await served.submit("gated", { url: gate.url });
  return { id, arrival: await gate.arrival() };
}

describe("a task", () => {
  const unfinished = { status: 400, code: "failed_precondition", reason: "TASK_NOT_FINISHED" };

  it("that runs has no result, cannot be retried, and is cancelled only by abort", async () => {
    const { id, arrival } = await startGated();
    const found = refusal(await served.get(`/gated/get?task_id=${id}&wait=0.05`));
    expect(found).toMatchObject({ ...unfinished, metadata: { task_id: id, status: "running" } });
    const retried = await served.fetch(`/gated/retry?task_id=${id}`, { method: "PUT" });
    expect(refusal(retried)).toMatchObject(unfinished);
    const cancelled = await served.fetch(`/gated/cancel?task_id=${id}`, { method: "PUT" });
    expect(refusal(cancelled)).toMatchObject({
      status: 409,
      code: "aborted",
      reason: "TASK_ALREADY_STARTED",
      message: expect.stringContaining("abort=true"),
    });
    arrival.open("");
    await served.result("gated", id);
    const late = await served.fetch(`/gated/cancel?task_id=${id}&abort=true`, { method: "PUT" });
    expect(refusal(late)).toMatchObject({ status: 409, code: "aborted", reason: "TASK_FINISHED" });
  });

  it("that was cancelled has no result, and says so", async () => {
    const { id: first, arrival } = await startGated();
    const id = await served.submit("gated", { url: gate.url });
    expect(refusal(await served.get(`/gated/get?task_id=${id}`))).toMatchObject(unfinished);
    await served.fetch(`/gated/cancel?task_id=${id}`, { method: "PUT" });
    expect(refusal(await served.result("gated", id))).toMatchObject({
      status: 400,
      code: "failed_precondition",
      reason: "TASK_CANCELLED",
    });
    arrival.open("");
    await served.result("gated", first);
  });

  it("is refused with 429 and Retry-After when the queue is full", async () => {
    const { id: first, arrival } = await startGated();
    const ids = [first];
    for (let queued = 0; queued < 2; queued += 1) {
      ids.push(await served.submit("gated", { url: gate.url }));
    }
    const answer = await served.post("/gated/submit", { url: gate.url });
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refusal(answer)).toMatchObject({
      status: 429,
      code: "resource_exhausted",
      reason: "QUEUE_FULL",
      message: expect.stringContaining("2 tasks of endpoint gated are waiting, its limit is 2"),
    });
    arrival.open("");
    (await gate.arrival()).open("");
    (await gate.arrival()).open("");
    await Promise.all(ids.map((id) => served.result("gated", id)));
    expect((await served.post("/sum/submit", { numbers: [] })).status).toBe(202);
  });
});

describe("what a function throws", () => {
  const both = async (how: string): Promise<[Refusal, Refusal, Shown]> => {
    const called = await served.post("/fail", { how });
    const id = await served.submit("fail_later", { how });
    const got: Answer = await served.result("fail_later", id);
    return [refusal(called), refusal(got), await served.status("fail_later", id)];
  };

  it.each([
    ["error", 500, "internal", "out of luck"],
    ["bad_input", 400, "invalid_argument", "the picture is empty"],
    ["not_found", 404, "not_found", "no such model"],
  ])("reaches the caller with its code and message: %s", async (how, status, code, message) => {
    const [called, got, shown] = await both(how);
    expect(called).toMatchObject({ status, code, message, reason: "CALL_FAILED" });
    expect(got).toMatchObject({ status, code, message, reason: "TASK_FAILED" });
    expect(shown).toMatchObject({ status: "failure", failure: { reason: "error", code, message } });
  });

  it("and what its output schema refuses, is a failure that says so", async () => {
    const [called, got] = await both("output");
    expect(called).toMatchObject({ status: 500, reason: "OUTPUT_INVALID" });
    expect(got).toMatchObject({ status: 500, reason: "TASK_FAILED" });
    for (const { message } of [called, got]) {
      expect(message).toMatch(/^fail(_later)? returned what its output schema refuses/);
    }
  });

  it("and a result that is too large, is a failure that says so", async () => {
    const values = { text: "0123456789", times: 5 };
    expect(refusal(await served.post("/repeat", values))).toMatchObject({
      status: 500,
      reason: "RESULT_TOO_LARGE",
      message: expect.stringContaining("larger than the limit of 30 bytes"),
    });
    const id = await served.submit("repeat_later", values);
    const { reason, message } = refusal(await served.result("repeat_later", id));
    expect(reason).toBe("TASK_FAILED");
    expect(message).toContain("larger than the limit of 30 bytes");
  });
});
