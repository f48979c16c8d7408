/** What messages may be made of that the library decodes: gRPC, gRPC-Web, Connect streams and GET. */
import { once } from "node:events";
import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, it } from "vitest";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { CallEndpointRequestSchema } from "../../../gen/tessera/v1/endpoint_pb.js";
import { TaskResultSchema } from "../../../gen/tessera/v1/task_pb.js";
import { type Served, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const CALL = "/tessera.v1.EndpointService/CallEndpoint";
const MANY = `[${"{},".repeat(500_000)}{}]`;
const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;

const json = (value: string) => Buffer.from(`{"endpoint":"size","arguments":{"value":${value}}}`);

/** A call of an endpoint that takes numbers: of anything else the node has to see all. */
const sum = (value: string) => Buffer.from(`{"endpoint":"sum","arguments":{"numbers":${value}}}`);

/** A call of `size` in binary form, with a list of this many empty objects. */
function binary(count: number): Buffer {
  const value = Array.from({ length: count }, () => ({}));
  const input = { case: "arguments", value: { value } } as const;
  return Buffer.from(
    toBinary(
      CallEndpointRequestSchema,
      create(CallEndpointRequestSchema, { endpoint: "size", input }),
    ),
  );
}

function envelope(message: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The status and message of a call over gRPC. */
async function grpc(type: string, body: Buffer, encoding = "identity") {
  const session = connect(served.origin);
  const stream = session.request({
    ":method": "POST",
    ":path": CALL,
    "content-type": type,
    "grpc-encoding": encoding,
    te: "trailers",
  });
  // The server may answer before it has read all.
  stream.on("error", () => {}).resume();
  stream.end(body);
  const [trailers] = await once(stream, "trailers");
  session.destroy();
  return {
    status: trailers["grpc-status"],
    message: decodeURIComponent(trailers["grpc-message"] ?? ""),
  };
}

const TOO_MANY = "holds more than 100000 JSON values";

it("gRPC in JSON is scanned, compressed or not", async () => {
  const type = "application/grpc+json";
  for (const [value, message] of [
    [MANY, TOO_MANY],
    [DEEP, "nested deeper than 200"],
  ] as const) {
    const plain = await grpc(type, envelope(sum(value)));
    expect(plain).toMatchObject({ status: "3", message: expect.stringContaining(message) });
    const packed = await grpc(type, envelope(gzipSync(sum(value)), 1), "gzip");
    expect(packed).toMatchObject({ status: "3", message: expect.stringContaining(message) });
  }
  expect(await grpc(type, envelope(json("[1,2]")))).toMatchObject({ status: "0" });
  expect(await grpc(type, envelope(gzipSync(json("[1]")), 1), "gzip")).toMatchObject({
    status: "0",
  });
});

it("gRPC in binary form has the same bound of values", async () => {
  const type = "application/grpc";
  const refused = {
    status: "3",
    message: expect.stringContaining("holds more than 100000 values"),
  };
  expect(await grpc(type, envelope(binary(500_000)))).toMatchObject(refused);
  expect(await grpc(type, envelope(gzipSync(binary(500_000)), 1), "gzip")).toMatchObject(refused);
  expect(await grpc(type, envelope(binary(90_000)))).toMatchObject({ status: "0" });
  const data = Buffer.from(JSON.stringify({ value: "x".repeat(500_000) }));
  const value = create(HttpBodySchema, { contentType: "application/json", data });
  const call = create(CallEndpointRequestSchema, {
    endpoint: "size",
    input: { case: "body", value },
  });
  const body = envelope(Buffer.from(toBinary(CallEndpointRequestSchema, call)));
  expect(await grpc(type, body)).toMatchObject({ status: "0" });
});

it("so have gRPC-Web, binary Connect and Connect streams", async () => {
  const send = async (path: string, type: string, body: Buffer) =>
    (await served.send(path, body, { "content-type": type })).text;
  expect(
    decodeURIComponent(await send(CALL, "application/grpc-web+json", envelope(sum(MANY)))),
  ).toContain(TOO_MANY);
  expect(await send(CALL, "application/proto", binary(500_000))).toContain(
    "holds more than 100000 values",
  );
  const watch = envelope(Buffer.from(`{"taskId":"x","nothing":${MANY}}`));
  expect(
    await send("/tessera.v1.TaskService/WatchTask", "application/connect+json", watch),
  ).toContain("holds more than 30000 JSON values");
});

it("and Connect GET", async () => {
  const ask = async (message: Buffer, more: string) => {
    const query = `connect=v1&encoding=json&base64=1&message=${message.toString("base64url")}${more}`;
    return served.get(`/tessera.v1.EndpointService/ListEndpoints?${query}`);
  };
  const packed = await ask(gzipSync(`{"nothing":${MANY}}`), "&compression=gzip");
  expect([packed.status, packed.text]).toEqual([400, expect.stringContaining("BODY_MALFORMED")]);
  expect((await ask(Buffer.from(`{"nothing":${DEEP.slice(50_000, 150_000)}}`), "")).status).toBe(
    400,
  );
  expect((await ask(Buffer.from("{}"), "")).status).toBe(200);
});

it("large arguments are the call's, in each of these protocols", async () => {
  const numbers = Array.from({ length: 90_000 }, (_, i) => i / 7);
  const text = JSON.stringify({ value: numbers });
  const message = create(CallEndpointRequestSchema, {
    endpoint: "size",
    input: { case: "arguments", value: { value: numbers } },
  });
  const packed = Buffer.from(toBinary(CallEndpointRequestSchema, message));
  const inJson = Buffer.from(`{"endpoint":"size","arguments":${text}}`);
  for (const [type, body, encoding] of [
    ["application/grpc", envelope(packed), "identity"],
    ["application/grpc", envelope(gzipSync(packed), 1), "gzip"],
    ["application/grpc+json", envelope(inJson), "identity"],
    ["application/grpc+json", envelope(gzipSync(inJson), 1), "gzip"],
  ] as const) {
    expect(await grpc(type, body, encoding), type).toMatchObject({ status: "0" });
  }
  for (const [body, encoding] of [
    [packed, "identity"],
    [gzipSync(packed), "gzip"],
  ] as const) {
    const headers = { "content-type": "application/proto", "content-encoding": encoding };
    const answer = await served.send(CALL, body, headers);
    expect(answer.status, answer.text).toBe(200);
    const { value } = fromBinary(TaskResultSchema, answer.body).result;
    expect(value).toMatchObject({ kind: { value: expect.any(Number) } });
  }
  const tooLarge = await served.send(CALL, Buffer.alloc(4 * 1024 * 1024 + 1), {
    "content-type": "application/proto",
  });
  expect(tooLarge.text).toContain("resource_exhausted");
  const broken = await served.send(CALL, Buffer.from("no gzip"), {
    "content-type": "application/proto",
    "content-encoding": "gzip",
  });
  expect(broken.status).toBe(400);
});
