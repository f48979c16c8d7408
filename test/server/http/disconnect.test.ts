import { EventEmitter, once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { type FastifyInstance, type FastifyReply, fastify } from "fastify";
import { afterEach, expect, it } from "vitest";
import { disconnectSignal } from "../../../src/server/http/disconnect.ts";

let app: FastifyInstance;
let client: Socket | ClientHttp2Session | undefined;
afterEach(async () => {
  client?.destroy();
  await app.close();
});

interface Call {
  readonly signal: AbortSignal;
  readonly reply: FastifyReply;
}

/** The calls that come, each with its signal. Nobody answers them but the test. */
async function start(http2: boolean): Promise<{ port: number; next: () => Promise<Call> }> {
  app = (http2 ? fastify({ http2: true }) : fastify()) as unknown as FastifyInstance;
  const calls: Call[] = [];
  const came = new EventEmitter();
  app.get("/", (_req, reply) => {
    calls.push({ signal: disconnectSignal(reply), reply });
    came.emit("call");
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const next = async (): Promise<Call> => {
    const call = calls.shift();
    if (call) {
      return call;
    }
    await once(came, "call");
    return next();
  };
  return { port: (app.server.address() as AddressInfo).port, next };
}

const REQUEST = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

it("aborts when a connection of HTTP/1.1 closes before the answer, also that of a later call", async () => {
  const { port, next } = await start(false);
  const socket = connect({ port, host: "127.0.0.1" });
  client = socket;
  socket.write(REQUEST);
  const first = await next();
  first.reply.send("answered");
  await once(socket, "data");
  expect(first.signal.aborted).toBe(false);
  socket.write(REQUEST);
  const { signal } = await next();
  expect(signal.aborted).toBe(false);
  const aborted = once(signal, "abort");
  socket.destroy();
  await aborted;
  expect(signal.reason).toBeInstanceOf(ConnectError);
  expect(signal.reason).toMatchObject({ code: Code.Canceled });
});

it("aborts for a call that waits behind another on its connection when that closes, and not before", async () => {
  const { port, next } = await start(false);
  const socket = connect({ port, host: "127.0.0.1" });
  client = socket;
  socket.write(REQUEST + REQUEST);
  const first = await next();
  const behind = await next();
  expect([first, behind].map(({ signal }) => signal.aborted)).toEqual([false, false]);
  const aborted = once(behind.signal, "abort");
  socket.destroy();
  await aborted;
  expect(first.signal.aborted).toBe(true);
});

it("has aborted already for a connection that has closed", async () => {
  const { port, next } = await start(false);
  const socket = connect({ port, host: "127.0.0.1" });
  client = socket;
  socket.write(REQUEST);
  const { signal, reply } = await next();
  const aborted = once(signal, "abort");
  socket.destroy();
  await aborted;
  expect(disconnectSignal(reply).aborted).toBe(true);
});

it("aborts for the one stream of HTTP/2 that closes before its answer, not for its neighbours", async () => {
  const { port, next } = await start(true);
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  client = session;
  const streams = [session.request({ ":path": "/" })];
  const left = await next();
  streams.push(session.request({ ":path": "/" }));
  const stays = await next();
  const aborted = once(left.signal, "abort");
  streams[0]?.close();
  await aborted;
  expect(stays.signal.aborted).toBe(false);
  stays.reply.send("answered");
  await once(streams[1] as NonNullable<(typeof streams)[1]>, "response");
  streams[1]?.resume();
  await once(streams[1] as NonNullable<(typeof streams)[1]>, "close");
  expect(stays.signal.aborted).toBe(false);
});
