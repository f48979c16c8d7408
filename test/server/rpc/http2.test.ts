import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer } from "./server.ts";

let server: Awaited<ReturnType<typeof startServer>>;
let session: ClientHttp2Session;
const aborted = Promise.withResolvers<void>();

beforeAll(async () => {
  server = await startServer(
    {
      getTask: ({ taskId }) => ({ taskId, status: 1 }),
      cancelTask: ({ taskId, abort }) => ({ taskId, status: abort ? 5 : 1 }),
      async *watchTask({ taskId, afterSequence }, { signal }) {
        yield { sequence: afterSequence + 1n, event: { case: "state", value: { status: 2 } } };
        if (taskId === "endless") {
          await once(signal, "abort");
          aborted.resolve();
        }
      },
    },
    { http2: true },
  );
  session = connect(server.origin);
});
afterAll(async () => {
  session.close();
  await server[Symbol.asyncDispose]();
});

async function call(method: string, path: string, body?: string, headers = {}) {
  const stream = session.request({ ":method": method, ":path": path, ...headers });
  stream.end(body);
  const [head] = (await once(stream, "response")) as [Record<string, unknown>];
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    text += chunk;
  }
  return { status: head[":status"], text };
}

describe("REST over HTTP/2", () => {
  it("answers unary calls, with a body and without", async () => {
    expect(await call("GET", "/api/v1/tasks/a")).toEqual({
      status: 200,
      text: '{"task_id":"a","status":"queued","attempts":[],"tags":[]}',
    });
    expect(await call("POST", "/api/v1/tasks/a:cancel")).toEqual({
      status: 200,
      text: '{"task_id":"a","status":"queued","attempts":[],"tags":[]}',
    });
    const json = { "content-type": "application/json" };
    expect(await call("POST", "/api/v1/tasks/a:cancel", '{"abort":true}', json)).toEqual({
      status: 200,
      text: '{"task_id":"a","status":"cancelled","attempts":[],"tags":[]}',
    });
  });

  it("answers streams", async () => {
    expect(await call("GET", "/api/v1/tasks/a:watch?after_sequence=6")).toEqual({
      status: 200,
      text: '{"sequence":"7","state":{"status":"running"}}\n',
    });
  });

  it("refuses a body that is too large", async () => {
    const json = { "content-type": "application/json" };
    const { status } = await call("POST", "/api/v1/tasks", "x".repeat(5_000_000), json);
    expect(status).toBe(413);
  });

  it("aborts a stream whose client resets it", async () => {
    const stream = session.request({ ":path": "/api/v1/tasks/endless:watch" });
    await once(stream, "data");
    stream.close();
    await aborted.promise;
  });

  it("refuses HEAD of a stream", async () => {
    const { status } = await call("HEAD", "/api/v1/tasks/a:watch");
    expect(status).toBe(405);
  });
});
