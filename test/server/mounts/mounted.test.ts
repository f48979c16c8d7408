/** Answers of mounted servers on their way to callers. */
import { EventEmitter } from "node:events";
import { createContextValues } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { expect, it } from "vitest";
import type { AnswerListener, MountConnection } from "../../../src/pool/calls/mount-connection.ts";
import type { MountManifest } from "../../../src/protocol/manifest.ts";
import { KeyLimits } from "../../../src/queue/calls/key-limits.ts";
import { answerMounted } from "../../../src/server/mounts/mounted.ts";

/** Of a request whose body is still to come. */
const CHUNKED = { "transfer-encoding": "chunked", "tessera-key": "ada" };

/** A caller who takes what is written when the test says so, and the server's side of the request. */
async function exchanged(byKey?: MountManifest["byKey"], limits = new KeyLimits()) {
  const did: string[] = [];
  let listener: AnswerListener | undefined;
  const connection = {
    send: (_: unknown, given: AnswerListener) => {
      listener = given;
    },
    pause: () => did.push("pause"),
    resume: () => did.push("resume"),
    destroy: () => did.push("destroy"),
  } as unknown as MountConnection;
  const caller = Object.assign(new EventEmitter(), {
    ...{ headersSent: false, destroyed: false, req: { httpVersionMajor: 1 } },
    ...{ writeHead() {}, end() {} },
    write: () => false,
  });
  const raw = Object.assign(new EventEmitter(), {
    ...{ rawHeaders: [], headers: CHUNKED, readableLength: 0 },
    ...{ readableEnded: true, httpVersionMajor: 1 },
    socket: new EventEmitter(),
  });
  const req = { raw, headers: CHUNKED, method: "POST", url: "/" };
  const reply = {
    ...{ raw: caller, request: { raw, id: "r" } },
    ...{ hijack() {}, getHeaders: () => ({}) },
  };
  const deployment = {
    admit() {},
    calls: {
      enter: (...of: Parameters<KeyLimits["enter"]>) => limits.enter(...of),
      hold: async () => ({
        agent: { connection: () => connection },
        ranIn: { worker: "w" },
        release: () => did.push("release"),
      }),
    },
  };
  const answered = answerMounted(
    req as unknown as FastifyRequest,
    reply as unknown as FastifyReply,
    createContextValues(),
    {
      deployment: deployment as never,
      mount: { path: "/", timeoutMs: 1_000, concurrency: 1, ...(byKey && { byKey }) },
      maxBodyBytes: 1_000,
      keepStanding: () => () => {},
    },
  );
  await Promise.race([answered, expect.poll(() => listener).toBeDefined()]);
  listener?.onHead({ status: 200, rawHeaders: [], connection: undefined }, undefined);
  await answered;
  return { listener: listener as AnswerListener | undefined, caller, raw, did };
}

it("waits once for a caller who is slow, however many pieces come", async () => {
  const { listener, caller, did } = await exchanged();
  for (let piece = 0; piece < 20; piece += 1) {
    listener?.onData(Buffer.from("some"));
  }
  expect(caller.listenerCount("drain")).toBe(1);
  caller.emit("drain");
  expect(did.slice(-2)).toEqual(["pause", "resume"]);
  listener?.onData(Buffer.from("some"));
  expect(caller.listenerCount("drain")).toBe(1);
});

it("leaves a connection alone that may have the next request", async () => {
  const { listener, caller, raw, did } = await exchanged();
  listener?.onData(Buffer.from("some"));
  listener?.onEnd();
  expect(did).toEqual(["pause", "release"]);
  caller.emit("drain");
  raw.emit("aborted");
  expect(did).toEqual(["pause", "release"]);
});

it("counts a request for its key until the answer has ended, and refuses more than allowed", async () => {
  const limits = new KeyLimits();
  const byKey = { concurrency: 1, rate: { count: 2, periodMs: 60_000 } };
  const { listener, did } = await exchanged(byKey, limits);
  listener?.onData(Buffer.from("some"));
  await expect(exchanged(byKey, limits)).rejects.toMatchObject({ reason: "KEY_LIMITED" });
  listener?.onEnd();
  expect(did).toEqual(["pause", "release"]);
  const second = await exchanged(byKey, limits);
  second.listener?.onEnd();
  // Now its rate says no.
  await expect(exchanged(byKey, limits)).rejects.toMatchObject({
    reason: "KEY_LIMITED",
    message: expect.stringContaining("may make 2 calls of / in 60 s"),
  });
});
