/** Which hosts a platform answers for, over HTTP/1.1 and HTTP/2. */
import { request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Folder, type Platform, start } from "./platform.ts";

let folder: Folder;
let known: Platform;
beforeAll(async () => {
  folder = new Folder();
  known = await start(folder, {
    env: {
      TESSERA_PUBLIC_URL: "https://tessera.example",
      TESSERA_APPS_DOMAIN: "apps.example",
      TESSERA_HOST: "127.0.0.2",
    },
  });
});
afterAll(async () => {
  await known[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const HOST = "127.0.0.2";

interface Heard {
  readonly status: number;
  readonly body: string;
}

/** Bytes as they are; answers status and body. */
async function bytes(lines: readonly string[]): Promise<Heard> {
  const socket = connect(known.started.port, HOST);
  socket.write(`${lines.join("\r\n")}\r\nConnection: close\r\n\r\n`);
  const all = await text(socket);
  return { status: Number(all.split(" ", 2)[1]), body: all.slice(all.indexOf("\r\n\r\n") + 4) };
}

function http1(host: string, path: string): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const { port } = known.started;
    httpRequest({ host: HOST, port, path, headers: { host } }, async (res) =>
      resolve({ status: res.statusCode ?? 0, body: await text(res) }),
    )
      .on("error", reject)
      .end();
  });
}

async function http2(headers: Record<string, string>): Promise<Heard> {
  const session = connectHttp2(`http://${HOST}:${known.started.port}`);
  const stream = session.request({ ":path": "/api/v1/me", ...headers });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  stream.once("response", (found) => resolve(Number(found[":status"]))).once("error", reject);
  const [status, body] = await Promise.all([promise, text(stream)]);
  session.destroy();
  return { status, body };
}

describe("a request that names two hosts is refused", () => {
  it.each([
    [
      "two Host headers",
      ["GET /livez HTTP/1.1", "Host: a.acme.apps.example", "host: tessera.example"],
    ],
    [
      "the same host twice",
      ["GET /livez HTTP/1.1", "Host: tessera.example", "Host: tessera.example"],
    ],
    [
      "an absolute target",
      ["GET http://a.acme.apps.example/livez HTTP/1.1", "Host: tessera.example"],
    ],
  ])("%s", async (_, lines) => {
    const { status, body } = await bytes(lines);
    expect(status).toBe(400);
    expect(body).toContain("REQUEST_INVALID");
  });

  it("an :authority that its host header contradicts", async () => {
    const two = { ":authority": "tessera.example", host: "a.acme.apps.example" };
    expect(await http2(two)).toMatchObject({ status: 400 });
  });

  it("and one that names the same twice is not", async () => {
    const target = "GET http://Tessera.example:80/livez HTTP/1.1";
    expect(await bytes([target, "Host: tessera.example"])).toMatchObject({ status: 200 });
    const same = { ":authority": "tessera.example", host: "tessera.example" };
    expect(await http2(same)).toMatchObject({ status: 401 });
  });
});

describe("a platform with a public address", () => {
  it.each([
    ...["tessera.example", "TESSERA.example.", "tessera.example:8443", "acme.tessera.example"],
    ...["localhost:3000", "127.0.0.1", "[::1]:3000", "127.0.0.2"],
  ])("answers for its own host: %s", async (host) => {
    expect(await http1(host, "/api/v1/me")).toMatchObject({ status: 401 });
    expect(await http2({ ":authority": host })).toMatchObject({ status: 401 });
  });

  it("answers for the hosts of deployments", async () => {
    const { body } = await http1("summarizer.acme.apps.example", "/summarize/status?task_id=1");
    expect(body).not.toContain("does not serve the host");
  });

  it.each([
    ...["rebound.example", "tessera.example.evil.example", "eviltessera.example"],
    ...["a.b.tessera.example", "apps.example", "203.0.113.7", "localhost.example"],
  ])("sends away who asks for another: %j", async (host) => {
    const { status, body } = await http1(host, "/api/v1/me");
    expect(status).toBe(421);
    expect(body).toContain("REQUEST_INVALID");
    expect(await http2({ ":authority": host })).toMatchObject({ status: 421 });
  });

  it.each(["/livez", "/readyz", "/readyz?verbose"])(
    "answers probes by any host: %s",
    async (path) => {
      expect(await http1("10.1.2.3:3000", path)).toMatchObject({ status: 200 });
    },
  );
});

it("a platform without a public address answers for every host", async () => {
  using own = new Folder();
  await using platform = await start(own);
  const { port } = platform.started;
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /api/v1/me HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 401/);
});
