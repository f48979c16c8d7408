import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { authority, bindPort, localUrl } from "../../src/server/bind.ts";
import { createListener } from "../../src/server/listener.ts";

/** Whether this machine has both addresses of `localhost`. */
const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((each) => each?.address === "::1");

let resources: AsyncDisposableStack;
beforeEach(() => {
  resources = new AsyncDisposableStack();
});
afterEach(() => resources.disposeAsync());

/** Listens as another program would; rejects when it may not. */
async function take(host: string, port = 0): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  server.listen({ port, host });
  await once(server, "listening");
  resources.defer(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** What a connection gets until it ends. */
async function said(port: number, host: string, sent = ""): Promise<string> {
  const socket = connect(port, host);
  socket.write(sent);
  return all(socket);
}

async function all(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    text += chunk;
  }
  return text;
}

describe.skipIf(!hasIpv6)("localhost", () => {
  it("is bound on both loopback addresses, and nobody else gets the port", async () => {
    const bound = resources.use(await bindPort({ port: 0, host: "localhost" }));
    const server = createServer((socket) => socket.end("the node"));
    bound.handTo(server);
    for (const host of ["127.0.0.1", "::1"]) {
      expect(await said(bound.port, host)).toBe("the node");
      await expect(take(host, bound.port)).rejects.toThrow("EADDRINUSE");
    }
  });

  it.each(["127.0.0.1", "::1"])("is refused while another program has %s", async (host) => {
    const port = portOf(await take(host));
    await expect(bindPort({ port, host: "localhost" })).rejects.toThrow(
      `cannot listen on ${authority({ port, host })}: another program is using it; choose another with --port (localhost means 127.0.0.1 and ::1)`,
    );
    // Nothing of the attempt is left.
    await take(host === "::1" ? "127.0.0.1" : "::1", port);
  });

  it("is free again in whole when it ends", async () => {
    const bound = await bindPort({ port: 0, host: "localhost" });
    await bound[Symbol.asyncDispose]();
    await take("127.0.0.1", bound.port);
    await take("::1", bound.port);
  });
});

it("an address is bound alone", async () => {
  const bound = resources.use(await bindPort({ port: 0, host: "127.0.0.1" }));
  await expect(take("127.0.0.1", bound.port)).rejects.toThrow("EADDRINUSE");
  if (hasIpv6) {
    await take("::1", bound.port);
  }
});

const shares = process.platform === "linux";

it.runIf(shares)(
  "a shared port is listened on by several, who all get connections, and by nobody who has it alone",
  async () => {
    const shared = { host: "127.0.0.1", shared: true };
    const one = resources.use(await bindPort({ port: 0, ...shared }));
    one.handTo(createServer((socket) => socket.end("one")));
    const other = await bindPort({ port: one.port, ...shared });
    other.handTo(createServer((socket) => socket.end("other")));
    await expect(take("127.0.0.1", one.port)).rejects.toThrow("EADDRINUSE");
    await expect(bindPort({ port: one.port, host: "127.0.0.1" })).rejects.toThrow("--port");
    const answered = new Set<string>();
    while (answered.size < 2) {
      answered.add(await said(one.port, "127.0.0.1"));
    }
    await other[Symbol.asyncDispose]();
    expect(
      await Promise.all(Array.from({ length: 20 }, () => said(one.port, "127.0.0.1"))),
    ).toEqual(Array(20).fill("one"));
  },
);

it.runIf(shares)("a port that one process has alone is not shared", async () => {
  const port = portOf(await take("127.0.0.1"));
  await expect(bindPort({ port, host: "127.0.0.1", shared: true })).rejects.toThrow(
    "another program is using it; choose another with --shared-port",
  );
});

it("a connection that comes before anybody serves waits, with what it has sent", async () => {
  const bound = resources.use(await bindPort({ port: 0, host: "127.0.0.1" }));
  const early = connect(bound.port, "127.0.0.1");
  await once(early, "connect");
  early.write("GET /early HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const answered = said(bound.port, "127.0.0.1", "GET / HTTP/1.0\r\n\r\n");
  const listener = createListener((req, res) => res.end(`answered ${req.url}`));
  bound.handTo(listener.server);
  expect(await all(early)).toContain("answered /early");
  expect(await answered).toContain("answered /");
  await listener.close(1_000);
});

it("a connection that waits is closed when nobody comes to serve", async () => {
  const bound = await bindPort({ port: 0, host: "127.0.0.1" });
  const early = connect(bound.port, "127.0.0.1").on("error", () => {});
  await once(early, "connect");
  const closed = once(early, "close");
  await bound[Symbol.asyncDispose]();
  await closed;
});

it("no more than 1,000 connections wait", async () => {
  const bound = resources.use(await bindPort({ port: 0, host: "127.0.0.1" }));
  const early = Array.from({ length: 1_001 }, () => {
    const socket = connect(bound.port, "127.0.0.1").on("error", () => {});
    resources.defer(() => void socket.destroy());
    return socket;
  });
  const refused = await Promise.race(
    early.map((socket) => once(socket, "close").then(() => socket)),
  );
  expect(refused.destroyed).toBe(true);
  expect(early.filter((socket) => socket.destroyed)).toHaveLength(1);
});

it.each([
  ["192.0.2.1", "this machine does not have that address; check --host"],
  ["nowhere.invalid", "check --host"],
])("%s cannot be listened on, and the message says what to do", async (host, reason) => {
  const refused = bindPort({ port: 0, host });
  await expect(refused).rejects.toThrow(`cannot listen on ${host}:0: `);
  await expect(refused).rejects.toThrow(reason);
});

it.each([
  ["localhost", "http://localhost:3000"],
  ["127.0.0.1", "http://127.0.0.1:3000"],
  ["::1", "http://[::1]:3000"],
  ["0.0.0.0", "http://127.0.0.1:3000"],
  ["::", "http://localhost:3000"],
  ["192.0.2.7", "http://192.0.2.7:3000"],
])("a server on %s has the address %s on its machine", (host, url) => {
  expect(localUrl({ port: 3000, host })).toBe(url);
});
