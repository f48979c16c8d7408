import { once } from "node:events";
import { request } from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

const BUDGET_BYTES = 2_000;

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([
    serve("calls", { bodyBudgetBytes: BUDGET_BYTES }),
    Gate.build(),
  ]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

const busy = { status: 503, code: "unavailable", reason: "SERVER_BUSY" };
const large = { text: "x".repeat(1_500) };

/** Holds most of the budget with a call that is under way until the test ends it. */
async function hold() {
  const path = "/gated/submit";
  const body = JSON.stringify({ url: gate.url }).padEnd(1_500);
  const answer = served.send(path, body, {
    "content-type": "application/json",
    prefer: "wait=30",
  });
  const arrival = await gate.arrival();
  return async () => {
    arrival.open("through");
    expect((await answer).text).toBe("through");
  };
}

it("bodies beyond the budget are refused with Retry-After until one under way has been answered", async () => {
  const release = await hold();
  for (const path of ["/repeat", "/api/v1/tasks"]) {
    const refused = await served.post(path, large);
    expect(refusal(refused), path).toMatchObject(busy);
    expect(refused.headers.get("retry-after")).toBe("1");
  }
  const connect = await served.post("/tessera.v1.EndpointService/CallEndpoint", large);
  expect(connect).toMatchObject({ status: 503, json: { code: "unavailable" } });
  expect(connect.text).toContain("SERVER_BUSY");
  expect((await served.post("/repeat", { text: "a" })).text).toBe("a");
  await release();
  await expect.poll(async () => (await served.post("/repeat", large)).status).toBe(200);
});

it("bodies of gRPC count too, and are refused in its own way", async () => {
  const transport = createGrpcTransport({ baseUrl: served.origin });
  const { callEndpoint } = createClient(EndpointService, transport);
  const call = () =>
    callEndpoint({ endpoint: "repeat", input: { case: "arguments", value: large } });
  const release = await hold();
  const err = ConnectError.from(await call().catch((thrown) => thrown));
  expect(err.code).toBe(Code.Unavailable);
  expect(err.metadata.get("retry-after")).toBe("1");
  await release();
  await expect.poll(() => call().then(() => "answered")).toBe("answered");
});

it("what a body says of its length counts before it has come, and not after its sender has left", async () => {
  const req = request({
    host: "127.0.0.1",
    port: served.port,
    method: "POST",
    path: "/repeat",
    headers: {
      "content-type": "application/json",
      "content-length": "1500",
      expect: "100-continue",
    },
  });
  req.on("error", () => {}).flushHeaders();
  await once(req, "continue");
  const status = async () => (await served.post("/repeat", large)).status;
  expect(await status()).toBe(503);
  req.destroy();
  await expect.poll(status).toBe(200);
});
