/** Callers that close their connection with a request, and read nothing before it is sent whole. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, serve } from "./served.ts";

const TOKEN = "a-token-of-this-test";

/** More than the system holds between two sockets. */
const BODY = Buffer.alloc(16 * 1024 ** 2, "x");

let served: Served;
beforeAll(async () => {
  served = await serve("calls", { jsonBodyBytes: 10_000, fileBodyBytes: 20_000, token: TOKEN });
});
afterAll(() => served.stop());

/** The answer, which is read only when all was sent. */
async function sendThenRead(request: string, headers: readonly string[]): Promise<string> {
  const socket = connect({ port: served.port, host: "127.0.0.1" });
  socket.pause();
  await once(socket, "connect");
  const lines = [`${request} HTTP/1.1`, "Host: a", ...headers, `Content-Length: ${BODY.length}`];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.write(BODY, (err) => (err ? reject(err) : resolve()));
  });
  let text = "";
  for await (const chunk of socket) {
    text += chunk;
  }
  return text;
}

const AUTHORIZED = `Authorization: Bearer ${TOKEN}`;
const JSON_TYPE = "Content-Type: application/json";
const CLOSE = "Connection: close";

it.each([
  ["no token", "POST /repeat", [JSON_TYPE], 401],
  ["an RPC that is too large", "POST /tessera.v1.TaskService/SubmitTask", [JSON_TYPE], 429],
  ["a path that is not there", "POST /nothing", [JSON_TYPE, AUTHORIZED], 404],
  ["a method that is not there", "PUT /repeat", [JSON_TYPE, AUTHORIZED], 405],
  ["a body that is too large", "POST /repeat", [JSON_TYPE, AUTHORIZED], 413],
  ["a message that is too large", "POST /api/v1/tasks", [JSON_TYPE, AUTHORIZED], 413],
])("gets the answer to %s with its whole body sent", async (_, request, headers, status) => {
  const text = await sendThenRead(request, [...headers, CLOSE]);
  expect(text.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  expect(text).toContain('"message"');
});

it.each([
  ["no token", "/repeat", "application/json", 401],
  ["a path that is not there", "/nothing", "application/json", 404],
  ["a method that is not there", "/livez", "application/json", 405],
  ["a body that is too large", "/repeat", "application/json", 413],
  ["a type that no RPC has", "/tessera.v1.TaskService/GetTask", "image/png", 415],
  ["a message that is too large", "/tessera.v1.TaskService/GetTask", "application/proto", 429],
])("resets no stream of HTTP/2 that brings the answer to %s", async (what, path, type, status) => {
  const session = connectHttp2(served.origin);
  const stream = session.request({
    ...{ ":method": "POST", ":path": path, "content-type": type },
    ...(what !== "no token" && { authorization: `Bearer ${TOKEN}` }),
  });
  const answered = once(stream, "response");
  stream.resume();
  // More than the window of a stream: it ends only if the other side reads.
  for (let at = 0; at < BODY.length; at += 65_536) {
    if (!stream.write(BODY.subarray(at, at + 65_536))) {
      await once(stream, "drain");
    }
  }
  const closed = once(stream, "close");
  stream.end();
  const [headers] = await answered;
  await closed;
  expect([headers[":status"], stream.rstCode, stream.writableFinished]).toEqual([status, 0, true]);
  session.destroy();
});
