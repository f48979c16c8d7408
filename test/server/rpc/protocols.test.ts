import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { TaskSchema, TaskService, TaskStatus } from "../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../../src/errors.ts";
import { startServer } from "./server.ts";

const getTask = (request: { taskId: string }) =>
  create(TaskSchema, { taskId: request.taskId, status: TaskStatus.QUEUED });

/** Every protocol on a transport of its own, with what it needs closed. */
function transports(origin: string) {
  const sessionManager = new Http2SessionManager(origin);
  const h1 = { baseUrl: origin, httpVersion: "1.1" } as const;
  const h2 = { baseUrl: origin, httpVersion: "2", sessionManager } as const;
  return {
    h1: {
      "Connect JSON": createConnectTransport({ ...h1, useBinaryFormat: false }),
      "Connect binary": createConnectTransport({ ...h1, useBinaryFormat: true }),
      "Connect GET": createConnectTransport({ ...h1, useHttpGet: true }),
      "gRPC-Web": createGrpcWebTransport(h1),
    },
    h2: {
      gRPC: createGrpcTransport({ baseUrl: origin, sessionManager }),
      "Connect JSON on HTTP/2": createConnectTransport({ ...h2, useBinaryFormat: false }),
      "gRPC-Web on HTTP/2": createGrpcWebTransport(h2),
    },
    close: () => sessionManager.abort(),
  };
}

const PROTOCOLS = [
  ["h1", "Connect JSON"],
  ["h1", "Connect binary"],
  ["h1", "Connect GET"],
  ["h1", "gRPC-Web"],
  ["h2", "gRPC"],
  ["h2", "Connect JSON on HTTP/2"],
  ["h2", "gRPC-Web on HTTP/2"],
] as const satisfies readonly (readonly ["h1" | "h2", string])[];

type Protocol = (typeof PROTOCOLS)[number];
type Implementation = Parameters<typeof startServer>[0];

async function withClient(
  [version, name]: readonly [Protocol[0], Protocol[1]],
  implementation: Implementation,
  use: (client: ReturnType<typeof createClient<typeof TaskService>>) => Promise<void>,
  interceptors: readonly Interceptor[] = [],
) {
  await using server = await startServer(implementation, { http2: version === "h2", interceptors });
  const all = transports(server.origin);
  const transport = { ...all.h1, ...all.h2 }[name];
  try {
    await use(createClient(TaskService, transport));
  } finally {
    all.close();
  }
}

