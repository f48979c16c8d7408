import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { createClient as createDeploymentClient } from "../../../src/client/index.ts";
import { OtlpReceiver, type ReceivedSpan } from "../../tracing/receiver.ts";
import { CALLER, CALLER_SPAN, named, serveTraced, TRACED } from "../../tracing/traced.ts";
import type { Served } from "../serve/served.ts";

const INTERNAL = 1;
const SERVER = 2;

let receiver: OtlpReceiver;
let served: Served;
let sessions: Http2SessionManager;
beforeAll(async () => {
  receiver = await OtlpReceiver.start();
  served = await serveTraced({ receiver });
  sessions = new Http2SessionManager(served.origin);
});
afterAll(async () => {
  sessions.abort();
  await served.stop();
  await receiver[Symbol.asyncDispose]();
});
beforeEach(() => receiver.clear());

const about =
  (endpoint: string) =>
  ({ attributes }: ReceivedSpan): boolean =>
    attributes["tessera.endpoint"] === endpoint;

/** Calls `seen` with the headers of a caller who traces. */
type Call = () => Promise<unknown>;

function overRpc(transport: () => Transport): Call {
  return () =>
    createClient(EndpointService, transport()).callEndpoint(
      { endpoint: "seen", input: { case: "arguments", value: {} } },
      { headers: TRACED },
    );
}

const http1 = () => ({ baseUrl: served.origin, httpVersion: "1.1" }) as const;

const FACES: Record<string, { readonly call: Call; readonly attributes: object }> = {
  "the data plane": {
    call: () => served.post("/seen", {}, TRACED),
    attributes: { "http.request.method": "POST", "http.route": "/seen" },
  },
  REST: {
    call: () => served.post("/api/v1/endpoints/seen:call", { arguments: {} }, TRACED),
    attributes: { "http.request.method": "POST" },
  },
  "Connect in JSON": {
    call: overRpc(() => createConnectTransport({ ...http1(), useBinaryFormat: false })),
    attributes: { "rpc.system.name": "connectrpc", "rpc.response.status_code": "ok" },
  },
  "binary Connect": {
    call: overRpc(() => createConnectTransport({ ...http1(), useBinaryFormat: true })),
    attributes: { "rpc.system.name": "connectrpc" },
  },
  gRPC: {
    call: overRpc(() => createGrpcTransport({ baseUrl: served.origin, sessionManager: sessions })),
    attributes: {
      "rpc.system.name": "grpc",
      "rpc.method": "tessera.v1.EndpointService/CallEndpoint",
    },
  },
  "the client": {
    call: () => {
      const client = createDeploymentClient({ url: served.origin, headers: () => TRACED });
      return client.seen?.({}) as Promise<unknown>;
    },
    attributes: { "http.route": "/seen" },
  },
  "gRPC-Web": {
    call: overRpc(() => createGrpcWebTransport(http1())),
    attributes: { "rpc.system.name": "grpc" },
  },
};

describe("a call", () => {
  it.each(Object.entries(FACES))(
    "over %s is below the caller's span, with its attempt below it",
    async (_face, { call, attributes }) => {
      await call();
      const spans = await receiver.find(2, about("seen"));
      const span = named(spans, "call seen");
      expect(span).toMatchObject({ traceId: CALLER, parentId: CALLER_SPAN, kind: SERVER });
      expect(span.attributes).toMatchObject({
        ...attributes,
        "tessera.deployment": "local/traced",
        "tessera.outcome": "ok",
      });
      const attempt = named(spans, "attempt seen");
      expect(attempt).toMatchObject({ parentId: span.spanId, kind: INTERNAL, failed: false });
      expect(attempt.startMs).toBeGreaterThanOrEqual(span.startMs);
      // The end of a span that began before it was told of is known to the millisecond.
      expect(attempt.endMs).toBeLessThan(span.endMs + 1);
    },
  );

  it("tells the function where it stands", async () => {
    const answer = await served.post("/seen", {}, TRACED);
    const attempt = named(await receiver.find(2, about("seen")), "attempt seen");
    expect(answer.json).toMatchObject({
      traceparent: `00-${CALLER}-${attempt.spanId}-01`,
      tracestate: TRACED.tracestate,
    });
  });

  it("carries the caller's request id", async () => {
    const answer = await served.post("/seen", {}, { "x-request-id": "order-7" });
    expect(answer.headers.get("x-request-id")).toBe("order-7");
    const span = named(await receiver.find(2, about("seen")), "call seen");
    expect(span.attributes["tessera.request.id"]).toBe("order-7");
  });

  it("that fails says by which code, and nothing of what was said", async () => {
    await served.post("/fails", {}, TRACED);
    const spans = await receiver.find(2, about("fails"));
    for (const name of ["call fails", "attempt fails"]) {
      const { failed, attributes } = named(spans, name);
      expect({ failed, error: attributes["error.type"] }).toEqual({
        failed: true,
        error: "not_found",
      });
    }
    expect(JSON.stringify(spans)).not.toContain("no such model");
  });

  it("with arguments that do not fit has no attempt", async () => {
    expect((await served.post("/quiet", { text: 1 })).status).toBe(400);
    const [span, ...more] = await receiver.find(1, about("quiet"));
    expect(span).toMatchObject({ name: "call quiet", failed: true });
    expect(span?.attributes["error.type"]).toBe("invalid_argument");
    expect(more).toEqual([]);
  });

  it("shows how long it waited for a worker", async () => {
    // Its only worker is gone, and the next one has to be started.
    expect((await served.post("/exits", {})).status).toBe(500);
    await served.post("/seen", {}, TRACED);
    const spans = await receiver.find(3, about("seen"));
    const wait = named(spans, "wait seen");
    expect(wait).toMatchObject({ traceId: CALLER, parentId: named(spans, "call seen").spanId });
    expect(named(spans, "attempt seen").startMs).toBeGreaterThan(wait.endMs - 1);
    const lost = named(await receiver.find(2, about("exits")), "attempt exits");
    expect(lost.attributes["error.type"]).toBe("worker_lost");
  });

  it("of a task endpoint has the task below it", async () => {
    const answer = await served.post("/seen_later", {}, TRACED);
    expect(answer.status).toBe(200);
    const spans = await receiver.find(4, about("seen_later"));
    const span = named(spans, "call seen_later");
    expect(span.parentId).toBe(CALLER_SPAN);
    expect(named(spans, "submit seen_later").parentId).toBe(span.spanId);
  });

  it.each([
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
    "hello",
    "",
  ])("with the traceparent %j begins a trace of its own", async (traceparent) => {
    expect((await served.post("/seen", {}, { traceparent })).status).toBe(200);
    const span = named(await receiver.find(2, about("seen")), "call seen");
    expect(span.parentId).toBe("");
    expect(span.traceId).not.toBe(CALLER);
  });

  it("of a later version of the format is followed", async () => {
    const traceparent = `cc-${CALLER}-${CALLER_SPAN}-03-what-comes`;
    await served.post("/seen", {}, { traceparent });
    const span = named(await receiver.find(2, about("seen")), "call seen");
    expect(span).toMatchObject({ traceId: CALLER, parentId: CALLER_SPAN });
  });
});
