import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { type Served, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const RPC = "/tessera.v1.EndpointService/";

it.each([
  ["a result", () => served.post("/repeat", { text: "a" })],
  ["a refused call", () => served.post("/repeat", {})],
  ["an accepted task", () => served.post("/repeat_later/submit", { text: "a" })],
  ["a path that is not there", () => served.get("/nothing/at/all")],
  ["a probe", () => served.get("/livez")],
  ["REST", () => served.get("/api/v1/endpoints")],
  ["Connect", () => served.post(`${RPC}ListEndpoints`, {})],
  ["an unknown RPC", () => served.post(`${RPC}Nothing`, {})],
])("nobody keeps an answer or guesses its type: %s", async (_, call) => {
  const { headers } = await call();
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("x-request-id")).toMatch(/^\w+$/);
});

it("nobody keeps an answer over gRPC", async () => {
  const client = createClient(EndpointService, createGrpcTransport({ baseUrl: served.origin }));
  const { promise, resolve } = Promise.withResolvers<Headers>();
  await client.listEndpoints({}, { onHeader: resolve });
  const headers = await promise;
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
});

it("documents are asked for again, and then not sent twice", async () => {
  const { headers } = await served.get("/docs.json");
  expect(headers.get("cache-control")).toBe("no-cache");
});
