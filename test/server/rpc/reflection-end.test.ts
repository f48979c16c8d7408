import { once } from "node:events";
import { constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { describe, expect, it } from "vitest";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import type { Problem } from "../../../src/errors.ts";
import { isDefect } from "../../../src/server/http/problem.ts";
import { startServer } from "./server.ts";

const LIST = encodeEnvelope(
  0,
  toBinary(
    ServerReflectionRequestSchema,
    create(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "" } }),
  ),
);

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const END_HEADERS = 4;

/** A frame of HTTP/2 (RFC 9113, section 4.1): Node's client ends a stream before it resets it. */
function frame(type: number, streamId: number, payload: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as literals that are not indexed (RFC 7541, section 6.2.2). */
function packed(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.from([value.length, ...Buffer.from(value)]);
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

function reset(code: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frame(RST_STREAM, 1, payload);
}

const ASKED = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  frame(SETTINGS, 0, Buffer.alloc(0)),
  frame(
    HEADERS,
    1,
    packed({
      ":method": "POST",
      ":scheme": "http",
      ":authority": "localhost",
      ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "content-type": "application/grpc",
      te: "trailers",
    }),
    END_HEADERS,
  ),
  frame(DATA, 1, LIST),
]);

describe("a stream of reflection whose caller leaves without ending it", () => {
  it.each<[string, (socket: Socket) => unknown]>([
    ["by a reset with NO_ERROR", (socket) => socket.write(reset(constants.NGHTTP2_NO_ERROR))],
    ["by a reset with CANCEL", (socket) => socket.write(reset(constants.NGHTTP2_CANCEL))],
    [
      "by a reset with INTERNAL_ERROR",
      (socket) => socket.write(reset(constants.NGHTTP2_INTERNAL_ERROR)),
    ],
    [
      "within a message",
      (socket) =>
        socket.write(
          Buffer.concat([frame(DATA, 1, LIST.subarray(0, 6)), reset(constants.NGHTTP2_CANCEL)]),
        ),
    ],
    ["by closing the connection", (socket) => socket.end()],
    ["by breaking the connection", (socket) => socket.resetAndDestroy()],
  ])("is no error in the log: %s", async (_how, leave) => {
    const reported = Promise.withResolvers<Problem>();
    await using server = await startServer({}, { http2: true, report: reported.resolve });
    const socket = connect(server.port, "127.0.0.1");
    socket.write(ASKED);
    let answered = "";
    while (!answered.includes("grpc.health.v1.Health")) {
      const [chunk] = (await once(socket, "data")) as [Buffer];
      answered += chunk.toString("latin1");
    }
    leave(socket);
    const found = await reported.promise;
    expect(found.reason).toBe("CALLER_GONE");
    expect(isDefect(found)).toBe(false);
    socket.destroy();
  });
});
