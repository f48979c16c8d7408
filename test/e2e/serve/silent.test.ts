/** Endpoints that return nothing. */
import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { ResultFormat, TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { createClient as createTyped } from "../../../src/client/index.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let sessions: Http2SessionManager;
beforeAll(async () => {
  served = await serve("silent");
  sessions = new Http2SessionManager(served.origin);
});
afterAll(async () => {
  sessions.abort();
  await served.stop();
});

/** The JSON value `null`: a body that every client of JSON reads, which no body would not be. */
const NULL = { status: 200, type: "application/json; charset=utf-8", text: "null" };

const seen = ({ status, headers, text }: Awaited<ReturnType<Served["get"]>>) => ({
  status,
  type: headers.get("content-type"),
  text,
});

describe("an endpoint that returns nothing", () => {
  it.each(["touch", "touch_later"])("answers null over HTTP: %s", async (endpoint) => {
    expect(seen(await served.post(`/${endpoint}`, {}))).toEqual(NULL);
    const inRest = await served.post(`/api/v1/endpoints/${endpoint}:call`, {});
    expect({ status: inRest.status, json: inRest.json }).toMatchObject({
      status: 200,
      json: { value: null },
    });
  });

  it("has null as the result of its tasks, which end with success", async () => {
    const id = await served.submit("touch_later", {});
    expect(seen(await served.get(`/touch_later/get?task_id=${id}&wait=20`))).toEqual(NULL);
    expect(await served.ended("touch_later", id)).toMatchObject({
      status: "success",
      failure: null,
    });
  });

  it.each<[string, () => Transport]>([
    ["gRPC", () => createGrpcTransport({ baseUrl: served.origin, sessionManager: sessions })],
    ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: served.origin, httpVersion: "1.1" })],
    ["Connect", () => createConnectTransport({ baseUrl: served.origin, httpVersion: "1.1" })],
  ])("answers the null value over %s, or its JSON as a body", async (_, transport) => {
    const endpoints = createClient(EndpointService, transport());
    const tasks = createClient(TaskService, transport());
    const value = { case: "value", value: { kind: { case: "nullValue" } } };
    const data = new TextEncoder().encode("null");
    const body = { case: "body", value: { contentType: "application/json", data } };
    for (const endpoint of ["touch", "touch_later"]) {
      expect((await endpoints.callEndpoint({ endpoint })).result).toMatchObject(value);
      const asBody = { endpoint, resultFormat: ResultFormat.BODY };
      expect((await endpoints.callEndpoint(asBody)).result).toMatchObject(body);
    }
    const wait = { seconds: 20n };
    const { result } = await tasks.submitTask({ endpoint: "touch_later", wait });
    expect(result?.result).toMatchObject(value);
  });

  it("gives the TypeScript client null", async () => {
    const client = createTyped({ url: served.origin });
    expect(await client.touch?.()).toBeNull();
    expect(await (await client.touch_later?.submit())?.wait()).toBeNull();
  });
});