describe.each(PROTOCOLS)("over %s %s", (...protocol) => {
  it("a unary call is answered, with headers and trailers", async () => {
    await withClient(
      protocol,
      {
        getTask(request, context) {
          context.responseHeader.set("x-header", context.requestHeader.get("x-sent") ?? "");
          context.responseTrailer.set("x-trailer", "t");
          return getTask(request);
        },
      },
      async (client) => {
        const seen: Record<string, string | null> = {};
        const task = await client.getTask(
          { taskId: "a" },
          {
            headers: { "x-sent": "s" },
            onHeader: (header) => Object.assign(seen, { header: header.get("x-header") }),
            onTrailer: (trailer) => Object.assign(seen, { trailer: trailer.get("x-trailer") }),
          },
        );
        expect(task.status).toBe(TaskStatus.QUEUED);
        expect(seen).toEqual({ header: "s", trailer: "t" });
      },
    );
  });

  it("an error arrives with reason, details, Retry-After and RateLimit", async () => {
    await withClient(
      protocol,
      {
        getTask() {
          throw problem("QUEUE_FULL", "the queue is full", {
            retryAfterMs: 3000,
            spentQuota: { name: "q", quota: 5, windowMs: 60_000, resetMs: 3000 },
          });
        },
      },
      async (client) => {
        const err = ConnectError.from(await client.getTask({ taskId: "a" }).catch((e) => e));
        expect(err.code).toBe(Code.ResourceExhausted);
        expect(err.rawMessage).toBe("the queue is full");
        expect(err.findDetails(ErrorInfoSchema)[0]?.reason).toBe("QUEUE_FULL");
        expect(err.metadata.get("retry-after")).toBe("3");
        expect(err.metadata.get("ratelimit")).toBe('"q";r=0;t=3');
        expect(err.metadata.get("ratelimit-policy")).toBe('"q";q=5;w=60');
      },
    );
  });

  it("an error takes along the headers and trailers that were set before it, each time anew", async () => {
    const shared = problem("QUEUE_FULL", "the queue is full", { retryAfterMs: 3000 });
    await withClient(
      protocol,
      {
        async getTask({ taskId }, context) {
          context.responseHeader.set("x-header", taskId);
          context.responseTrailer.set("x-trailer", taskId);
          throw shared;
        },
      },
      async (client) => {
        for (const taskId of ["a", "b"]) {
          const { metadata } = ConnectError.from(await client.getTask({ taskId }).catch((e) => e));
          expect(metadata.get("x-header")).toBe(taskId);
          expect(metadata.get("x-trailer") ?? metadata.get("trailer-x-trailer")).toBe(taskId);
          expect(metadata.get("retry-after")).toBe("3");
        }
      },
    );
    expect([...shared.metadata.keys()]).toEqual(["retry-after"]);
  });

  // A URL ends at Node's own limit.
  it.skipIf(protocol[1] === "Connect GET")(
    "a message beyond the limit is refused with its reason",
    async () => {
      await withClient(protocol, { getTask }, async (client) => {
        const large = { taskId: "x".repeat(200_000) };
        const err = ConnectError.from(await client.getTask(large).catch((e) => e));
        expect(err.code).toBe(Code.ResourceExhausted);
        expect(err.findDetails(ErrorInfoSchema)[0]?.reason).toBe("BODY_TOO_LARGE");
      });
    },
  );

  it("what was not meant for callers stays inside", async () => {
    await withClient(
      protocol,
      {
        getTask() {
          throw new TypeError("secret");
        },
      },
      async (client) => {
        const err = ConnectError.from(await client.getTask({ taskId: "a" }).catch((e) => e));
        expect(err.code).toBe(Code.Internal);
        expect(err.findDetails(ErrorInfoSchema)[0]?.reason).toBe("INTERNAL");
        expect(JSON.stringify(err)).not.toContain("secret");
      },
    );
  });

  it("an invalid request is refused with its fields", async () => {
    await withClient(protocol, { getTask }, async (client) => {
      const request = { taskId: "", wait: { seconds: 61n } };
      const err = ConnectError.from(await client.getTask(request).catch((e) => e));
      expect(err.code).toBe(Code.InvalidArgument);
      expect(err.findDetails(ErrorInfoSchema)[0]?.reason).toBe("REQUEST_INVALID");
      const violations = err.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
      expect(violations.map((one) => one.field)).toEqual(["task_id", "wait"]);
    });
  });

  it("a method nobody implements is unimplemented", async () => {
    await withClient(protocol, {}, async (client) => {
      const err = ConnectError.from(await client.getTask({ taskId: "a" }).catch((e) => e));
      expect(err.code).toBe(Code.Unimplemented);
    });
  });

  it("a deadline ends the call and aborts the signal of the implementation", async () => {
    const aborted = Promise.withResolvers<void>();
    await withClient(
      protocol,
      {
        async getTask(request, { signal, timeoutMs }) {
          expect(timeoutMs()).toBeGreaterThan(0);
          await once(signal, "abort");
          aborted.resolve();
          return getTask(request);
        },
      },
      async (client) => {
        const call = client.getTask({ taskId: "a" }, { timeoutMs: 100 });
        const err = ConnectError.from(await call.catch((e) => e));
        expect(err.code).toBe(Code.DeadlineExceeded);
        await aborted.promise;
      },
    );
  });

  it("a stream comes message by message and ends with its error", async () => {
    await withClient(
      protocol,
      {
        async *watchTask() {
          yield { sequence: 1n };
          yield { sequence: 2n };
          throw problem("TASK_NOT_FOUND", "gone");
        },
      },
      async (client) => {
        const seen: bigint[] = [];
        const read = async () => {
          for await (const { sequence } of client.watchTask({ taskId: "a" })) {
            seen.push(sequence);
          }
        };
        const err = ConnectError.from(await read().catch((e) => e));
        expect(seen).toEqual([1n, 2n]);
        expect(err.findDetails(ErrorInfoSchema)[0]?.reason).toBe("TASK_NOT_FOUND");
      },
    );
  });

  it("an interceptor sees the call and may change it", async () => {
    const interceptor: Interceptor = (next) => (req) =>
      next(
        req.stream
          ? req
          : { ...req, message: { ...req.message, taskId: req.header.get("x-id") } as never },
      );
    await withClient(
      protocol,
      { getTask },
      async (client) => {
        const task = await client.getTask({ taskId: "a" }, { headers: { "x-id": "b" } });
        expect(task.taskId).toBe("b");
      },
      [interceptor],
    );
  });
});

