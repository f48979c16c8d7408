import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import {
  createServer as createHttp,
  request as httpRequest,
  type RequestListener,
} from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { EgressPolicy } from "../../../src/pool/egress/policy.ts";
import { EgressProxy, type EgressProxyOptions } from "../../../src/pool/egress/proxy.ts";
import type { NetworkSettings } from "../../../src/storage/deployment-settings.ts";

const OPEN: NetworkSettings = { access: "open", hosts: [] };

interface Proxied {
  readonly proxy: EgressProxy;
  readonly decisions: string[];
  readonly lines: string[];
  /** A connection to the proxy. */
  connect(): Socket;
}

async function start(
  allowed: readonly string[],
  options: Partial<EgressProxyOptions> & { readonly network?: NetworkSettings } = {},
): Promise<Proxied> {
  const folder = mkdtempSync(join(tmpdir(), "egress-"));
  const { network = OPEN, ...rest } = options;
  const decisions: string[] = [];
  const lines: string[] = [];
  const proxy = new EgressProxy({
    path: join(folder, "egress.sock"),
    policy: new EgressPolicy({ network, allowed }),
    onDecision: (decision) => decisions.push(decision),
    onLine: (line) => lines.push(line),
    ...rest,
  });
  await proxy.start();
  onTestFinished(async () => {
    await proxy[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  const open = (): Socket => {
    const socket = connect({ path: proxy.path, allowHalfOpen: true });
    socket.on("error", () => {});
    return socket;
  };
  return { proxy, decisions, lines, connect: open };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A server that sends back what it got when its client has ended. */
function echo(): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  return listening(server);
}

function web(listener: RequestListener): Promise<number> {
  return listening(createHttp(listener));
}

async function all(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A request of SOCKS5 for a name. */
function socks(host: string, port: number): Buffer {
  const end = Buffer.alloc(2);
  end.writeUInt16BE(port);
  return Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0, 3, host.length]), Buffer.from(host), end]);
}

