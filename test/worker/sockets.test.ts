/** Functions with WebSockets, as the host of a worker serves them. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import type { SocketContext, SocketFunction } from "../../src/sdk/index.ts";
import { socketServer } from "../../src/worker/sockets.ts";
import { CLOSE, frame, frames, open, PING, text } from "../e2e/websockets/client.ts";

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
  vi.restoreAllMocks();
});

async function served(
  run: SocketFunction,
  { pingIntervalMs = 30_000 }: { pingIntervalMs?: number } = {},
): Promise<string> {
  const socket = { run, maxMessageBytes: 1_024 ** 2 };
  server = socketServer(socket, "/live", { pingIntervalMs }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The context of the first caller of a function that does nothing more. */
async function opened(): Promise<{
  ctx: SocketContext;
  end: () => void;
  caller: Awaited<ReturnType<typeof open>>;
}> {
  const given = Promise.withResolvers<SocketContext>();
  const ended = Promise.withResolvers<void>();
  const url = await served((ctx) => {
    given.resolve(ctx);
    return ended.promise;
  });
  const caller = await open(url, {
    path: "/live?name=x",
    headers: { "x-forwarded-for": "10.0.0.9" },
  });
  return { ctx: await given.promise, end: ended.resolve, caller };
}

it("shows a function the request that opened its WebSocket", async () => {
  const { ctx, end } = await opened();
  const { request } = ctx;
  expect([request.method, request.url.pathname, request.url.search]).toEqual([
    "GET",
    "/live",
    "?name=x",
  ]);
  expect([request.client, request.headers.get("upgrade")]).toEqual(["10.0.0.9", "websocket"]);
  end();
});

it("refuses messages, codes and reasons that no WebSocket has", async () => {
  const { ctx, end } = await opened();
  expect(() => ctx.socket.send(1 as never)).toThrow(TypeError);
  for (const [code, reason] of [
    [1005, ""],
    [2000, ""],
    [1000.5, ""],
    [1000, "x".repeat(124)],
  ] as const) {
    expect(() => ctx.socket.close(code, reason)).toThrow(RangeError);
  }
  expect(ctx.socket.closed).toBe(false);
  end();
});

it("reads a caller no faster than its function does", async () => {
  const { ctx, end, caller } = await opened();
  const message = text("x".repeat(100_000));
  let sent = 0;
  const more = () => {
    while (sent < 1_000 && caller.stream.write(message)) {
      sent += 1;
    }
  };
  caller.stream.on("drain", more);
  more();
  let before = -1;
  const stands = () => {
    const isSame = before === sent;
    before = sent;
    return isSame;
  };
  await expect.poll(stands, { interval: 200 }).toBe(true);
  expect(sent).toBeLessThan(500);
  const first = await ctx.socket.next();
  expect(first.value).toHaveLength(100_000);
  for (let number = 1; number < 1_000; number++) {
    expect((await ctx.socket.next()).done).toBeFalsy();
    more();
  }
  end();
});

it("ends reads, sends and the signal of a function whose caller has left", async () => {
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const { ctx, end, caller } = await opened();
  const read = ctx.socket.next();
  const aborted = once(ctx.signal, "abort");
  caller.stream.destroy();
  expect(await read).toEqual({ value: undefined, done: true });
  await aborted;
  expect(ctx.socket.closed).toBe(true);
  void ctx.socket.send("nobody waits for it");
  await expect(ctx.socket.send("late")).rejects.toThrow("the WebSocket is closed");
  ctx.socket.close();
  expect(await ctx.socket.next()).toEqual({ value: undefined, done: true });
  end();
  await setImmediate();
  expect(said).not.toHaveBeenCalled();
});

it("writes the error of a function, unless that says that the caller has left", async () => {
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const done = Promise.withResolvers<void>();
  const url = await served(async ({ socket, signal }) => {
    const { value } = await socket.next();
    if (value !== undefined) {
      throw new Error("of the test");
    }
    done.resolve();
    signal.throwIfAborted();
  });
  const failing = await open(url, { path: "/live" });
  failing.stream.write(text("go"));
  const { value } = await frames(failing.stream).next();
  expect(value).toMatchObject({ opcode: CLOSE, payload: Buffer.from([0x03, 0xf3]) });
  expect(String(said.mock.calls)).toContain("Error: of the test");
  said.mockClear();
  (await open(url, { path: "/live" })).stream.destroy();
  await done.promise;
  await setImmediate();
  expect(said).not.toHaveBeenCalled();
});

it("ends a caller who answers no ping, and none who waits for the function", async () => {
  const busy = Promise.withResolvers<void>();
  const url = await served(
    async ({ request, socket }) => {
      if (request.url.search === "?busy") {
        await busy.promise;
      }
      for await (const _ of socket);
    },
    { pingIntervalMs: 500 },
  );
  const waiting = await open(url, {
    path: "/live?busy",
    early: Buffer.concat([text("1"), text("2"), text("3")]),
  });
  const silent = await open(url, { path: "/live" });
  const answering = await open(url, { path: "/live" });
  const pinged: number[] = [];
  const pongs = (async () => {
    for await (const { opcode, payload } of frames(answering.stream)) {
      pinged.push(opcode);
      answering.stream.write(frame({ opcode: 10, payload }));
    }
  })();
  const heard = frames(silent.stream);
  expect((await heard.next()).value?.opcode).toBe(PING);
  expect((await heard.next()).done).toBe(true);
  await expect.poll(() => pinged.length).toBeGreaterThan(2);
  expect(waiting.stream.destroyed).toBe(false);
  busy.resolve();
  answering.stream.destroy();
  await pongs;
});
