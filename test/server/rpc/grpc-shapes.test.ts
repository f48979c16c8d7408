/** Malformed and unusual gRPC requests, sent as raw HTTP/2: each is answered, and none as the server's fault. */
import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GetTaskRequestSchema } from "../../../gen/tessera/v1/task_pb.js";
import { startServer } from "./server.ts";

/** gRPC's codes that blame the server: UNKNOWN, INTERNAL and DATA_LOSS. */
const SERVER_FAULTS = ["2", "13", "15"];

/** The message that the platform takes by default, and one beyond it. */
const LIMIT_BYTES = 4 * 1024 * 1024;
const OVER_LIMIT_BYTES = 6 * 1024 * 1024;

/** An answer later than this is a hang. */
const HANG_MS = 5_000;

let server: Awaited<ReturnType<typeof startServer>>;
let session: ClientHttp2Session;

beforeAll(async () => {
  server = await startServer(
    {
      getTask: ({ taskId }) => ({ taskId, status: 1 }),
      async *watchTask() {
        yield { sequence: 1n, event: { case: "state", value: { status: 2 } } };
      },
    },
    { http2: true, readMaxBytes: LIMIT_BYTES },
  );
  // It holds what it has not sent of the large ones.
  session = connect(server.origin, { maxSessionMemory: 64 });
});
afterAll(async () => {
  session.destroy();
  await server[Symbol.asyncDispose]();
});

const MESSAGE = toBinary(GetTaskRequestSchema, create(GetTaskRequestSchema, { taskId: "t" }));
const ONE = encodeEnvelope(0, MESSAGE);
const NONE = new Uint8Array(0);

/** An envelope whose length prefix says so much, whatever follows. */
function prefixed(flags: number, saidBytes: number, data: Uint8Array = NONE): Uint8Array {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags, 0);
  prefix.writeUInt32BE(saidBytes, 1);
  return Buffer.concat([prefix, data]);
}

interface Shape {
  readonly path?: string;
  readonly headers?: Record<string, string | undefined>;
  readonly body?: Uint8Array;
  /** False: the body stays open after what was sent. */
  readonly end?: boolean;
}

interface Answer {
  readonly httpStatus: number;
  readonly grpcStatus: string | undefined;
  readonly fields: IncomingHttpHeaders;
}

async function send(shape: Shape): Promise<Answer> {
  const { path = "/tessera.v1.TaskService/GetTask", body = ONE, end = true } = shape;
  const headers = {
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc+proto",
    te: "trailers",
    ...shape.headers,
  };
  const stream = session.request(
    Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
    { signal: AbortSignal.timeout(HANG_MS) },
  );
  let fields: IncomingHttpHeaders = {};
  stream.on("trailers", (trailers) => {
    fields = { ...fields, ...trailers };
  });
  // The server may have answered, and closed its side, before all is sent.
  if (end) {
    stream.end(body);
  } else {
    stream.write(body);
  }
  const [head] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }];
  fields = { ...fields, ...head };
  // The server ends what the caller has not ended.
  stream.resume();
  await once(stream, "close");
  return { httpStatus: head[":status"], grpcStatus: fields["grpc-status"]?.toString(), fields };
}

const WATCH = "/tessera.v1.TaskService/WatchTask";
const timeout = (value: string) => ({ headers: { "grpc-timeout": value } });

