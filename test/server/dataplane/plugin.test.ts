import type { Server } from "node:http";
import Fastify, { type FastifyReply } from "fastify";
import { expect, test } from "vitest";
import { problem, type Reason } from "../../../src/errors.ts";
import { dataPlanePlugin } from "../../../src/server/dataplane/plugin.ts";
import { leaveBodies } from "../../../src/server/http/body.ts";
import { JSON_TYPE } from "../../../src/server/http/problem.ts";
import { createListener, type Listener } from "../../../src/server/listener.ts";
import { answerUnknown } from "../../../src/server/rpc/engine/unimplemented.ts";

test("cuts off an answer that had begun when its call failed, and goes on serving", async () => {
  // The server's own listener: there, a request without a body is destroyed from the start.
  const opened: Listener[] = [];
  await using app = Fastify({
    serverFactory(handler) {
      const listener = createListener(handler);
      opened.push(listener);
      return listener.server as unknown as Server;
    },
  });
  const begun = new WeakMap<object, FastifyReply>();
  app.addHook("onRequest", (req, reply, done) => {
    begun.set(req, reply);
    done();
  });
  await dataPlanePlugin(app, {
    async contextValues(req) {
      if (req.url === "/half/status") {
        begun.get(req)?.raw.writeHead(200, { "content-type": JSON_TYPE }).write("{");
      }
      throw problem("TASK_NOT_FOUND", "no such task");
    },
    invoke: {
      unary: () => Promise.reject(new Error("not called")),
      stream: () => {
        throw new Error("not called");
      },
    },
    streamedBy: () => {
      throw new Error("not called");
    },
    endpointAt: () => undefined,
    toServer: () => undefined,
    refuseMoved: () => undefined,
    bodyLimits: () => ({ maxBytes: 1_000, maxHeldBytes: 1_000, said: "send less" }),
  });
  const origin = await app.listen({ port: 0, host: "127.0.0.1" });
  const half = fetch(`${origin}/half/status`).then((answer) => answer.text());
  await expect(half).rejects.toThrow(/terminated|fetch failed/);
  const whole = await fetch(`${origin}/whole/status`);
  expect(whole.status).toBe(404);
  expect(await whole.json()).toMatchObject({ message: "no such task" });
  await opened[0]?.close(0);
});

test("leaves RPCs that nobody serves to whoever answers what is not found", async () => {
  await using app = Fastify();
  leaveBodies(app);
  const neverAsked = () => {
    throw new Error("not called");
  };
  await dataPlanePlugin(app, {
    contextValues() {
      throw problem("DEPLOYMENT_NOT_FOUND", "the request names no deployment");
    },
    invoke: { unary: neverAsked, stream: neverAsked },
    streamedBy: neverAsked,
    endpointAt: () => undefined,
    toServer: () => undefined,
    refuseMoved: () => undefined,
    bodyLimits: neverAsked,
  });
  answerUnknown(app, (_req, reply) => reply.code(404).send());
  const payload = "{}";
  const headers = { "content-type": "application/grpc" };
  for (const url of ["/other.v1.Service/submit", "/other.v1.Service/cancel"]) {
    const answer = await app.inject({ method: "POST", url, headers, payload });
    expect([answer.statusCode, answer.headers["grpc-status"]]).toEqual([200, "12"]);
  }
});

test("tells at any path why a caller is not let through, but not where no deployment is", async () => {
  await using app = Fastify();
  leaveBodies(app);
  const neverAsked = () => {
    throw new Error("not called");
  };
  await dataPlanePlugin(app, {
    contextValues({ headers }) {
      throw problem(headers.why as Reason, "not let through");
    },
    invoke: { unary: neverAsked, stream: neverAsked },
    streamedBy: neverAsked,
    endpointAt: () => undefined,
    toServer: () => undefined,
    refuseMoved: () => undefined,
    bodyLimits: neverAsked,
  });
  answerUnknown(app, (_req, reply) => reply.code(404).send("nothing"));
  const ask = async (url: string, why: Reason) => {
    const { statusCode } = await app.inject({ method: "POST", url, headers: { why } });
    return statusCode;
  };
  for (const [why, status] of [
    ["TOKEN_MISSING", 401],
    ["ACCESS_DENIED", 403],
    ["RATE_LIMITED", 429],
    ["STORAGE_UNAVAILABLE", 503],
    ["DEPLOYMENT_NOT_FOUND", 404],
  ] as const) {
    const answers = [await ask("/say", why), await ask("/v1/chat/completions", why)];
    expect([why, ...answers]).toEqual([why, status, status]);
    expect(await ask("/api/v1/nope", why)).toBe(404);
  }
});
