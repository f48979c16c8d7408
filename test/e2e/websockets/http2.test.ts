/** WebSockets over HTTP/2 (RFC 8441): what becomes of access, slots, limits and resets. */
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { Program } from "../cli/program.ts";
import { World } from "../hosting/world.ts";
import { bearer } from "../start/platform.ts";
import { open, openIn } from "./client.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/serve/mounts.ts", import.meta.url));
const MEBIBYTE = 1024 ** 2;

/** More than a client opens at a time; its own library would wait. */
const MANY_STREAMS = 3_000;

describe("a WebSocket over HTTP/2", () => {
  let world: World;
  let value: string;
  let host: string;

  const token = () =>
    world.platform.createToken(world.cookie, {
      access: ["protected_endpoint"],
      all_deployments: true,
    });
  const headers = () => ({ host, ...bearer(value) });
  const opened = (path = "/plain/live", given = headers()) =>
    open(world.platform.url, { over: "HTTP/2", path, headers: given });
  const session = async () => {
    const made = connectHttp2(world.platform.url);
    made.on("error", () => {});
    await once(made, "remoteSettings");
    return Object.assign(made, { [Symbol.dispose]: () => made.destroy() });
  };
  const said = async (stream: AsyncIterable<Buffer>) => {
    const chunks = [];
    for await (const chunk of stream) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  };

  beforeAll(async () => {
    world = await World.start({ env: { TESSERA_SANDBOX: "permission" } });
    await world.deployed("mounted", await buildArtifact(SERVICE), {
      authorization: true,
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
    ({ value } = await token());
    host = `mounted.acme.apps.localhost:${new URL(world.platform.url).port}`;
  }, 120_000);
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
  });

  it("carries bytes as they are, from the first one on, which may come before the answer", async () => {
    const {
      status,
      headers: answer,
      stream,
    } = await open(world.platform.url, {
      ...{ over: "HTTP/2", path: "/plain/live", headers: headers() },
      early: Buffer.from("early "),
    });
    expect(status).toBe(200);
    for (const name of ["connection", "upgrade", "sec-websocket-accept"]) {
      expect(answer).not.toHaveProperty(name);
    }
    stream.write("and late");
    let read = "";
    while (read.length < 14) {
      read += String((await once(stream, "data"))[0]);
    }
    expect(read).toBe("early and late");
    stream.destroy();
  });

  it("asks for access first, and for the deployment", async () => {
    const none = await opened("/x", { host });
    expect(none.status).toBe(401);
    expect(JSON.parse(String(await said(none.stream)))).toMatchObject({ code: "unauthenticated" });
    const unknown = `missing.acme.apps.localhost:${new URL(world.platform.url).port}`;
    expect((await opened("/plain/live", { ...headers(), host: unknown })).status).toBe(404);
  });

  it.each([
    ["/double", 405],
    ["/double/status?task_id=x", 405],
    ["/livez", 405],
    ["/docs.json", 405],
    ["/metrics", 405],
    ["/without", 405],
    ["/without/deeper?x=1", 405],
    ["/plain/101", 200],
    ["/plain/other", 500],
    ["/x", 404],
    ["/body", 405],
  ])("is answered at %s with %i", async (path, status) => {
    const { status: answered, stream } = await opened(path);
    expect(answered).toBe(status);
    stream.destroy();
  });

  it("is no way to the platform's own paths", async () => {
    const own = new URL(world.platform.url).host;
    for (const path of ["/", "/livez", "/v1/deployments", "/console", "/metrics", "/x/y"]) {
      const { status } = await opened(path, { ...bearer(value), host: own });
      expect([path, status >= 400]).toEqual([path, true]);
    }
  });

  it("is the only thing that CONNECT opens", async () => {
    using one = await session();
    for (const asked of [
      { ":protocol": "connect-udp", ":path": "/plain/live", ":authority": host },
      { ":protocol": "WEBSOCKETS", ":path": "/plain/live", ":authority": host },
      { ":authority": "example.com:443" },
    ]) {
      const stream = one.request({ ":method": "CONNECT", ...bearer(value), ...asked });
      const [answer] = await once(stream, "response");
      expect(answer[":status"]).toBe(501);
      expect(JSON.parse(String(await said(stream))).message).toMatch(
        /^CONNECT opens WebSockets here/,
      );
    }
  });

  it("gives its slot back however its caller leaves", async () => {
    for (const leave of ["reset", "end", "session"] as const) {
      using one = await session();
      const streams = await Promise.all(
        Array.from({ length: 10 }, async () => {
          const { status, stream } = await openIn(one, { path: "/plain/live", headers: headers() });
          expect(status).toBe(200);
          return stream;
        }),
      );
      if (leave === "session") {
        one.destroy();
      }
      for (const stream of streams) {
        if (leave === "reset") {
          stream.close(constants.NGHTTP2_CANCEL);
        } else {
          stream.end();
        }
      }
    }
    expect((await world.call("mounted", "/plain/x", { method: "GET", token: value })).status).toBe(
      200,
    );
  });

  it("ends where the server ends it", async () => {
    const { status, stream } = await opened("/plain/breaks");
    expect(status).toBe(200);
    expect(await said(stream)).toHaveLength(0);
  });

  it("holds up no other one of its connection where its caller does not read", async () => {
    using one = await session();
    const [slow, quick] = await Promise.all(
      ["/plain/slow", "/plain/quick"].map((path) => openIn(one, { path, headers: headers() })),
    );
    slow?.stream.pause();
    let isTaken = 0;
    for (let count = 0; count < 32; count++) {
      slow?.stream.write(Buffer.alloc(MEBIBYTE), () => {
        isTaken += 1;
      });
    }
    for (let count = 0; count < 100; count++) {
      quick?.stream.write(`${count}`);
      expect(String((await once(quick?.stream ?? one, "data"))[0])).toBe(`${count}`);
    }
    // What is under way is held by windows and by the socket, not by the node.
    expect(isTaken).toBeLessThan(8);
  });

  it("closes within a second of the token that opened it", async () => {
    const made = await token();
    const streams = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const { stream } = await opened("/plain/live", { host, ...bearer(made.value) });
        return stream.resume();
      }),
    );
    const kept = await opened();
    const startMs = performance.now();
    await world.client.tokens.deleteToken({ tokenId: made.id });
    await Promise.all(streams.map((stream) => once(stream, "close")));
    expect(performance.now() - startMs).toBeLessThan(1_000);
    expect(kept.stream.destroyed).toBe(false);
    kept.stream.destroy();
  });

  it("is bounded in number, for who keeps to no setting", async () => {
    const raw = connect(Number(new URL(world.platform.url).port), "127.0.0.1");
    raw.on("error", () => {});
    raw.resume();
    const head = headBlock({
      ...{ ":method": "CONNECT", ":protocol": "websocket", ":scheme": "http" },
      ...{ ":path": "/plain/live", ":authority": host, ...bearer(value) },
    });
    raw.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    raw.write(http2Frame(4, 0, 0, Buffer.alloc(0)));
    for (let count = 0; count < MANY_STREAMS; count++) {
      // HEADERS, with its end, and not that of the stream.
      raw.write(http2Frame(1, 4, 2 * count + 1, head));
    }
    // Who opens more than the server allows is sent away; others go on.
    const { status } = await world.call("mounted", "/x", { method: "GET", token: value });
    expect(status).toBe(404);
    raw.destroy();
    const next = await opened();
    expect(next.status).toBe(200);
    next.stream.destroy();
  });

  it("closes with 1012 when its worker stops", async () => {
    const { status, stream } = await opened();
    expect(status).toBe(200);
    const last = said(stream);
    await world.deployed("mounted", await buildArtifact(SERVICE), { settings: { maxWorkers: 2 } });
    expect(await last).toEqual(Buffer.from([0x88, 0x02, 0x03, 0xf4]));
  });

  it("opens for pages of its own site alone, where no token protects it", async () => {
    const { program, url } = await Program.serve([SERVICE, "--workers", "1"]);
    await using _ended = program;
    const from = async (origin: string): Promise<number> => {
      const { status, stream } = await open(url, {
        ...{ over: "HTTP/2", path: "/plain/live", headers: { origin } },
      });
      stream.destroy();
      return status;
    };
    expect(await from(url)).toBe(200);
    expect(await from("https://page.example")).toBe(403);
  });
});

/** A frame of RFC 9113, section 4.1. */
function http2Frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as literals without an index (RFC 7541, section 6.2.2), each shorter than 127 bytes. */
function headBlock(headers: Readonly<Record<string, string>>): Buffer {
  const literal = (text: string): Buffer =>
    Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [
      Buffer.of(0),
      literal(name.toLowerCase()),
      literal(value),
    ]),
  );
}
