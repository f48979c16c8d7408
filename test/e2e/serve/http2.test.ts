import { once } from "node:events";
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { text as readText } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, type Shown, serve } from "./served.ts";

let served: Served;
let session: ClientHttp2Session;
beforeAll(async () => {
  served = await serve("calls");
  session = connect(served.origin);
});
afterAll(async () => {
  session.close();
  await served.stop();
});

async function ask(method: string, path: string, body?: string | Buffer) {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const head: OutgoingHttpHeaders = { ":method": method, ":path": path, ...type };
  const stream = session.request(head, { endStream: body === undefined });
  // The server may answer, and reset the stream, before it has taken all.
  stream.on("error", () => {});
  const answered = once(stream, "response");
  if (body !== undefined) {
    stream.end(body);
  }
  const [headers] = (await answered) as [Record<string, string | number>];
  return { status: headers[":status"], headers, text: await readText(stream) };
}

it("a service is called and its tasks are followed over HTTP/2, as over HTTP/1.1", async () => {
  expect(await ask("POST", "/repeat", '{"text":"a","times":2}')).toMatchObject({
    status: 200,
    text: "aa",
  });
  const submitted = await ask("POST", "/steps/submit", '{"count":4}');
  const { task_id: id } = JSON.parse(submitted.text) as Shown;
  expect(submitted).toMatchObject({
    status: 202,
    headers: { location: `/steps/status?task_id=${id}` },
  });
  expect((await ask("GET", `/steps/get?task_id=${id}&wait=30`)).text).toBe("4");
  const events = await ask("GET", `/steps/events?task_id=${id}`);
  expect(events.headers["content-type"]).toMatch(/^text\/event-stream/);
  expect(events.text).toContain('"status":"success"');
});

it("errors have the same shape over HTTP/2", async () => {
  for (const [method, path, body, status, reason] of [
    ["POST", "/repeat", "{}", 400, "ARGUMENTS_INVALID"],
    ["POST", "/repeat", "{", 400, "BODY_MALFORMED"],
    ["POST", "/repeat", Buffer.alloc(5 << 20), 413, "BODY_TOO_LARGE"],
    ["DELETE", "/repeat", undefined, 405, "METHOD_NOT_ALLOWED"],
    ["GET", "/sum/get?task_id=none", undefined, 404, "TASK_NOT_FOUND"],
  ] as const) {
    const answer = await ask(method, path, body);
    expect(answer.status, path).toBe(status);
    expect(answer.text).toContain(reason);
  }
});

it("HEAD answers what GET would, without its body", async () => {
  const submitted = await ask("POST", "/sum/submit", '{"numbers":[1,2]}');
  const { task_id: id } = JSON.parse(submitted.text) as Shown;
  for (const path of [`/sum/get?task_id=${id}&wait=30`, `/sum/status?task_id=${id}`]) {
    const got = await ask("GET", path);
    expect(await ask("HEAD", path), path).toMatchObject({
      status: 200,
      text: "",
      headers: {
        "content-type": got.headers["content-type"],
        "content-length": got.headers["content-length"],
      },
    });
    const { status, headers } = await served.fetch(path, { method: "HEAD" });
    expect(status, path).toBe(200);
    expect(headers.get("content-length"), path).toBe(got.headers["content-length"]);
  }
  expect((await ask("HEAD", "/sum/get?task_id=none")).status).toBe(404);
});
