import { type Client, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import {
  Health,
  HealthCheckResponse_ServingStatus as Serving,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { EndpointKind, EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import {
  ResultFormat,
  type TaskEvent,
  TaskService,
  TaskStatus,
} from "../../../gen/tessera/v1/task_pb.js";
import { createTesseraClient } from "../../../src/client/index.ts";
import { Gate } from "./gate.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
let sessions: Http2SessionManager;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("calls"), Gate.build()]);
  sessions = new Http2SessionManager(served.origin);
});
afterAll(async () => {
  sessions.abort();
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

type Face = () => {
  readonly tasks: Client<typeof TaskService>;
  readonly endpoints: Client<typeof EndpointService>;
};

function over(transport: () => Transport): Face {
  return () => ({
    tasks: createClient(TaskService, transport()),
    endpoints: createClient(EndpointService, transport()),
  });
}

const http1 = () => ({ baseUrl: served.origin, httpVersion: "1.1" }) as const;

const FACES: Record<string, Face> = {
  gRPC: over(() => createGrpcTransport({ baseUrl: served.origin, sessionManager: sessions })),
  "gRPC-Web": over(() => createGrpcWebTransport(http1())),
  "binary Connect": over(() => createConnectTransport({ ...http1(), useBinaryFormat: true })),
  "Connect in JSON": over(() => createConnectTransport({ ...http1(), useBinaryFormat: false })),
  "Connect by GET": over(() => createConnectTransport({ ...http1(), useHttpGet: true })),
  "the client": () => createTesseraClient({ url: served.origin, timeoutMs: 30_000 }),
};

/** Code, reason, message, metadata and refused fields of the error of a call. */
async function errorOf(call: Promise<unknown>) {
  const err = ConnectError.from(await call.then(() => new Error("it succeeded")).catch((e) => e));
  const [info] = err.findDetails(ErrorInfoSchema);
  return {
    code: err.code,
    reason: info?.reason,
    message: err.rawMessage,
    metadata: info?.metadata,
    fields: err.findDetails(BadRequestSchema)[0]?.fieldViolations.map(({ field }) => field),
  };
}

/** Collects the log of a task. */
async function log(events: AsyncIterable<TaskEvent>) {
  const seen: unknown[] = [];
  for await (const { sequence, event } of events) {
    expect(sequence).toBeGreaterThan(0n);
    seen.push(event.case === "state" ? event.value.status : event.case);
  }
  return seen;
}

describe.each(Object.entries(FACES))("over %s", (_, face) => {
  it("endpoints are listed and called", async () => {
    const { endpoints } = face();
    const { endpoints: listed } = await endpoints.listEndpoints({});
    expect(listed.find(({ name }) => name === "repeat_later")).toMatchObject({
      kind: EndpointKind.TASK,
      description: "Repeats a text.",
      inputSchema: { type: "object", required: ["text"] },
    });
    const call = { endpoint: "repeat", input: args({ text: "ab", times: 2 }) };
    const { result } = await endpoints.callEndpoint(call);
    expect(result).toMatchObject({ case: "value", value: { kind: { value: "abab" } } });
    const asBody = { ...call, endpoint: "repeat_later", resultFormat: ResultFormat.BODY };
    expect((await endpoints.callEndpoint(asBody)).result).toMatchObject({
      case: "body",
      value: { contentType: "text/plain; charset=utf-8", data: new TextEncoder().encode("abab") },
    });
  });

  it("a task is submitted, read, fetched, watched and retried", async () => {
    const { tasks } = face();
    const { task } = await tasks.submitTask({ endpoint: "steps", input: args({ count: 3 }) });
    const taskId = task?.taskId ?? "";
    expect(task).toMatchObject({ endpoint: "steps", deployment: "local/calls" });
    const { result } = await tasks.getTaskResult({ taskId, wait: { seconds: 30n } });
    expect(result).toMatchObject({ case: "value", value: { kind: { value: 3 } } });
    expect(await tasks.getTask({ taskId })).toMatchObject({
      status: TaskStatus.SUCCESS,
      attempt: 1,
      progress: { fraction: 0.5, message: "half way" },
    });
    const { QUEUED, RUNNING, SUCCESS } = TaskStatus;
    const whole = [QUEUED, RUNNING, "log", "progress", SUCCESS];
    expect(await log(tasks.watchTask({ taskId }))).toEqual(whole);
    expect(await log(tasks.watchTask({ taskId, afterSequence: 2n }))).toEqual(whole.slice(2));
    const again = await tasks.retryTask({ taskId });
    expect(again.retryOf).toBe(taskId);
    expect(
      (await tasks.getTaskResult({ taskId: again.taskId, wait: { seconds: 30n } })).result,
    ).toMatchObject({ value: { kind: { value: 3 } } });
  });

  it("files go in as multipart and data: URLs, and come out with type and name", async () => {
    const { tasks } = face();
    const submit = { endpoint: "draw", input: args({ name: "a.png" }), wait: { seconds: 30n } };
    const { result } = await tasks.submitTask(submit);
    expect(result).toMatchObject({ filename: "a.png", result: { case: "body" } });
    const data = Buffer.from(
      '--XX\r\ncontent-disposition: form-data; name="image"; filename="i.gif"\r\n' +
        "content-type: image/gif\r\n\r\nhi\r\n--XX--\r\n",
    );
    const body = { contentType: "multipart/form-data; boundary=XX", data };
    const described = await tasks.submitTask({
      endpoint: "describe_later",
      input: { case: "body", value: body },
      wait: { seconds: 30n },
      resultFormat: ResultFormat.BODY,
    });
    const written = described.result?.result.value as { data: Uint8Array };
    expect(JSON.parse(Buffer.from(written.data).toString())).toMatchObject({
      image: { name: "i.gif", type: "image/gif", text: "hi" },
    });
  });

  it("the arguments of a task are read, and each of their files", async () => {
    const { tasks } = face();
    const image = "data:image/gif;base64,aGk=";
    const given = { image, rest: ["data:image/png,a", "data:image/png,bc"], title: "0" };
    const submit = { endpoint: "describe_later", input: args(given as never) };
    const taskId = (await tasks.submitTask(submit)).task?.taskId ?? "";
    const { arguments: values, files } = await tasks.getTaskArguments({ taskId });
    expect(values).toEqual({ image: 0, rest: [1, 2], title: "0" });
    expect(files).toMatchObject([
      { argument: "image", contentType: "image/gif", size: 2n },
      { argument: "rest", contentType: "image/png", size: 1n },
      { argument: "rest", contentType: "image/png", size: 2n },
    ]);
    const { body } = await tasks.getTaskArgumentFile({ taskId, file: 2 });
    expect(body).toMatchObject({ contentType: "image/png", data: new TextEncoder().encode("bc") });
  });

  it("a task is cancelled while it is queued, refused while it runs, and aborted", async () => {
    const { tasks } = face();
    const submit = { endpoint: "gated", input: args({ url: gate.url }) };
    const first = (await tasks.submitTask(submit)).task?.taskId ?? "";
    await gate.arrival();
    const second = (await tasks.submitTask(submit)).task?.taskId ?? "";
    expect((await tasks.cancelTask({ taskId: second })).status).toBe(TaskStatus.CANCELLED);
    expect(await errorOf(tasks.cancelTask({ taskId: first }))).toMatchObject({
      reason: "TASK_ALREADY_STARTED",
    });
    const aborted = await tasks.cancelTask({ taskId: first, abort: true });
    expect(aborted.status).toBe(TaskStatus.CANCELLED);
  });

  it("the same key gives the same task, and another body is refused", async () => {
    const { tasks } = face();
    const idempotencyKey = crypto.randomUUID();
    const submit = { endpoint: "sum", idempotencyKey, input: args({ numbers: [1] }) };
    const one = await tasks.submitTask(submit);
    expect(await tasks.submitTask(submit)).toMatchObject({
      replayed: true,
      task: { taskId: one.task?.taskId },
    });
    const other = tasks.submitTask({ ...submit, input: args({ numbers: [2] }) });
    expect(await errorOf(other)).toMatchObject({ reason: "IDEMPOTENCY_KEY_REUSED" });
  });
});

function args(value: Record<string, unknown>) {
  return { case: "arguments" as const, value: value as Record<string, number> };
}

type Call = (face: ReturnType<Face>, failed: string) => Promise<unknown>;

const WRONG: Record<string, Call> = {
  "bad arguments": ({ tasks }) =>
    tasks.submitTask({ endpoint: "sum", input: args({ numbers: ["1"] }) }),
  "an unknown endpoint": ({ endpoints }) => endpoints.callEndpoint({ endpoint: "nope" }),
  "an api submitted": ({ tasks }) => tasks.submitTask({ endpoint: "repeat" }),
  "an unknown task": ({ tasks }) => tasks.getTaskResult({ taskId: "none" }),
  "the arguments of an unknown task": ({ tasks }) => tasks.getTaskArguments({ taskId: "none" }),
  "arguments of another endpoint": ({ tasks }, taskId) =>
    tasks.getTaskArguments({ taskId, endpoint: "sum" }),
  "a file that is none": ({ tasks }, taskId) => tasks.getTaskArgumentFile({ taskId, file: 1 }),
  "an empty id": ({ tasks }) => tasks.getTask({ taskId: "" }),
  "a wait too long": ({ tasks }) => tasks.getTask({ taskId: "x", wait: { seconds: 61n } }),
  "another deployment": ({ endpoints }) => endpoints.listEndpoints({ deployment: "a/b" }),
  "a function that threw": ({ endpoints }) =>
    endpoints.callEndpoint({ endpoint: "fail", input: args({ how: "error" }) }),
  "a failed task": ({ tasks }, taskId) => tasks.getTaskResult({ taskId }),
  "a finished task cancelled": ({ tasks }, taskId) => tasks.cancelTask({ taskId }),
};

it.each(Object.entries(WRONG))("every face says the same of %s", async (_, call) => {
  const failed = await served.submit("fail_later", { how: "not_found" });
  await served.result("fail_later", failed);
  const errors = await Promise.all(
    Object.values(FACES).map((face) => errorOf(call(face(), failed))),
  );
  expect(errors[0]?.reason).toMatch(/^[A-Z_]+$/);
  for (const err of errors) {
    expect(err).toEqual(errors[0]);
  }
});

it("a stream of an unknown task is refused on every face", async () => {
  for (const [name, face] of Object.entries(FACES)) {
    const found = await errorOf(log(face().tasks.watchTask({ taskId: "none" })));
    expect(found, name).toMatchObject({ reason: "TASK_NOT_FOUND" });
  }
});

it("health tells of the server and its services, on the same port", async () => {
  const transport = createGrpcTransport({ baseUrl: served.origin, sessionManager: sessions });
  const health = createClient(Health, transport);
  for (const service of ["", "tessera.v1.TaskService", "tessera.v1.EndpointService"]) {
    expect((await health.check({ service })).status, service).toBe(Serving.SERVING);
  }
});
