import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import zlib from "node:zlib";
import { fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendAsked } from "../../../src/server/dataplane/content.ts";
import { sendCompressed, vary } from "../../../src/server/http/compression.ts";
import type { StreamedResponse } from "../../../src/server/http/streamed-bodies.ts";

const TEXT = JSON.stringify({ text: "grüezi ".repeat(1_000) });
const SHORT = JSON.stringify({ text: "grüezi" });

const app = fastify();
let port: number;

beforeAll(async () => {
  app.addHook("onRequest", (_req, reply, done) => {
    vary(reply, "Origin");
    done();
  });
  app.get("/sent", { exposeHeadRoute: false }, async (req, reply) => {
    const { type = "application/json", text = TEXT, cache } = req.query as Record<string, string>;
    reply.header("content-type", type);
    if (cache !== undefined) {
      reply.header("cache-control", cache);
    }
    await sendCompressed(reply, text);
    return reply;
  });
  app.route({
    url: "/result/:kind",
    method: ["GET", "HEAD"],
    exposeHeadRoute: false,
    handler: async (req, reply) => {
      const { kind } = req.params as { readonly kind: string };
      const type = kind === "picture" ? "image/png" : "application/json; charset=utf-8";
      reply.header("content-type", type);
      const content = kind === "streamed" ? streamed(TEXT) : kind === "short" ? SHORT : TEXT;
      await sendAsked({ req, taskId: "task" }, reply, content);
      return reply;
    },
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  ({ port } = app.server.address() as AddressInfo);
});

afterAll(() => app.close());

function streamed(text: string): StreamedResponse {
  const bytes = Buffer.from(text);
  return {
    size: bytes.length,
    sha256: "digest",
    async *read({ start, end }) {
      yield bytes.subarray(start, end);
    },
    done: () => {},
  };
}

/** A request of exactly these headers. */
async function get(path: string, headers: Record<string, string> = {}, method = "GET") {
  const { promise, resolve, reject } =
    Promise.withResolvers<Awaited<ReturnType<typeof answered>>>();
  const sent = request({ port, path, method, headers }, (res) => {
    answered(res).then(resolve, reject);
  });
  sent.on("error", reject).end();
  return promise;
}

async function answered(res: import("node:http").IncomingMessage) {
  const bytes = await buffer(res);
  const coding = res.headers["content-encoding"];
  const plain = {
    gzip: () => zlib.gunzipSync(bytes),
    zstd: () => zlib.zstdDecompressSync(bytes),
  }[coding ?? ""];
  const isWhole = bytes.length > 0 && plain !== undefined;
  return {
    ...res,
    bytes,
    coding,
    text: String(isWhole ? plain() : bytes),
    headers: res.headers,
    status: res.statusCode,
  };
}

const GZIP = { "accept-encoding": "gzip" };

describe("an answer of text", () => {
  it.each([
    ["gzip", "gzip"],
    ["gzip, deflate, br", "gzip"],
    ["GZIP", "gzip"],
    ["gzip, deflate, br, zstd", "zstd"],
    ["zstd;q=0.5, gzip", "gzip"],
    ["*", "zstd"],
    ["gzip;q=0", undefined],
    ["identity", undefined],
    ["br", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("for Accept-Encoding: %s is in %s", async (accept, coding) => {
    const answer = await get("/sent", accept === undefined ? {} : { "accept-encoding": accept });
    expect(answer).toMatchObject({ coding, text: TEXT });
    expect(answer.headers.vary).toBe("Origin, accept-encoding");
    expect(Number(answer.headers["content-length"])).toBe(answer.bytes.length);
    expect(answer.bytes.length < TEXT.length).toBe(coding !== undefined);
  });

  it.each([
    ["application/json; charset=utf-8", "gzip"],
    ["text/plain", "gzip"],
    ["text/csv", "gzip"],
    ["image/svg+xml", "gzip"],
    ["application/problem+json", "gzip"],
    ["text/event-stream", undefined],
    ["image/png", undefined],
    ["application/zip", undefined],
    ["application/octet-stream", undefined],
  ])("as %s is in %s", async (type, coding) => {
    const answer = await get(`/sent?type=${encodeURIComponent(type)}`, GZIP);
    expect(answer).toMatchObject({ coding, text: TEXT });
    expect(answer.headers.vary).toBe(coding ? "Origin, accept-encoding" : "Origin");
  });

  it("stays as it is where it is short, or must not be transformed", async () => {
    for (const query of ["text=short", "cache=no-transform"]) {
      const answer = await get(`/sent?${query}`, GZIP);
      expect([answer.coding, answer.headers.vary]).toEqual([undefined, "Origin"]);
    }
  });
});

describe("a result", () => {
  it.each([
    ["text", '"task-'],
    ["streamed", '"digest"'],
  ])("that is %s has a weak tag when it is compressed, and no ranges", async (kind, tag) => {
    const plain = await get(`/result/${kind}`);
    expect(plain.headers).toMatchObject({
      "accept-ranges": "bytes",
      vary: "Origin, accept-encoding",
    });
    expect(plain.headers.etag?.startsWith(tag)).toBe(true);
    const packed = await get(`/result/${kind}`, GZIP);
    expect(packed).toMatchObject({ status: 200, coding: "gzip", text: TEXT });
    expect(packed.headers.etag).toBe(`W/${plain.headers.etag}`);
    expect(packed.headers["accept-ranges"]).toBeUndefined();
    const head = await get(`/result/${kind}`, GZIP, "HEAD");
    expect(head).toMatchObject({ status: 200, coding: "gzip", text: "" });
    expect(head.headers.etag).toBe(packed.headers.etag);
    for (const etag of [plain.headers.etag, packed.headers.etag]) {
      const known = await get(`/result/${kind}`, { ...GZIP, "if-none-match": `${etag}` });
      expect(known).toMatchObject({ status: 304, text: "" });
      expect(known.headers).toMatchObject({
        etag: packed.headers.etag,
        vary: "Origin, accept-encoding",
      });
    }
  });

  it.each(["text", "streamed"])("that is %s gives ranges of what it is", async (kind) => {
    const { headers } = await get(`/result/${kind}`);
    const range = { ...GZIP, range: "bytes=1-4" };
    const part = await get(`/result/${kind}`, range);
    expect(part).toMatchObject({ status: 206, coding: undefined, text: TEXT.slice(1, 5) });
    expect(part.headers.etag).toBe(headers.etag);
    // A weak tag is never the same representation: RFC 9110, section 13.1.5.
    const other = await get(`/result/${kind}`, { ...range, "if-range": `W/${headers.etag}` });
    expect(other).toMatchObject({ status: 200, coding: "gzip", text: TEXT });
  });

  it("that is short or a picture is sent as it is", async () => {
    for (const kind of ["short", "picture"]) {
      const { coding, headers } = await get(`/result/${kind}`, GZIP);
      expect(coding).toBeUndefined();
      expect(headers).toMatchObject({ vary: "Origin", "accept-ranges": "bytes" });
    }
  });
});
