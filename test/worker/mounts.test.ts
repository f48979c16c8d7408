/** How the host of a worker connects its mounted servers to the node. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createConnection, createServer as createUnix, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Mounts } from "../../src/worker/mounts.ts";
import { RunningProgram } from "../../src/worker/program.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-mounts-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const mounted = (app: Server, connect: () => Promise<Socket>): Mounts =>
  new Mounts([{ serves: { app }, manifest: { path: "/" } }] as never, {
    ...{ folder, env: {}, connect, onEnded() {} },
  });

it("connects however few connections may wait for the node", async () => {
  const path = join(folder, "socket");
  const arrived: Socket[] = [];
  const node = createUnix((socket) => arrived.push(socket)).listen({ path, backlog: 1 });
  await once(node, "listening");
  let refused = 0;
  const app = createServer();
  const accepted: Socket[] = [];
  app.on("connection", (socket: Socket) => accepted.push(socket));
  const mounts = mounted(app, async () => {
    const socket = createConnection({ path });
    socket.once("error", () => {
      refused += 1;
    });
    await once(socket, "connect");
    return socket;
  });
  const count = 50;
  for (let number = 0; number < count; number++) {
    mounts.connect(0);
  }
  await expect.poll(() => [arrived.length, accepted.length]).toEqual([count, count]);
  expect(refused).toBeGreaterThan(0);
  for (const socket of accepted) {
    socket.destroy();
  }
  node.close();
});

it("does not try again where the node has ended", async () => {
  let tries = 0;
  const failed = Promise.withResolvers<void>();
  const app = createServer();
  const mounts = mounted(app, async () => {
    tries += 1;
    setImmediate(failed.resolve);
    throw Object.assign(new Error("no such file"), { errno: -2 });
  });
  mounts.connect(0);
  await failed.promise;
  expect(tries).toBe(1);
});

describe("a program", () => {
  /** Answers a connection by what its first bytes ask for, in two pieces. */
  const SCRIPT = `
    require("node:net").createServer((socket) => socket.once("data", (asked) => {
      const [first, second] = JSON.parse(asked);
      socket.setNoDelay().on("error", () => {});
      socket.write(first, () => setTimeout(() => socket.write(second), 50));
    })).listen(process.argv[1], "127.0.0.1")`;

  async function started(command: readonly string[], health?: string): Promise<RunningProgram> {
    const program = new RunningProgram(
      { command, ...(health !== undefined && { health }) },
      { path: "/", folder, env: process.env, onEnded() {} },
    );
    const isRefused = health !== undefined;
    const said = Promise.withResolvers<void>();
    const start = program.start((why) => why.includes("101") && said.resolve());
    await (isRefused ? said.promise : start);
    return program;
  }

  /** A connection of the node that the program answers by these pieces, and what it hears. */
  async function relayed(program: RunningProgram, pieces: readonly [string, string]) {
    const node = createUnix().listen(join(folder, `node-${pieces.join("").length}`));
    await once(node, "listening");
    const theirs = createConnection(node.address() as string);
    const [ours] = (await once(node, "connection")) as [Socket];
    program.relay(theirs);
    let heard = "";
    ours.on("data", (bytes) => {
      heard += bytes;
    });
    ours.write(JSON.stringify(pieces));
    await expect.poll(() => heard).toBe(pieces.join(""));
    node.close();
    return { ours, heard: () => heard };
  }

  it("is told of its worker's end through WebSockets alone, whatever pieces come", async () => {
    const program = await started([process.execPath, "-e", SCRIPT, "{port}"]);
    const live = await relayed(program, ["HTTP/1.1 1", "01 Switching Protocols\r\n\r\n"]);
    const quotes = await relayed(program, ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 101 quoted"]);
    const closed = once(live.ours, "end");
    program.retire(Buffer.from("last"));
    await closed;
    expect(live.heard()).toMatch(/last$/);
    expect([quotes.heard(), quotes.ours.readableEnded]).toEqual([
      "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101 quoted",
      false,
    ]);
    quotes.ours.destroy();
    live.ours.destroy();
    await program.stop();
  });

  it("is not well where its health answers with 101", async () => {
    const odd = `require("node:http").createServer((req, res) => {
      req.socket.write("HTTP/1.1 101 Odd\\r\\nupgrade: x\\r\\nconnection: upgrade\\r\\n\\r\\n");
    }).listen(process.argv[1], "127.0.0.1")`;
    const program = await started([process.execPath, "-e", odd, "{port}"], "/health");
    expect(await program.fault()).toMatch(/answers \/health with 101/);
    await program.stop();
  });
});
