import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ConnectionBound, ConnectionLimit } from "../../src/server/connection-limit.ts";
import { createListener, type Listener } from "../../src/server/listener.ts";

const PROXY = "127.0.0.9";

describe("a limit of 5 connections, and 2 of an address", () => {
  let listener: Listener;
  let refused: [ConnectionBound, string][];
  const sockets = new Set<Socket>();

  beforeEach(async () => {
    refused = [];
    const limit = new ConnectionLimit({
      total: 5,
      perAddress: 2,
      isProxy: (address) => address === PROXY,
      onRefused: (bound, address) => refused.push([bound, address]),
    });
    listener = createListener((_req, res) => void res.end("ok"), {}, limit);
    listener.server.listen(0, "127.0.0.1");
    await once(listener.server, "listening");
  });
  afterEach(async () => {
    for (const socket of sockets) {
      socket.destroy();
    }
    await listener.close(0);
  });

  /** Connects from this address of the loopback network. */
  const open = async (localAddress: string): Promise<Socket> => {
    const { port } = listener.server.address() as AddressInfo;
    const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => {});
    sockets.add(socket);
    await once(socket, "connect");
    return socket;
  };

  /** Whether the server answers on it, or closes it. */
  const serves = async (socket: Socket): Promise<boolean> => {
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const data = once(socket, "data").then(
      () => true,
      () => false,
    );
    return Promise.race([data, once(socket, "close").then(() => false)]);
  };

  it("closes the third of an address, and serves others", async () => {
    const [first, second, third] = [
      await open("127.0.0.1"),
      await open("127.0.0.1"),
      await open("127.0.0.1"),
    ];
    expect(await serves(third)).toBe(false);
    expect(await Promise.all([first, second].map(serves))).toEqual([true, true]);
    expect(await serves(await open("127.0.0.2"))).toBe(true);
    expect(refused).toEqual([["address", "127.0.0.1"]]);
  });

  it("has room again once one has ended", async () => {
    const first = await open("127.0.0.1");
    expect(await serves(first)).toBe(true);
    expect(await serves(await open("127.0.0.1"))).toBe(true);
    expect(await serves(await open("127.0.0.1"))).toBe(false);
    first.destroy();
    const again = async () => serves(await open("127.0.0.1"));
    await expect.poll(again, { timeout: 10_000 }).toBe(true);
  });

  it("holds a trusted proxy to the total alone", async () => {
    for (let i = 0; i < 5; i += 1) {
      expect(await serves(await open(PROXY))).toBe(true);
    }
    expect(await serves(await open(PROXY))).toBe(false);
    expect(await serves(await open("127.0.0.1"))).toBe(false);
    expect(refused).toEqual([
      ["total", PROXY],
      ["total", "127.0.0.1"],
    ]);
  });
});