describe("CONNECT", () => {
  it("opens a tunnel that carries what came with the request, and half-closes", async () => {
    const port = await echo();
    const { connect, decisions } = await start([`127.0.0.1:${port}`]);
    const socket = connect();
    socket.end(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\nearly`);
    expect(String(await all(socket))).toBe("HTTP/1.1 200 Connection established\r\n\r\nearly");
    expect(decisions).toEqual(["allowed"]);
  });

  it("carries megabytes in both directions", async () => {
    const port = await echo();
    const { connect } = await start([`127.0.0.1:${port}`]);
    const socket = connect();
    const body = Buffer.alloc(8 * 1024 * 1024, "x");
    socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    socket.end(body);
    const back = await all(socket);
    expect(back.length).toBe(body.length + "HTTP/1.1 200 Connection established\r\n\r\n".length);
  });

  it("is refused with 403 and a reason, which is logged and counted", async () => {
    const { connect, decisions, lines } = await start([]);
    const socket = connect();
    socket.end("CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n");
    const answer = String(await all(socket));
    expect(answer).toContain("HTTP/1.1 403 Forbidden\r\n");
    expect(answer).toContain("link-local");
    expect(answer).toContain("--allow-egress");
    expect(decisions).toEqual(["refused"]);
    expect(lines).toEqual([expect.stringContaining("169.254.169.254:80 is a link-local address")]);
  });

  it.each(["x", "example.com", "example.com:0", ":80", "a:b:1", "/path"])(
    "of %j is answered 400",
    async (target) => {
      const { connect } = await start([]);
      const socket = connect();
      socket.end(`CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(String(await all(socket))).toContain("HTTP/1.1 400 Bad Request\r\n");
    },
  );

  it("to a closed port is answered 502", async () => {
    const server = createServer();
    const port = await listening(server);
    server.close();
    await once(server, "close");
    const { connect, decisions } = await start(["127.0.0.0/8"]);
    const socket = connect();
    socket.end(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(String(await all(socket))).toContain("could not be connected to: ECONNREFUSED");
    expect(decisions).toEqual([]);
  });
});

describe("a name", () => {
  it("is resolved once, and the address that was judged is connected to", async () => {
    const port = await echo();
    const asked: string[] = [];
    const { connect } = await start(["127.0.0.1"], {
      resolve: async (name) => {
        asked.push(name);
        // The first address is refused, and the next answers would all be.
        return asked.length === 1 ? ["169.254.169.254", "127.0.0.1"] : ["169.254.169.254"];
      },
    });
    const socket = connect();
    socket.end(`CONNECT Service.Example:${port} HTTP/1.1\r\nHost: x\r\n\r\nhello`);
    expect(String(await all(socket))).toContain("\r\n\r\nhello");
    expect(asked).toEqual(["service.example"]);
  });

  it("with refused addresses only is refused", async () => {
    const { connect } = await start([], { resolve: async () => ["::1", "10.0.0.1"] });
    const socket = connect();
    socket.end("CONNECT rebound.example:80 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String(await all(socket))).toContain("rebound.example:80 is a loopback address");
  });

  it("that the setting does not name is never resolved", async () => {
    const asked: string[] = [];
    const { connect, decisions } = await start([], {
      network: { access: "allow", hosts: ["api.example.com"] },
      resolve: async (name) => {
        asked.push(name);
        return [];
      },
    });
    const socket = connect();
    socket.end("CONNECT secret.attacker.example:80 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String(await all(socket))).toContain("is not among the hosts");
    expect({ asked, decisions }).toEqual({ asked: [], decisions: ["refused"] });
  });
});

describe("a plain HTTP request", () => {
  it("is forwarded with its body, without headers for the proxy", async () => {
    const port = await web(async (req, res) => {
      const { headers, method, url } = req;
      const body = await text(req);
      res.writeHead(201, { "x-kept": "yes", connection: "x-dropped", "x-dropped": "no" });
      res.end(JSON.stringify({ method, url, headers, body }));
    });
    const { proxy, decisions } = await start(["127.0.0.1"]);
    const req = httpRequest({
      socketPath: proxy.path,
      method: "POST",
      path: `http://127.0.0.1:${port}/a?b=c`,
      headers: {
        host: "other.example",
        "proxy-authorization": "Basic x",
        connection: "x-private",
        "x-private": "1",
        "x-public": "2",
        "transfer-encoding": "chunked",
      },
    });
    req.end("body");
    const [res] = await once(req, "response");
    const seen = JSON.parse(await text(res));
    expect(res.statusCode).toBe(201);
    expect(res.headers).toMatchObject({ "x-kept": "yes" });
    expect(res.headers).not.toHaveProperty("x-dropped");
    expect(seen).toMatchObject({ method: "POST", url: "/a?b=c", body: "body" });
    expect(seen.headers).toEqual({
      host: `127.0.0.1:${port}`,
      "x-public": "2",
      "transfer-encoding": "chunked",
      connection: "close",
    });
    expect(decisions).toEqual(["allowed"]);
  });

  it("is refused with 403", async () => {
    const { proxy } = await start([]);
    const req = httpRequest({ socketPath: proxy.path, path: "http://[::1]:9/" }).end();
    const [res] = await once(req, "response");
    expect(res.statusCode).toBe(403);
    expect(await text(res)).toContain("[::1]:9 is a loopback address");
  });

  it("without an absolute target is answered 400", async () => {
    const { proxy } = await start([]);
    const req = httpRequest({ socketPath: proxy.path, path: "/" }).end();
    const [res] = await once(req, "response");
    expect(res.statusCode).toBe(400);
  });

  it("whose server breaks off is answered 502, or cut off", async () => {
    const port = await listening(createServer((socket) => void socket.end("nonsense\r\n\r\n")));
    const { proxy } = await start(["127.0.0.1"]);
    const req = httpRequest({ socketPath: proxy.path, path: `http://127.0.0.1:${port}/` }).end();
    const [res] = await once(req, "response");
    expect(res.statusCode).toBe(502);
  });
});

describe("SOCKS5", () => {
  it("connects by name, with bytes that came early", async () => {
    const port = await echo();
    const { connect, decisions } = await start(["127.0.0.1"], {
      resolve: async () => ["127.0.0.1"],
    });
    const socket = connect();
    socket.end(Buffer.concat([socks("db.example", port), Buffer.from("hello")]));
    const answer = await all(socket);
    expect([...answer.subarray(0, 12)]).toEqual([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    expect(String(answer.subarray(12))).toBe("hello");
    expect(decisions).toEqual(["allowed"]);
  });

  it.each([
    ["a refused address", Buffer.from([5, 1, 0, 5, 1, 0, 1, 169, 254, 169, 254, 0, 80]), 2],
    [
      "a refused IPv6 address",
      Buffer.from([5, 1, 0, 5, 1, 0, 4, ...Array(15).fill(0), 1, 0, 80]),
      2,
    ],
    ["BIND", Buffer.from([5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80]), 7],
    ["an unknown type of address", Buffer.from([5, 1, 0, 5, 1, 0, 9, 0]), 8],
    ["an empty name", Buffer.from([5, 1, 0, 5, 1, 0, 3, 0, 0, 80]), 2],
  ])("answers %s", async (_what, bytes, reply) => {
    const { connect } = await start([]);
    const socket = connect();
    socket.end(bytes);
    expect((await all(socket)).subarray(0, 4)).toEqual(Buffer.from([5, 0, 5, reply]));
  });

  it("without a method in common is closed", async () => {
    const { connect } = await start([]);
    const socket = connect();
    socket.end(Buffer.from([5, 1, 2]));
    expect(await all(socket)).toEqual(Buffer.from([5, 0xff]));
  });
});

describe("the proxy", () => {
  it.each([
    ["nothing", Buffer.alloc(0)],
    ["half a greeting", Buffer.from([5, 3, 0])],
    ["half a request", Buffer.from([5, 1, 0, 5, 1])],
    ["half a header", Buffer.from("GET http://a/ HTTP/1.1\r\nx: ")],
  ])("closes a connection that sends %s and then is silent", async (_what, bytes) => {
    const { connect } = await start([], { handshakeMs: 50 });
    const socket = connect();
    socket.write(bytes);
    await all(socket).catch(() => {});
  });

  it("closes a silent tunnel", async () => {
    const port = await echo();
    const { connect } = await start(["127.0.0.1"], { idleMs: 50 });
    const socket = connect();
    socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(String(await all(socket))).toContain("200");
  });

  it("has a limit of connections, and serves again when some have ended", async () => {
    const { connect } = await start([]);
    const open = Array.from({ length: 256 }, connect);
    await Promise.all(open.map((socket) => once(socket, "connect")));
    await all(connect()).catch(() => {});
    for (const socket of open) {
      socket.destroy();
    }
    await expect
      .poll(async () => {
        const again = connect();
        again.end("CONNECT 10.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n");
        return String(await all(again).catch(() => ""));
      })
      .toContain("403");
  });

  it("ends its connections and removes its socket when it is disposed", async () => {
    const port = await echo();
    const { connect, proxy } = await start(["127.0.0.1"]);
    const socket = connect();
    socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(socket, "data");
    const rest = all(socket).catch(() => {});
    await proxy[Symbol.asyncDispose]();
    await rest;
    expect(existsSync(proxy.path)).toBe(false);
  });

  it("says when its path is too long", async () => {
    const proxy = new EgressProxy({
      path: `/tmp/${"x".repeat(110)}`,
      policy: new EgressPolicy({ network: OPEN, allowed: [] }),
      onDecision: () => {},
      onLine: () => {},
    });
    await expect(proxy.start()).rejects.toThrow("at most 107");
  });

  it("limits the rate of refusals in the log", async () => {
    const { connect, lines, decisions } = await start([]);
    for (let count = 0; count < 40; count += 1) {
      const socket = connect();
      socket.end("CONNECT 10.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n");
      await all(socket);
    }
    expect(decisions).toHaveLength(40);
    expect(lines.length).toBeLessThan(20);
  });

  it("survives any bytes", async () => {
    const { connect } = await start([], { handshakeMs: 200 });
    const token = fc.constantFrom(
      ...[
        "CONNECT ",
        "GET ",
        "http://10.0.0.1/",
        "10.0.0.1:1",
        " HTTP/1.1\r\n",
        "\r\n",
        "\r\n\r\n",
      ],
      ...["Host: x\r\n", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", "ffffffff\r\n"],
      ...["Upgrade: x\r\nConnection: upgrade\r\n", "Expect: 100-continue\r\n", "PRI * HTTP/2.0"],
    );
    const piece = fc.oneof(
      token.map((one) => Buffer.from(one)),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom([5, 1, 0], [5, 1, 0, 1], [5, 1, 0, 3], [10, 0, 0, 1, 0, 1]).map(Buffer.from),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
        const socket = connect();
        socket.end(Buffer.concat(pieces));
        await all(socket).catch(() => {});
      }),
      { numRuns: 200 },
    );
    const socket = connect();
    socket.end("CONNECT 10.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String(await all(socket))).toContain("403");
  });
});
