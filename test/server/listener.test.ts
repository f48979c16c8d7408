import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, type Settings } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bindPort } from "../../src/server/bind.ts";
import { createListener, type Listener, type ListenerTimeouts } from "../../src/server/listener.ts";

const GRACE_MS = 200;

let listener: Listener;
let port = 0;
let handle: (req: IncomingMessage, res: ServerResponse) => void;

beforeEach(async () => {
  await listenWith({});
  handle = (req, res) => {
    text(req).then(
      (body) => res.end(`${req.httpVersion} ${req.url} ${body.length}`),
      () => res.destroy(),
    );
  };
});
afterEach(() => listener.close(0));

/** A listener in the place of the one before. */
async function listenWith(timeouts: ListenerTimeouts): Promise<void> {
  listener = createListener((req, res) => handle(req, res), timeouts);
  listener.server.listen(0, "127.0.0.1");
  await once(listener.server, "listening");
  port = (listener.server.address() as AddressInfo).port;
}

/** Resolves when the connection has ended, whichever way. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.resume().once("close", () => resolve()));
}

async function open(): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Everything that the server says until it ends the connection. */
async function said(socket: Socket): Promise<string> {
  let all = "";
  for await (const chunk of socket.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    all += chunk;
  }
  return all;
}

async function exchange(bytes: string | Buffer): Promise<string> {
  const socket = await open();
  socket.write(bytes);
  return await said(socket);
}

function session(): ClientHttp2Session {
  return connectHttp2(`http://127.0.0.1:${port}`).on("error", () => {});
}

async function http2(client: ClientHttp2Session, path: string, body = ""): Promise<string> {
  const stream = client.request({ ":path": path, ":method": "POST" });
  stream.end(body);
  return await text(stream);
}

/** Writes byte by byte, each in a packet of its own as far as the system lets it. */
async function trickle(socket: Socket, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    await new Promise((resolve) => socket.write(Uint8Array.of(byte), resolve));
    await new Promise(setImmediate);
  }
}

const CLOSE = "Host: x\r\nConnection: close\r\n\r\n";

