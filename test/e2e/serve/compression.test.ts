import zlib from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

const JSON_BODY = { "content-type": "application/json" };
const TEXT = "to be or not to be, ".repeat(400);

let served: Served;
beforeAll(async () => {
  served = await serve("calls");
});
afterAll(() => served.stop());

const packed = (body: string | Uint8Array) => new Uint8Array(zlib.gzipSync(body));

it.each([
  ["a call", "/repeat", JSON.stringify({ text: TEXT })],
  ["REST", "/api/v1/endpoints/repeat:call", JSON.stringify({ arguments: { text: TEXT } })],
  [
    "Connect",
    "/tessera.v1.EndpointService/CallEndpoint",
    JSON.stringify({ endpoint: "repeat", arguments: { text: TEXT } }),
  ],
])("%s reads a compressed request, and compresses its answer", async (_, path, body) => {
  const plain = await served.send(path, body, { ...JSON_BODY, "accept-encoding": "identity" });
  expect(plain.status, plain.text).toBe(200);
  expect(plain.text).toContain(TEXT);
  expect(plain.headers.get("content-encoding")).toBeNull();
  for (const [coding, pack] of [
    ["gzip", zlib.gzipSync],
    ["zstd", zlib.zstdCompressSync],
  ] as const) {
    const headers = { ...JSON_BODY, "content-encoding": coding, "accept-encoding": "gzip" };
    const answer = await served.send(path, new Uint8Array(pack(body)), headers);
    expect(answer.text).toBe(plain.text);
    expect(answer.headers.get("content-encoding")).toBe("gzip");
    expect(answer.headers.get("vary")).toMatch(/accept-encoding/);
    expect(Number(answer.headers.get("content-length"))).toBeLessThan(TEXT.length / 4);
  }
});

it.each(["/repeat", "/api/v1/tasks", "/sum/submit", "/sum/cancel"])(
  "%s says what it reads instead of another coding",
  async (path) => {
    const headers = { ...JSON_BODY, "content-encoding": "gzip, gzip" };
    const answer = await served.send(path, packed(packed("{}")), headers);
    expect(refusal(answer)).toMatchObject({ status: 415, reason: "CONTENT_TYPE_UNSUPPORTED" });
    expect(answer.headers.get("accept-encoding")).toBe("gzip, deflate, br, zstd");
  },
);

it("a form with a file may be compressed, whose file is bounded as it comes out", async () => {
  const send = async (bytes: number) => {
    const form = new FormData();
    form.set("image", new File([Buffer.alloc(bytes, "x")], "a.png", { type: "image/png" }));
    const { headers, body } = new Request("http://x", { method: "POST", body: form });
    const type = {
      "content-type": String(headers.get("content-type")),
      "content-encoding": "gzip",
    };
    const plain = new Uint8Array(await new Response(body).arrayBuffer());
    return served.send("/describe", packed(plain), type);
  };
  expect(await send(900_000)).toMatchObject({ status: 200 });
  expect(refusal(await send(1_000_001)).message).toMatch(/takes files of at most 1000000 bytes/);
});

it("the documents and the pages are compressed by one reading of Accept-Encoding", async () => {
  for (const path of ["/docs.json", "/schema.json", "/metrics", "/"]) {
    for (const [accept, coding] of [
      ["gzip", "gzip"],
      ["GZIP;q=0.5, br", "gzip"],
      ["gzip;q=0", null],
      ["identity", null],
    ] as const) {
      const { headers } = await served.get(path, { "accept-encoding": accept });
      expect([path, headers.get("content-encoding")]).toEqual([path, coding]);
      expect(headers.get("vary")).toMatch(/accept-encoding/);
    }
  }
});

it("a stream of events is not compressed", async () => {
  const id = await served.submit("sum", { numbers: Array.from({ length: 1_000 }, (_, n) => n) });
  const accept = { "accept-encoding": "gzip, zstd", accept: "text/event-stream" };
  const { headers, text } = await served.get(`/sum/events?task_id=${id}`, accept);
  expect(text).toContain("event: ");
  expect(headers.get("content-encoding")).toBeNull();
});