const SHAPES: Readonly<Record<string, Shape>> = {
  "no body": { body: NONE },
  "one byte of a prefix": { body: Uint8Array.of(0) },
  "four bytes of a prefix": { body: Uint8Array.of(0, 0, 0, 0) },
  "a prefix without its message": { body: prefixed(0, 10) },
  "a message shorter than its prefix says": { body: prefixed(0, 10, MESSAGE) },
  "a message longer than its prefix says": { body: prefixed(0, 1, MESSAGE) },
  "a prefix of zero before a message": { body: prefixed(0, 0, MESSAGE) },
  "a prefix of 4 GiB": { body: prefixed(0, 0xffffffff, MESSAGE) },
  "a prefix of 2 GiB": { body: prefixed(0, 0x80000000, MESSAGE) },
  "a prefix over the limit, its body left open": {
    body: prefixed(0, OVER_LIMIT_BYTES),
    end: false,
  },
  "an empty message": { body: prefixed(0, 0) },
  "bytes that are no envelope": { body: Buffer.from("GET / HTTP/1.1\r\n\r\n") },
  "a message that is no protobuf": { body: encodeEnvelope(0, Uint8Array.of(0xff, 0xff, 0xff)) },
  "a field that ends too soon": { body: encodeEnvelope(0, Uint8Array.of(0x0a, 0x7f, 0x61)) },
  "text that is not UTF-8": { body: encodeEnvelope(0, Uint8Array.of(0x0a, 0x02, 0xc3, 0x28)) },
  "the compressed flag without an encoding": { body: encodeEnvelope(1, MESSAGE) },
  "the compressed flag with the encoding identity": {
    headers: { "grpc-encoding": "identity" },
    body: encodeEnvelope(1, MESSAGE),
  },
  "the encoding gzip and bytes that are not": {
    headers: { "grpc-encoding": "gzip" },
    body: encodeEnvelope(1, MESSAGE),
  },
  "gzip that ends too soon": {
    headers: { "grpc-encoding": "gzip" },
    body: encodeEnvelope(1, gzipSync(MESSAGE).subarray(0, 12)),
  },
  "gzip that unpacks beyond the limit": {
    headers: { "grpc-encoding": "gzip" },
    body: encodeEnvelope(1, gzipSync(Buffer.alloc(OVER_LIMIT_BYTES * 4))),
  },
  "the encoding gzip and a message without the flag": { headers: { "grpc-encoding": "gzip" } },
  "an unknown encoding": { headers: { "grpc-encoding": "br" }, body: encodeEnvelope(1, MESSAGE) },
  "an unknown encoding and a message without the flag": { headers: { "grpc-encoding": "zz" } },
  "the flag of a stream's end": { body: encodeEnvelope(2, MESSAGE) },
  "the flag of gRPC-Web's trailers": { body: encodeEnvelope(0x80, MESSAGE) },
  "all flags": { body: encodeEnvelope(0xff, MESSAGE) },
  "two messages": { body: Buffer.concat([ONE, ONE]) },
  "two messages of which the second is cut": { body: Buffer.concat([ONE, ONE.subarray(0, 6)]) },
  "a message of 6 MiB": { body: encodeEnvelope(0, new Uint8Array(OVER_LIMIT_BYTES)) },
  "two messages to a server stream": { path: WATCH, body: Buffer.concat([ONE, ONE]) },
  "no message to a server stream": { path: WATCH, body: NONE },
  "6 MiB to a server stream": {
    path: WATCH,
    body: encodeEnvelope(0, new Uint8Array(OVER_LIMIT_BYTES)),
  },
  "a content type without a suffix": { headers: { "content-type": "application/grpc" } },
  "the suffix json before protobuf": { headers: { "content-type": "application/grpc+json" } },
  "an unknown suffix": { headers: { "content-type": "application/grpc+thrift" } },
  "a content type with a parameter": { headers: { "content-type": "application/grpc;x=1" } },
  "no content type": { headers: { "content-type": undefined } },
  "a content type of text": { headers: { "content-type": "text/plain" } },
  "no te": { headers: { te: undefined } },
  "many headers": {
    headers: Object.fromEntries(
      Array.from({ length: 60 }, (_none, at) => [`x-many-${at}`, "v".repeat(100)]),
    ),
  },
  "binary metadata that is not base64": { headers: { "x-odd-bin": "%%%" } },
  "a timeout of eleven digits": timeout("99999999999S"),
  "a negative timeout": timeout("-1S"),
  "an empty timeout": timeout(""),
  "a timeout without a unit": timeout("100"),
  "a timeout of an unknown unit": timeout("1x"),
  "a timeout with a fraction": timeout("1.5S"),
  "the longest timeout": timeout("99999999H"),
  "a timeout of zero": timeout("0n"),
  "an unknown method": { path: "/tessera.v1.TaskService/Nothing" },
  "an unknown service": { path: "/nobody.v1.Nothing/Get" },
};

describe("an odd gRPC request is answered, and not as the server's fault", () => {
  it.each(Object.entries(SHAPES))("%s", async (_name, shape) => {
    const { httpStatus, grpcStatus } = await send(shape);
    expect(httpStatus).toBeLessThan(500);
    expect(SERVER_FAULTS).not.toContain(grpcStatus);
    if (httpStatus === 200) {
      expect(grpcStatus).toMatch(/^\d+$/);
    }
  });
});
