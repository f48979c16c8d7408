/** A body that is refused before its end, over HTTP/1.1: its connection serves the next request. */
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer } from "./server.ts";

const LIMIT_BYTES = 100_000;

/** More than a socket and a stream hold between them. */
const REFUSED = Buffer.alloc(LIMIT_BYTES * 5);

let server: Awaited<ReturnType<typeof startServer>>;

beforeAll(async () => {
  server = await startServer(
    { getTask: ({ taskId }) => ({ taskId, status: 1 }) },
    { readMaxBytes: LIMIT_BYTES },
  );
});
afterAll(() => server[Symbol.asyncDispose]());

async function post(agent: Agent, path: string, contentType: string, body: Uint8Array) {
  const req = request(server.origin + path, {
    ...{ agent, method: "POST", headers: { "content-type": contentType } },
    signal: AbortSignal.timeout(5_000),
  });
  req.end(body);
  const [res] = (await once(req, "response")) as [IncomingMessage];
  await buffer(res);
  return { status: res.statusCode, isReused: req.reusedSocket };
}

describe("the connection of a refused body serves the next request", () => {
  it.each([
    ["GetTask", "application/json", REFUSED],
    ["GetTask", "application/proto", REFUSED],
    ["GetTask", "application/grpc-web+proto", encodeEnvelope(0, REFUSED)],
    ["GetTask", "image/png", REFUSED],
    ["WatchTask", "application/connect+proto", encodeEnvelope(0, REFUSED)],
    ["WatchTask", "application/grpc-web+proto", encodeEnvelope(0, REFUSED)],
    ["Nothing", "application/proto", REFUSED],
  ])("%s in %s", async (method, contentType, body) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    await post(agent, `/tessera.v1.TaskService/${method}`, contentType, body);
    const message = Buffer.from('{"taskId":"a"}');
    const path = "/tessera.v1.TaskService/GetTask";
    expect(await post(agent, path, "application/json", message)).toEqual({
      status: 200,
      isReused: true,
    });
    agent.destroy();
  });
});
