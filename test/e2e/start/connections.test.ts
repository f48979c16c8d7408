/** How many connections a platform takes, in total and of one address. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { Folder, start } from "./platform.ts";

const METRICS_TOKEN = "of-the-operator-alone";

it("a platform closes connections beyond its limits, counts them, and serves others", async () => {
  using folder = new Folder();
  await using platform = await start(folder, {
    env: {
      TESSERA_MAX_CONNECTIONS: "8",
      TESSERA_MAX_CONNECTIONS_PER_ADDRESS: "3",
      TESSERA_TRUSTED_PROXIES: "127.0.0.9",
      TESSERA_PROXY_SECRET: "a secret of the proxy",
      TESSERA_METRICS_TOKEN: METRICS_TOKEN,
    },
  });
  await using sockets = new AsyncDisposableStack();
  const open = async (localAddress: string): Promise<Socket> => {
    const { port } = platform.started;
    const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => {});
    sockets.defer(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const ask = async (localAddress: string, path: string): Promise<string> => {
    const socket = await open(localAddress);
    const authorization = `Authorization: Bearer ${METRICS_TOKEN}`;
    socket.end(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${authorization}\r\n\r\n`);
    return text(socket).catch(() => "");
  };

  const held = [await open("127.0.0.1"), await open("127.0.0.1"), await open("127.0.0.1")];
  expect(await ask("127.0.0.1", "/livez")).toBe("");
  expect(await ask("127.0.0.2", "/livez")).toContain("200 OK");
  expect(held.every((socket) => !socket.closed)).toBe(true);
  // The proxy has more than any other address may have, up to the total.
  for (let i = 0; i < 4; i += 1) {
    await open("127.0.0.9");
  }
  expect(await ask("127.0.0.9", "/metrics")).toMatch(
    /tessera_connections_refused_total\{bound="address",node="[^"]+"\} 1\n/,
  );
});
