/** How the host of a worker connects its mounted servers to the node. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createConnection, createServer as createUnix, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Mounts } from "../../src/worker/mounts.ts";

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
