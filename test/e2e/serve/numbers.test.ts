/** Numbers and arrays, in a service in TypeScript: as they were sent, or refused. */
import { once } from "node:events";
import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallEndpointRequestSchema } from "../../../gen/tessera/v1/endpoint_pb.js";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

const CALL = "/tessera.v1.EndpointService/CallEndpoint";
const JSON_HEADERS = { "content-type": "application/json" };

let served: Served;
beforeAll(async () => {
  served = await serve("numbers");
});
afterAll(() => served.stop());

/** The status and message of a call over gRPC. */
async function grpc(endpoint: string, values: Record<string, number>) {
  const input = { case: "arguments", value: values } as const;
  const message = toBinary(
    CallEndpointRequestSchema,
    create(CallEndpointRequestSchema, { endpoint, input }),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const session = connect(served.origin);
  const headers = { ":method": "POST", ":path": CALL, "content-type": "application/grpc" };
  const stream = session.request({ ...headers, te: "trailers" });
  stream.resume();
  stream.end(Buffer.concat([head, message]));
  const [trailers] = await once(stream, "trailers");
  session.destroy();
  const text = decodeURIComponent(trailers["grpc-message"] ?? "");
  return { status: trailers["grpc-status"], message: text };
}

describe("a result over gRPC", () => {
  it("is measured as the message that a client has to take", async () => {
    const found = await grpc("zeros", { count: 500_000 });
    // OUT_OF_RANGE, for a megabyte of JSON that would be five of a message.
    expect(found.status).toBe("11");
    expect(found.message).toMatch(/^the result has 5\d{6} bytes, .* over HTTP, POST \/zeros$/);
    const whole = await served.post("/zeros", { count: 500_000 });
    expect(whole.json).toHaveLength(500_000);
    expect(await grpc("zeros", { count: 300_000 })).toEqual({ status: "0", message: "" });
  });

  it("is not rounded", async () => {
    expect((await served.post("/wide", {})).text).toBe("9007199254740993");
    const found = await grpc("wide", {});
    expect(found.status).toBe("11");
    expect(found.message).toContain("the result has 9007199254740993, which a message cannot hold");
  });
});

it.each([
  ["on the path", "/same", (value: string) => `{"value":${value}}`],
  [
    "over REST",
    "/api/v1/endpoints/same:call",
    (value: string) => `{"arguments":{"value":${value}}}`,
  ],
  ["over Connect", CALL, (value: string) => `{"endpoint":"same","arguments":{"value":${value}}}`],
])("%s, what a number of JavaScript does not hold is refused", async (_, path, body) => {
  for (const value of ["9007199254740993", "[1e400]", "-18446744073709551615"]) {
    const answer = await served.send(path, body(value), JSON_HEADERS);
    expect([answer.status, answer.text]).toEqual([
      400,
      expect.stringContaining("ARGUMENTS_INVALID"),
    ]);
    expect(answer.text).toContain("send it as a text");
  }
  const taken = await served.send(path, body('[1.5,"9007199254740993"]'), JSON_HEADERS);
  expect(taken.text).toContain('[1.5,"9007199254740993"]');
  const nan = await served.send(path, body("[NaN]"), JSON_HEADERS);
  expect([nan.status, nan.text]).toEqual([400, expect.stringContaining("NaN at byte")]);
});

describe("a large array", () => {
  it("is bounded by the max_json of its endpoint alone", async () => {
    const values = Array.from({ length: 3_000 }, () => new Array(1_000).fill(7));
    expect((await served.post("/length", { values })).json).toBe(3_000_000);
    const more = { values: [...values, ...values] };
    const found = refusal(await served.post("/length", more));
    expect(found).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
    expect(found.message).toContain("8388608 bytes; the max_json of endpoint length");
  });

  it("is refused where it is not one of its type, and says where", async () => {
    const values = [new Array(100_000).fill(7), [1, "2"]];
    const found = refusal(await served.post("/length", { values }));
    expect(found).toMatchObject({ reason: "ARGUMENTS_INVALID", fields: ["values.1.1"] });
  });

  it("has no more than the operator allows", async () => {
    await using small = await serve("numbers", { maxJsonBodyBytes: 1_000 });
    const found = refusal(await small.post("/length", { values: [new Array(1_000).fill(7)] }));
    expect(found.message).toContain("1000 bytes; the most that the operator allows (--max-json)");
  });
});