describe("Connect JSON", () => {
  const url = "/tessera.v1.TaskService/GetTask";

  it.each<[Record<string, string>, string, number, string]>([
    [{}, "{", 400, "BODY_MALFORMED"],
    [{}, "", 400, "BODY_MALFORMED"],
    [{}, '{"taskId":1}', 400, "REQUEST_INVALID"],
    [{ "connect-timeout-ms": "soon" }, '{"taskId":"a"}', 400, "REQUEST_INVALID"],
    [{ "connect-protocol-version": "2" }, '{"taskId":"a"}', 400, "REQUEST_INVALID"],
    [{}, JSON.stringify({ taskId: "x".repeat(200_000) }), 429, "BODY_TOO_LARGE"],
  ])("with %j is refused where the protocol says so", async (headers, body, status, reason) => {
    await using server = await startServer({ getTask });
    const init = {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
    };
    const res = await fetch(server.origin + url, init);
    const json = (await res.json()) as { details: { debug: { reason: string } }[] };
    expect({ status: res.status, reason: json.details[0]?.debug.reason }).toEqual({
      status,
      reason,
    });
    expect(res.headers.get("content-type")).toBe("application/json");
  });

  it.each([
    ["GetTask", "application/json; charset=iso-8859-1"],
    ["GetTask", 'application/json;charset="UTF-16"'],
    ["WatchTask", "application/connect+json; charset=latin1"],
  ])("answers %s in %s with 415, and says why", async (method, type) => {
    await using server = await startServer({ getTask });
    const res = await fetch(`${server.origin}/tessera.v1.TaskService/${method}`, {
      method: "POST",
      body: '{"taskId":"ä"}',
      headers: { "content-type": type },
    });
    expect(res.status).toBe(415);
    expect(await res.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/^the charset "[^"]+" is not read here: send .* UTF-8$/),
      details: [{ debug: { reason: "CONTENT_TYPE_UNSUPPORTED" } }, {}],
    });
  });

  it.each([
    ["application/json", "compress", "gzip, deflate, br, zstd"],
    ["application/proto", "br", "gzip"],
  ])(
    "answers an unknown compression of %s with unimplemented, and what is known",
    async (type, coding, known) => {
      await using server = await startServer({ getTask });
      const headers = { "content-type": type, "content-encoding": coding };
      const res = await fetch(server.origin + url, { method: "POST", body: "{}", headers });
      expect(res.status).toBe(501);
      expect(res.headers.get("accept-encoding")).toBe(known);
      expect(await res.json()).toMatchObject({
        code: "unimplemented",
        message: `the content encoding "${coding}" is not read here: send the body as it is, or with ${known}`,
        details: [{ debug: { reason: "CONTENT_TYPE_UNSUPPORTED" } }, {}],
      });
    },
  );

  it("writes proto JSON with its empty lists", async () => {
    await using server = await startServer({ getTask });
    const res = await fetch(server.origin + url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"taskId":"a"}',
    });
    expect(await res.json()).toEqual({
      tags: [],
      taskId: "a",
      status: "TASK_STATUS_QUEUED",
      attempts: [],
    });
  });

  it("writes empty lists in answers to GET too", async () => {
    await using server = await startServer({ getTask });
    const message = encodeURIComponent('{"taskId":"a"}');
    const res = await fetch(`${server.origin}${url}?connect=v1&encoding=json&message=${message}`);
    expect(await res.json()).toMatchObject({ taskId: "a", attempts: [] });
  });

  it("refuses a field that it does not know, with the nearest name", async () => {
    await using server = await startServer({ getTask });
    const res = await fetch(server.origin + url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"taskid_":"a"}',
    });
    expect(res.status).toBe(400);
    expect(await res.json()).toMatchObject({
      code: "invalid_argument",
      message: "taskid_: unknown field; did you mean task_id?",
    });
  });

  it.each(["/tessera.v1.TaskService/Nothing", "/other.v1.Service/Nothing"])(
    "answers %s with unimplemented, in JSON",
    async (path) => {
      await using server = await startServer({ getTask });
      const headers = { "content-type": "application/json" };
      const res = await fetch(server.origin + path, { method: "POST", headers, body: "{}" });
      expect(res.status).toBe(404);
      expect(await res.json()).toMatchObject({ code: "unimplemented" });
    },
  );

  it("leaves paths that only look like an RPC's alone", async () => {
    await using server = await startServer({ getTask });
    const res = await fetch(`${server.origin}/summarize/submit`, { method: "POST" });
    expect(await res.json()).toEqual({ submitted: true });
  });
});

describe("an RPC that does not exist", () => {
  const Unknown = {
    ...TaskService.method.getTask,
    parent: { ...TaskService, typeName: "other.v1.Service" },
  } as typeof TaskService.method.getTask;

  it.each(PROTOCOLS.filter(([, name]) => name !== "Connect GET"))(
    "is unimplemented over %s %s",
    async (version, name) => {
      await using server = await startServer({ getTask }, { http2: version === "h2" });
      const all = transports(server.origin);
      const transport = { ...all.h1, ...all.h2 }[name];
      const call = transport.unary(Unknown, undefined, undefined, undefined, { taskId: "a" });
      const err = ConnectError.from(await call.catch((e) => e));
      all.close();
      expect(err.code).toBe(Code.Unimplemented);
      expect(err.rawMessage).toContain("other.v1.Service/GetTask");
    },
  );
});
