import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EndpointService, PieceForm } from "../../../gen/tessera/v1/endpoint_pb.js";
import { ResultFormat } from "../../../gen/tessera/v1/task_pb.js";
import { Gate } from "./gate.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
let gate: Gate;
let sessions: Http2SessionManager;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("streaming"), Gate.build()]);
  sessions = new Http2SessionManager(served.origin);
});
afterAll(async () => {
  sessions.abort();
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

const http1 = () => ({ baseUrl: served.origin, httpVersion: "1.1" }) as const;
const TRANSPORTS: Record<string, () => Transport> = {
  gRPC: () => createGrpcTransport({ baseUrl: served.origin, sessionManager: sessions }),
  "gRPC-Web": () => createGrpcWebTransport(http1()),
  "binary Connect": () => createConnectTransport({ ...http1(), useBinaryFormat: true }),
  "Connect in JSON": () => createConnectTransport({ ...http1(), useBinaryFormat: false }),
};

type Endpoints = Client<typeof EndpointService>;

/** Arguments as they are posted. */
const input = (values: object) => {
  const data = Buffer.from(JSON.stringify(values));
  return { case: "body" as const, value: { contentType: "application/json", data } };
};

/** The pieces of a call with their numbers, and the error at its end. */
async function streamOf(
  endpoints: Endpoints,
  endpoint: string,
  values: object,
  resultFormat = ResultFormat.UNSPECIFIED,
) {
  const pieces: unknown[] = [];
  try {
    const request = { endpoint, input: input(values), resultFormat };
    for await (const { sequence, piece } of endpoints.streamEndpoint(request)) {
      expect(Number(sequence)).toBe(pieces.length + 1);
      const { value } = piece;
      pieces.push(
        piece.case === "value"
          ? piece.value.kind.value
          : value && "data" in value && [value.contentType, Buffer.from(value.data).toString()],
      );
    }
    return { pieces };
  } catch (thrown) {
    return { pieces, error: ConnectError.from(thrown) };
  }
}

describe.each(Object.entries(TRANSPORTS))("over %s", (_, transport) => {
  const endpoints = () => createClient(EndpointService, transport());

  test("the list says which endpoints stream, and how", async () => {
    const { endpoints: listed } = await endpoints().listEndpoints({});
    const forms = new Map(listed.map(({ name, pieces }) => [name, pieces]));
    expect(["values", "texts", "audio", "whole"].map((name) => forms.get(name))).toEqual([
      ...[PieceForm.JSON, PieceForm.TEXT, PieceForm.BYTES, PieceForm.UNSPECIFIED],
    ]);
  });

  test("pieces are values, texts and bytes", async () => {
    const values = { list: [1, "two", true] };
    expect(await streamOf(endpoints(), "values", values)).toEqual({ pieces: [1, "two", true] });
    const texts = { list: ["a", "", "é"] };
    expect(await streamOf(endpoints(), "texts", texts)).toEqual({ pieces: texts.list });
    expect(await streamOf(endpoints(), "audio", { list: ["ab", "c"] })).toEqual({
      pieces: [
        ["audio/mpeg", "ab"],
        ["audio/mpeg", "c"],
      ],
    });
    expect(await streamOf(endpoints(), "texts", { list: [] })).toEqual({ pieces: [] });
  });

  test("pieces are bodies where they are asked for", async () => {
    const values = await streamOf(endpoints(), "values", { list: [[1]] }, ResultFormat.BODY);
    expect(values.pieces).toEqual([["application/json", "[1]"]]);
    const texts = await streamOf(endpoints(), "texts", { list: ["a"] }, ResultFormat.BODY);
    expect(texts.pieces).toEqual([["text/plain; charset=utf-8", "a"]]);
  });

  test("each piece comes when it is made, and a caller that leaves aborts the function", async () => {
    const leaving = new AbortController();
    const stream = endpoints().streamEndpoint(
      { endpoint: "gated", input: input({ gate: gate.url }) },
      { signal: leaving.signal },
    );
    const pieces = stream[Symbol.asyncIterator]();
    const next = async () => (await pieces.next()).value?.piece.value.kind.value;
    expect(await next()).toBe("begun;");
    (await gate.arrival()).open("second;");
    expect(await next()).toBe("second;");
    const arrival = await gate.arrival();
    leaving.abort();
    await expect(pieces.next()).rejects.toMatchObject({ code: Code.Canceled });
    await arrival.gone;
  });

  test("a failure in the middle is the status of the call, after its pieces", async () => {
    const { pieces, error } = await streamOf(endpoints(), "breaks", { pieces: 2 });
    expect(pieces).toEqual(["piece;", "piece;"]);
    expect([error?.code, error?.rawMessage]).toEqual([Code.InvalidArgument, "that is all"]);
  });

  test("an endpoint that does not stream is refused", async () => {
    const { error } = await streamOf(endpoints(), "whole", {});
    expect(error?.code).toBe(Code.InvalidArgument);
    expect(error?.rawMessage).toMatch(/whole is no api that streams: call it with CallEndpoint/);
  });

  test("the unary call gives the whole", async () => {
    const call = async (endpoint: string, values: object) =>
      (await endpoints().callEndpoint({ endpoint, input: input(values) })).result;
    expect(await call("texts", { list: ["a", "b"] })).toMatchObject({
      value: { kind: { value: "ab" } },
    });
    expect(await call("values", { list: [1] })).toMatchObject({
      value: { kind: { case: "listValue", value: { values: [{ kind: { value: 1 } }] } } },
    });
    expect(await call("audio", { list: ["ab", "c"] })).toMatchObject({
      case: "body",
      value: { contentType: "audio/mpeg", data: new Uint8Array(Buffer.from("abc")) },
    });
    await expect(call("breaks", { pieces: 2 })).rejects.toThrow("that is all");
  });
});

test("over REST pieces are lines or events", async () => {
  const path = "/api/v1/endpoints/texts:stream";
  const values = { arguments: { list: ["a", "b"] } };
  const lines = await served.post(path, values);
  expect(
    lines.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { sequence: "1", value: "a" },
    { sequence: "2", value: "b" },
  ]);
  const events = await served.post(path, values, { accept: "text/event-stream" });
  expect(events.text).toMatch(/^data: \{"sequence":"1","value":"a"\}\n\n.*event: end\n/s);
  const refused = refusal(await served.post("/api/v1/endpoints/whole:stream", {}));
  expect(refused).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
});
