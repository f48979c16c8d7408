/** Connections of a node to the mounted servers of a worker. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { MountAgents } from "../../../src/pool/calls/mount-agents.ts";

let server: Server;
/** Which connection each request came on, by their order. */
let seen: [path: string | undefined, connection: number][];
beforeEach(async () => {
  seen = [];
  const connections = new Map<object, number>();
  server = createServer((req, res) => {
    seen.push([req.url, connections.get(req.socket) ?? 0]);
    res.end("well");
  });
  server.on("connection", (socket) => connections.set(socket, connections.size + 1));
  server.on("upgrade", (req, socket) => {
    seen.push([req.url, connections.get(socket) ?? 0]);
    socket
      .on("error", () => {})
      .on("end", () => socket.end())
      .resume();
    socket.write("HTTP/1.1 101 Odd\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => server.close());

/** Agents for one server, to which as many connections may be as said. */
function agentsTo(maxConnections: number): MountAgents {
  const agents: MountAgents = new MountAgents({
    mounts: [{ path: "/", timeoutMs: 1_000, concurrency: 10 }],
    maxConnections,
    ask: (_, id) => {
      const { port } = server.address() as AddressInfo;
      agents.take(id, connect(port, "127.0.0.1"));
    },
  });
  return agents;
}

/** Sends a request as for a caller, and hears how it goes on. */
async function asked(agents: MountAgents, path: string, isUpgrade = false) {
  const agent = agents.agentOf("/");
  const connection = await agent?.connection({ isNew: isUpgrade });
  const fields = isUpgrade ? "connection: Upgrade\r\nupgrade: x\r\n" : "";
  const text = `GET ${path} HTTP/1.1\r\nhost: x\r\n${fields}\r\n`;
  return new Promise<Duplex | undefined>((resolve, reject) => {
    const listener = {
      onHead: () => {},
      onData: () => {},
      onDrain: () => {},
      onEnd: () => resolve(undefined),
      onUpgrade: (_: unknown, stream: Duplex) => resolve(stream),
      onFault: reject,
    };
    connection?.send({ method: "GET", text, hasBody: false }, listener, isUpgrade);
  });
}

async function answered(agents: MountAgents, path: string): Promise<void> {
  await asked(agents, path);
}

async function upgraded(agents: MountAgents, path: string): Promise<Duplex> {
  const stream = await asked(agents, path, true);
  if (stream === undefined) {
    throw new Error("the server did not switch protocols");
  }
  return stream;
}

it("are kept between requests, but for WebSockets, which have one of their own", async () => {
  using agents = agentsTo(10);
  await answered(agents, "/1");
  await answered(agents, "/2");
  const socket = await upgraded(agents, "/live");
  await answered(agents, "/3");
  expect(seen).toEqual([
    ["/1", 1],
    ["/2", 1],
    ["/live", 2],
    ["/3", 1],
  ]);
  socket.destroy();
});

it("are no more than they may be: an idle one makes room for a WebSocket", async () => {
  using agents = agentsTo(1);
  await answered(agents, "/1");
  const socket = await upgraded(agents, "/live");
  const left = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  await expect.poll(left).toBe(1);
  socket.destroy();
  await expect.poll(left).toBe(0);
  await answered(agents, "/2");
  expect(seen.map(([, connection]) => connection)).toEqual([1, 2, 3]);
});

it("are not used for a request once they were destroyed", async () => {
  using agents = agentsTo(10);
  await answered(agents, "/1");
  const agent = agents.agentOf("/");
  const connection = await agent?.connection();
  if (connection !== undefined) {
    agent?.giveBack(connection);
  }
  connection?.destroy();
  await answered(agents, "/2");
  expect(seen).toEqual([
    ["/1", 1],
    ["/2", 2],
  ]);
});
