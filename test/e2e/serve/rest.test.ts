import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as v1 from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import * as v1alpha from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
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

interface TaskJson {
  readonly task_id: string;
  readonly status: string;
}

async function submit(endpoint: string, values: unknown): Promise<TaskJson> {
  const answer = await served.post("/api/v1/tasks", { endpoint, arguments: values });
  expect(answer.status, answer.text).toBe(200);
  return (answer.json as { task: TaskJson }).task;
}

describe("below /api/v1", () => {
  it("endpoints are listed and called", async () => {
    const { json } = await served.get("/api/v1/endpoints");
    expect(json).toMatchObject({ endpoints: expect.any(Array) });
    const { endpoints } = json as { endpoints: { name: string }[] };
    expect(endpoints.find(({ name }) => name === "sum")).toMatchObject({
      kind: "task",
      input_schema: { required: ["numbers"] },
    });
    const path = "/api/v1/endpoints/repeat:call";
    expect(await served.post(path, { arguments: { text: "a" } })).toMatchObject({
      status: 200,
      json: { value: "a" },
    });
    expect(refusal(await served.post(path, { arguments: { text: "" } }))).toMatchObject({
      status: 400,
      reason: "ARGUMENTS_INVALID",
      fields: ["text"],
    });
  });

  it("a task is submitted, read, fetched, watched and retried", async () => {
    const { task_id: id } = await submit("steps", { count: 3 });
    const result = await served.get(`/api/v1/tasks/${id}/result?wait=30s`);
    expect(result).toMatchObject({ status: 200, json: { value: 3 } });
    const { json } = await served.get(`/api/v1/tasks/${id}`);
    expect(json).toMatchObject({ task_id: id, status: "success", attempt: 1, endpoint: "steps" });
    const { text, headers } = await served.get(`/api/v1/tasks/${id}:watch`, {
      accept: "text/event-stream",
    });
    expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(text).toContain('"status":"success"');
    const again = await served.post(`/api/v1/tasks/${id}:retry`, {});
    expect(again.json).toMatchObject({ retry_of: id });
  });

  it("a task is cancelled while it is queued, refused while it runs, and aborted", async () => {
    const first = await submit("gated", { url: gate.url });
    await gate.arrival();
    const second = await submit("gated", { url: gate.url });
    const cancelled = await served.post(`/api/v1/tasks/${second.task_id}:cancel`, {});
    expect(cancelled.json).toMatchObject({ status: "cancelled" });
    const path = `/api/v1/tasks/${first.task_id}:cancel`;
    expect(refusal(await served.post(path, {}))).toMatchObject({
      status: 409,
      reason: "TASK_ALREADY_STARTED",
    });
    const aborted = await served.post(path, { abort: true });
    expect(aborted.json).toMatchObject({ status: "cancelled" });
  });

  it("errors are those of the data plane, word for word", async () => {
    const id = await served.submit("fail_later", { how: "not_found" });
    await served.result("fail_later", id);
    for (const [rest, data] of [
      [`/api/v1/tasks/${id}/result`, `/fail_later/get?task_id=${id}`],
      ["/api/v1/tasks/none", "/sum/status?task_id=none"],
    ] as const) {
      expect(refusal(await served.get(rest))).toEqual(refusal(await served.get(data)));
    }
    const submitted = await served.post("/api/v1/tasks", {
      endpoint: "sum",
      arguments: { numbers: "1" },
    });
    const plain = await served.post("/sum/submit", { numbers: "1" });
    expect(refusal(submitted)).toEqual(refusal(plain));
  });

  it.each([
    ["POST", "/api/v1/tasks", '{"endpoint":"sum","bogus":1}', "bogus"],
    ["POST", "/api/v1/tasks", '{"arguments":{}}', "endpoint"],
    ["POST", "/api/v1/tasks", '{"endpoint":"sum","wait":"61s"}', "wait"],
    ["GET", "/api/v1/tasks/x?bogus=1", undefined, "bogus"],
    ["GET", "/api/v1/tasks/x?wait=1s&wait=2s", undefined, "wait"],
    ["POST", "/api/v1/tasks/x:cancel", '{"task_id":"y"}', "task_id"],
  ])("%s %s with %s names the field that is wrong", async (method, path, body, field) => {
    const headers = { "content-type": "application/json" };
    const answer = await served.fetch(path, { method, headers, ...(body && { body }) });
    expect(refusal(answer)).toMatchObject({ status: 400, fields: [field] });
  });

  it("a method that a path does not take is 405 with those that it takes", async () => {
    const answer = await served.fetch("/api/v1/tasks/x", { method: "PUT" });
    expect(refusal(answer).status).toBe(405);
    expect(answer.headers.get("allow")).toBe("DELETE, GET, HEAD, PATCH");
  });
});

it.each([
  ["v1", v1.ServerReflection],
  ["v1alpha", v1alpha.ServerReflection],
] as const)("reflection %s names the services", async (_, service) => {
  const sessionManager = new Http2SessionManager(served.origin);
  const transport = createGrpcTransport({ baseUrl: served.origin, sessionManager });
  async function* ask() {
    yield { messageRequest: { case: "listServices" as const, value: "" } };
  }
  const client = createClient(service as typeof v1.ServerReflection, transport);
  for await (const { messageResponse } of client.serverReflectionInfo(ask())) {
    const { service: listed } = messageResponse.value as { service: { name: string }[] };
    expect(listed.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["tessera.v1.TaskService", "tessera.v1.EndpointService"]),
    );
  }
  sessionManager.abort();
});