describe("one port", () => {
  it("speaks HTTP/1.1 and HTTP/2", async () => {
    expect(await exchange(`GET /a HTTP/1.1\r\n${CLOSE}`)).toMatch(
      /^HTTP\/1\.1 200[\s\S]*1\.1 \/a 0$/m,
    );
    const client = session();
    const large = "x".repeat(1_000_000);
    expect(await http2(client, "/b", large)).toBe("2.0 /b 1000000");
    expect(await Promise.all([http2(client, "/c"), http2(client, "/d", "four")])).toEqual([
      "2.0 /c 0",
      "2.0 /d 4",
    ]);
    client.destroy();
  });

  it("takes a large body over HTTP/1.1", async () => {
    const response = await fetch(`http://127.0.0.1:${port}/large`, {
      method: "POST",
      body: "x".repeat(1_000_000),
    });
    expect(await response.text()).toBe("1.1 /large 1000000");
  });

  it("understands HTTP/1.1 byte by byte, also what begins like HTTP/2", async () => {
    for (const method of ["POST", "PROPFIND"]) {
      const socket = await open();
      const answer = said(socket);
      await trickle(socket, Buffer.from(`${method} /slow HTTP/1.1\r\n${CLOSE}`));
      expect(await answer).toContain("1.1 /slow 0");
    }
  });

  it("understands HTTP/2 byte by byte", async () => {
    const socket = await open();
    const preface = Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
    ]);
    const [[first]] = (await Promise.all([once(socket, "data"), trickle(socket, preface)])) as [
      [Buffer],
      unknown,
    ];
    const SETTINGS = 4;
    expect(first[3]).toBe(SETTINGS);
    socket.destroy();
  });

  it.each([
    ["text", "hello, is anybody there?\r\n\r\n"],
    ["a TLS greeting", Buffer.from("16030100c8010000c40303", "hex")],
    ["noise", Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 31 + 7) % 256))],
    ["zeros", Buffer.alloc(64)],
    ["a wrong preface", "PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n"],
  ])("answers 400 to %s, and goes on", async (_, bytes) => {
    expect(await exchange(bytes)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(await exchange(`GET /after HTTP/1.1\r\n${CLOSE}`)).toContain("1.1 /after 0");
  });

  it("ends a connection that is not HTTP/2 after its first line, and goes on", async () => {
    const socket = await open();
    socket.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${"garbage ".repeat(50)}`);
    await closed(socket);
    expect(await exchange(`GET /after HTTP/1.1\r\n${CLOSE}`)).toContain("1.1 /after 0");
  });

  it("answers 431 to headers of more than 256 KiB, and says what is wrong", async () => {
    const large = `GET / HTTP/1.1\r\nX-Large: ${"x".repeat(270_000)}\r\n${CLOSE}`;
    const answer = await exchange(large);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("256 KiB"),
    });
  });

  it("survives connections that break off at any byte", async () => {
    const request = Buffer.from(`POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nfour`);
    const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04");
    for (const bytes of [request, preface]) {
      for (let length = 0; length <= bytes.length; length += 3) {
        const socket = await open();
        socket.write(bytes.subarray(0, length), () => socket.resetAndDestroy());
        await closed(socket);
      }
    }
    expect(await exchange(`GET /after HTTP/1.1\r\n${CLOSE}`)).toContain("1.1 /after 0");
  });

  it("closes a connection that does not tell its protocol", async () => {
    await listener.close(0);
    await listenWith({ silentMs: 30 });
    const silent = await open();
    const hesitant = await open();
    hesitant.write("PRI * HT");
    await Promise.all([closed(silent), closed(hesitant)]);
  });

  it("answers 408 to a request whose headers do not come to an end", async () => {
    await listener.close(0);
    await listenWith({ headersMs: 30, checkEveryMs: 10 });
    expect(await exchange("GET / HTTP/1.1\r\nHost: x\r\n")).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("answers 408 to a request whose body does not come to an end in time, and reads no more of it", async () => {
    await listener.close(0);
    await listenWith({ headersMs: 20, requestMs: 30, checkEveryMs: 10 });
    let read = "";
    handle = (req) => {
      text(req).then(
        (body) => {
          read = body;
        },
        () => {},
      );
    };
    const connected = once(listener.server, "connection") as Promise<[Socket]>;
    const sender = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    sender.on("error", () => {});
    sender.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
    const [socket] = await connected;
    const gone = closed(socket);
    expect(await said(sender)).toMatch(/^HTTP\/1\.1 408 /);
    sender.write("of it!");
    await gone;
    expect(read).toBe("");
    sender.destroy();
  });
});

describe("an HTTP/2 session", () => {
  it("may have 256 streams at a time", async () => {
    const client = session();
    const [settings] = (await once(client, "remoteSettings")) as [Settings];
    expect(settings.maxConcurrentStreams).toBe(256);
    client.destroy();
  });

  it("is told to go away when nothing happens in it", async () => {
    await listener.close(0);
    await listenWith({ idleMs: 30 });
    const client = session();
    const closed = once(client, "close");
    const [code] = (await once(client, "goaway")) as [number];
    expect(code).toBe(0);
    await closed;
  });

  it("ends when it never makes a request, and stays once it has made one", async () => {
    await listener.close(0);
    await listenWith({ unusedMs: 300 });
    const used = session();
    expect(await http2(used, "/a")).toBe("2.0 /a 0");
    // A peer that does not react to anything: the preface and its settings, then silence.
    const silent = await open();
    silent.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "latin1");
    const pinging = session();
    const pings = setInterval(() => pinging.destroyed || pinging.ping(() => {}), 10);
    await Promise.all([closed(silent), once(pinging, "goaway"), once(pinging, "close")]);
    clearInterval(pings);
    expect(await http2(used, "/b")).toBe("2.0 /b 0");
    used.close();
  });

  it("ends a stream whose answer came before the end of its request", async () => {
    handle = (_req, res) => {
      // As gRPC ends its answers.
      res.setHeader("trailer", "grpc-status");
      res.addTrailers({ "grpc-status": "8" });
      res.end("no more, please");
    };
    const client = session();
    const stream = client.request({ ":path": "/", ":method": "POST" }, { endStream: false });
    stream.write("the beginning");
    expect(await text(stream)).toBe("no more, please");
    await once(stream, "close");
    expect(stream.rstCode).toBe(0);
    client.destroy();
  });

  it("lets a call that takes longer than its silence come to its end", async () => {
    await listener.close(0);
    await listenWith({ idleMs: 30 });
    const asked = Promise.withResolvers<ServerResponse>();
    handle = (_req, res) => asked.resolve(res);
    const client = session();
    const answer = http2(client, "/");
    const res = await asked.promise;
    await once(client, "goaway");
    res.end("in the end");
    expect(await answer).toBe("in the end");
  });
});

describe("retiring", () => {
  it("ends connections of HTTP/1.1 with the answer to their next request", async () => {
    const kept = await open();
    kept.write("GET /before HTTP/1.1\r\nHost: x\r\n\r\n");
    const [before] = (await once(kept, "data")) as [Buffer];
    expect(before.toString()).toContain("Connection: keep-alive");
    listener.retire();
    kept.write("GET /after HTTP/1.1\r\nHost: x\r\n\r\n");
    const after = await said(kept);
    expect(after).toContain("Connection: close");
    expect(after).toContain("1.1 /after 0");
  });

  it("sends GOAWAY to sessions of HTTP/2, whose streams come to their end", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    handle = (_req, res) => asked.resolve(res);
    const client = session();
    const answer = http2(client, "/");
    const res = await asked.promise;
    const goneAway = once(client, "goaway") as Promise<[number]>;
    listener.retire();
    expect((await goneAway)[0]).toBe(0);
    res.end("in the end");
    expect(await answer).toBe("in the end");
  });

  it("goes on serving on new connections of both protocols", async () => {
    listener.retire();
    expect(await exchange("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")).toContain("1.1 /a 0");
    const client = session();
    const goneAway = once(client, "goaway");
    expect(await http2(client, "/b")).toBe("2.0 /b 0");
    await goneAway;
  });
});

describe("closing", () => {
  it("ends idle connections of both protocols at once", async () => {
    const silent = await open();
    const kept = await open();
    kept.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(kept, "data");
    const client = session();
    await http2(client, "/");
    const sockets = [silent, kept].map((socket) => closed(socket));
    const startMs = performance.now();
    await Promise.all([listener.close(10_000), ...sockets, once(client, "close")]);
    expect(performance.now() - startMs).toBeLessThan(2_000);
  });

  it("waits for requests under way, and closes their connections after the answer", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    handle = (_req, res) => asked.resolve(res);
    const socket = await open();
    const answer = said(socket);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const res = await asked.promise;
    const ended = listener.close(10_000);
    res.end("in the end");
    expect(await answer).toContain("in the end");
    await ended;
  });

  it("waits for streams of HTTP/2 under way", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    handle = (_req, res) => asked.resolve(res);
    const answer = http2(session(), "/");
    const res = await asked.promise;
    const ended = listener.close(10_000);
    res.end("in the end");
    expect(await answer).toBe("in the end");
    await ended;
  });

  it("cuts off what has not ended after the grace", async () => {
    const asked = Promise.withResolvers<void>();
    handle = () => asked.resolve();
    const socket = await open();
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await asked.promise;
    await Promise.all([closed(socket), listener.close(GRACE_MS)]);
  });

  it("closes connections that are handed over afterwards", async () => {
    const bound = await bindPort({ port: 0, host: "127.0.0.1" });
    bound.handTo(listener.server);
    ({ port } = bound);
    expect(await exchange(`GET /before HTTP/1.1\r\n${CLOSE}`)).toContain("1.1 /before 0");
    await listener.close(GRACE_MS);
    await closed(await open());
    await bound[Symbol.asyncDispose]();
  });

  it("may be asked for again, and before anything listens", async () => {
    await Promise.all([listener.close(GRACE_MS), listener.close(GRACE_MS)]);
    await listener.close(GRACE_MS);
    await createListener(() => {}).close(GRACE_MS);
  });

  it("ends hundreds of connections", async () => {
    const sockets = await Promise.all(Array.from({ length: 300 }, open));
    for (const [i, socket] of sockets.entries()) {
      socket.write(["", "P", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0"][i % 4] ?? "");
    }
    const ended = sockets.map(closed);
    await Promise.all([listener.close(GRACE_MS), ...ended]);
  });
});

describe("what still comes of a request that was answered", () => {
  it.each([
    ["that ends its connection", "Connection: close\r\n"],
    ["that keeps its connection", ""],
  ])("%s is thrown away up to a bound, and then cut off", async (_, header) => {
    handle = (_req, res) => {
      res.statusCode = 413;
      res.end("too much");
    };
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    let failed = false;
    socket.on("error", () => {
      failed = true;
    });
    socket.resume();
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${header}Content-Length: 1000000000000\r\n\r\n`);
    const part = Buffer.alloc(1024 ** 2);
    // The bound is looked at ten times a second, and 256 MiB are sent in less.
    for (let sent = 0; sent < 4_096 && !failed && !socket.destroyed; sent += 1) {
      await new Promise<void>((resolve) => socket.write(part, () => resolve()));
    }
    expect(failed).toBe(true);
    socket.destroy();
  });
});
