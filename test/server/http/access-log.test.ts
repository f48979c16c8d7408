import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { type FastifyBaseLogger, fastify, LogController } from "fastify";
import { pino } from "pino";
import { expect, it } from "vitest";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { logAccess } from "../../../src/server/http/access-log.ts";
import { leaveBodies } from "../../../src/server/http/body.ts";
import { createInvoker } from "../../../src/server/rpc/engine/invoker.ts";
import { rpcPlugin } from "../../../src/server/rpc/engine/plugin.ts";
import { createHealthService } from "../../../src/server/rpc/health.ts";

interface Line {
  readonly msg: string;
  readonly reqId: string;
  readonly call: { method: string; path: string; status: number; ms: number };
}

/** A server with a few answers, and the lines of its log. */
async function start() {
  const lines: Line[] = [];
  let waiting: { readonly count: number; readonly resolve: () => void } | undefined;
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      if (waiting && lines.length >= waiting.count) {
        waiting.resolve();
      }
      done();
    },
  });
  const log: FastifyBaseLogger = pino({ level: "debug" }, stream);
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
  });
  leaveBodies(app);
  logAccess(app, "debug");
  app.get("/fine", () => "fine");
  app.get("/never", (_req, reply) => void reply.raw.flushHeaders());
  const services = [createHealthService({ status: () => "SERVING", onChange: () => () => {} }, [])];
  const invoker = createInvoker({ services, interceptors: [] });
  await app.register(rpcPlugin, { services, interceptors: [], invoker });
  await app.listen({ host: "127.0.0.1", port: 0 });
  lines.length = 0;
  const { port } = app.server.address() as AddressInfo;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    /** The calls that were logged, once there are so many. */
    async logged(count: number): Promise<Line[]> {
      if (lines.length < count) {
        await new Promise<void>((resolve) => {
          waiting = { count, resolve };
        });
      }
      return lines;
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

it("a call is one line with method, path, status, milliseconds and the request's id", async () => {
  await using server = await start();
  await fetch(`${server.origin}/fine`);
  await fetch(`${server.origin}/nothing`, { method: "POST" });
  const [fine, nothing] = await server.logged(2);
  expect(fine).toMatchObject({ call: { method: "GET", path: "/fine", status: 200 } });
  expect(fine?.call.ms).toBeGreaterThanOrEqual(0);
  expect(fine?.msg).toMatch(/^GET \/fine 200 [\d.]+ ms \S+$/);
  expect(fine?.msg).toContain(String(fine?.reqId));
  expect(nothing).toMatchObject({ call: { method: "POST", path: "/nothing", status: 404 } });
});

it("what may be secret is not in it", async () => {
  await using server = await start();
  await fetch(`${server.origin}/fine?token=hunter2`, {
    headers: { authorization: "Bearer hunter2" },
  });
  await fetch(`${server.origin}/nothing`, { method: "POST", body: "hunter2" });
  request({ port: server.port, host: "127.0.0.1", path: "http://me:hunter2@host/fine" }).end();
  expect(JSON.stringify(await server.logged(3))).not.toContain("hunter2");
});

it("calls through the RPC library are logged too", async () => {
  await using server = await start();
  const transport = createGrpcWebTransport({ baseUrl: server.origin, httpVersion: "1.1" });
  await createClient(Health, transport).check({});
  const [line] = await server.logged(1);
  const path = "/grpc.health.v1.Health/Check";
  expect(line).toMatchObject({ call: { method: "POST", path, status: 200 } });
});

it("a call whose caller left is logged when that is known", async () => {
  await using server = await start();
  const leaving = new AbortController();
  await fetch(`${server.origin}/never`, { signal: leaving.signal });
  leaving.abort();
  const [line] = await server.logged(1);
  expect(line?.msg).toMatch(/^GET \/never 200 .* \(its caller left early\)$/);
});
