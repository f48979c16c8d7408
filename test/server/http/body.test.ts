import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { type FastifyInstance, fastify } from "fastify";
import { afterEach, expect, it } from "vitest";
import { toProblem } from "../../../src/errors.ts";
import { BodyStream, boundedChunks, leaveBodies, readBody } from "../../../src/server/http/body.ts";
import { sendProblem } from "../../../src/server/http/problem.ts";

const DEADLINE_MS = 50;

let app: FastifyInstance;
let session: ClientHttp2Session | undefined;
afterEach(async () => {
  session?.destroy();
  await app.close();
});

async function start(http2: boolean): Promise<number> {
  app = (http2 ? fastify({ http2: true }) : fastify()) as unknown as FastifyInstance;
  leaveBodies(app);
  app.post("/", async (req, reply) => {
    try {
      return String((await readBody(req, 10, { deadlineMs: DEADLINE_MS })).length);
    } catch (err) {
      return sendProblem(reply, toProblem(err));
    }
  });
  app.post("/stream", async (req, reply) => {
    try {
      let size = 0;
      for await (const chunk of new BodyStream(req, { maxBytes: 10, deadlineMs: DEADLINE_MS })) {
        size += chunk.length;
      }
      return String(size);
    } catch (err) {
      return sendProblem(reply, toProblem(err));
    }
  });
  app.post("/chunks", async (req, reply) => {
    reply.hijack();
    for await (const _ of boundedChunks(req, req.raw, DEADLINE_MS)) {
      // Like the RPC library, it answers when all is there.
    }
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

/** Read whole, and read as it arrives. */
const WAYS = ["/", "/stream"];

it("a body that was read already is refused, not taken for none", async () => {
  app = fastify() as unknown as FastifyInstance;
  leaveBodies(app);
  app.post("/", async (req, reply) => {
    const first = await readBody(req, 10);
    const second = await readBody(req, 10).catch((err: unknown) => err);
    return reply.send([String(first), second instanceof Error]);
  });
  const answer = await fetch(`${await app.listen({ host: "127.0.0.1", port: 0 })}/`, {
    method: "POST",
    body: "abc",
  });
  expect(await answer.json()).toEqual(["abc", true]);
});

it.each(WAYS)("a body over HTTP/1.1 or 2 is read to its end: %s", async (path) => {
  const init = { method: "POST", body: "nine char" };
  expect(await (await fetch(`http://127.0.0.1:${await start(false)}${path}`, init)).text()).toBe(
    "9",
  );
  await app.close();
  session = connectHttp2(`http://127.0.0.1:${await start(true)}`);
  const stream = session.request({ ":method": "POST", ":path": path }, { endStream: false });
  stream.end("nine char");
  expect(await text(stream)).toBe("9");
});

it.each(WAYS)(
  "a body over HTTP/2 that does not come to its end is refused, and its stream ended: %s",
  async (path) => {
    session = connectHttp2(`http://127.0.0.1:${await start(true)}`);
    const stream = session.request({ ":method": "POST", ":path": path }, { endStream: false });
    // Its end is a reset.
    stream.on("error", () => {});
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.write("four");
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(400);
    expect(await text(stream)).toMatch(/did not arrive in time.*BODY_MALFORMED/);
    await closed;
  },
);

it.each(WAYS)(
  "a body over HTTP/1.1 that does not come to its end is refused, and its connection ended: %s",
  async (path) => {
    const socket = connect(await start(false), "127.0.0.1");
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nfour`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 [\s\S]*did not arrive in time/);
  },
);

it.each(WAYS)(
  "a body that is too large and never ends is refused at once, and its stream ended: %s",
  async (path) => {
    session = connectHttp2(`http://127.0.0.1:${await start(true)}`);
    const stream = session.request({ ":method": "POST", ":path": path }, { endStream: false });
    // Its end is a reset.
    stream.on("error", () => {});
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.write("more than ten");
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(413);
    stream.resume();
    await closed;
  },
);

it("a body that is read in chunks and does not come to its end ends its stream", async () => {
  session = connectHttp2(`http://127.0.0.1:${await start(true)}`);
  const stream = session.request({ ":method": "POST", ":path": "/chunks" }, { endStream: false });
  stream.on("error", () => {});
  const closed = new Promise((resolve) => stream.once("close", resolve));
  stream.write("four");
  await closed;
});
