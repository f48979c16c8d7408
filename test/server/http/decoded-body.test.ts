import type { AddressInfo } from "node:net";
import zlib from "node:zlib";
import { fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toProblem } from "../../../src/errors.ts";
import { BodyBudget, leaveBodies, shareBudget } from "../../../src/server/http/body.ts";
import { decodedStream, readDecoded } from "../../../src/server/http/decoded-body.ts";
import { sendProblem } from "../../../src/server/http/problem.ts";

const MAX_BYTES = 100_000;
const TEXT = Buffer.from("from thought to thought, from day to day. ".repeat(2_000));

const app = fastify();
const budget = new BodyBudget(MAX_BYTES * 2, 1);
let origin: string;

beforeAll(async () => {
  leaveBodies(app);
  shareBudget(app, budget);
  app.post("/whole", async (req, reply) => {
    try {
      const body = await readDecoded(req, MAX_BYTES);
      return reply.header("held", budget.takenBytes).send(body);
    } catch (err) {
      return sendProblem(reply, toProblem(err));
    }
  });
  app.post("/stream", async (req, reply) => {
    try {
      const chunks: Uint8Array[] = [];
      for await (const chunk of decodedStream(req, MAX_BYTES)) {
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    } catch (err) {
      return sendProblem(reply, toProblem(err));
    }
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  origin = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
});

afterAll(() => app.close());

async function post(path: string, coding: string, body: Uint8Array) {
  const headers = { "content-encoding": coding };
  const answer = await fetch(origin + path, {
    method: "POST",
    body: new Uint8Array(body),
    headers,
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const reason = () => JSON.parse(String(bytes)).details[0].debug.reason;
  return {
    status: answer.status,
    headers: answer.headers,
    text: String(bytes),
    ...(answer.status >= 400 && { reason: reason() }),
  };
}

const PACKED: readonly [coding: string, packed: Buffer][] = [
  ["gzip", zlib.gzipSync(TEXT)],
  ["x-gzip", zlib.gzipSync(TEXT)],
  ["GZIP", zlib.gzipSync(TEXT)],
  ["deflate", zlib.deflateSync(TEXT)],
  ["br", zlib.brotliCompressSync(TEXT)],
  ["zstd", zlib.zstdCompressSync(TEXT)],
];

describe.each(["/whole", "/stream"])("a body that is compressed, read at %s,", (path) => {
  it.each([...PACKED, ["identity", TEXT] as const])("is read: %s", async (coding, packed) => {
    expect(await post(path, coding, packed)).toMatchObject({ status: 200, text: String(TEXT) });
  });

  it.each(PACKED)("is refused when it ends before its end: %s", async (coding, packed) => {
    for (const part of [packed.subarray(0, -3), packed.subarray(0, 5)]) {
      const refused = await post(path, coding, part);
      expect(refused).toMatchObject({ status: 400, reason: "BODY_MALFORMED" });
    }
  });

  it.each(PACKED)("is refused when it goes on after its end: %s", async (coding, packed) => {
    for (const rest of ["junk", "\0\0\0", "x".repeat(70_000)]) {
      const refused = await post(path, coding, Buffer.concat([packed, Buffer.from(rest)]));
      expect(refused).toMatchObject({ status: 400, reason: "BODY_MALFORMED" });
    }
  });

  it.each(PACKED)("is refused when it is something else: %s", async (coding) => {
    expect(await post(path, coding, TEXT)).toMatchObject({ status: 400, reason: "BODY_MALFORMED" });
  });

  it("may be of several members of gzip, and may be nothing", async () => {
    const two = Buffer.concat([zlib.gzipSync("from day "), zlib.gzipSync("to day")]);
    expect(await post(path, "gzip", two)).toMatchObject({ status: 200, text: "from day to day" });
    for (const [coding] of PACKED) {
      expect(await post(path, coding, Buffer.alloc(0))).toMatchObject({ status: 200, text: "" });
    }
  });

  it.each([
    ["gzip", zlib.gzipSync(Buffer.alloc(64 * 1024 ** 2))],
    ["deflate", zlib.deflateSync(Buffer.alloc(64 * 1024 ** 2))],
    ["br", zlib.brotliCompressSync(Buffer.alloc(64 * 1024 ** 2))],
    ["zstd", zlib.zstdCompressSync(Buffer.alloc(64 * 1024 ** 2))],
  ])("is bounded by what comes out of it: %s", async (coding, bomb) => {
    expect(bomb.length).toBeLessThan(MAX_BYTES);
    expect(await post(path, coding, bomb)).toMatchObject({ status: 413, reason: "BODY_TOO_LARGE" });
  });

  it.each(["compress", "gzip, gzip", "br,gzip", "deflate64"])(
    "is refused in a coding that is not read, with those that are: %s",
    async (coding) => {
      const refused = await post(path, coding, TEXT);
      expect(refused).toMatchObject({ status: 415, reason: "CONTENT_TYPE_UNSUPPORTED" });
      expect(refused.headers.get("accept-encoding")).toBe("gzip, deflate, br, zstd");
    },
  );
});

it("takes what came out of a body from the budget, and gives it back", async () => {
  const { headers } = await post("/whole", "gzip", zlib.gzipSync(TEXT));
  expect(Number(headers.get("held"))).toBeGreaterThanOrEqual(TEXT.length);
  budget.take("", MAX_BYTES * 2 - TEXT.length + 1 - budget.takenBytes);
  const packed = zlib.gzipSync(TEXT);
  expect(await post("/whole", "gzip", packed)).toMatchObject({
    status: 503,
    reason: "SERVER_BUSY",
  });
  budget.give("", MAX_BYTES * 2 - TEXT.length + 1);
  expect(await post("/whole", "gzip", packed)).toMatchObject({ status: 200 });
});
