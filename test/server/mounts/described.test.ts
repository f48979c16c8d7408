import { once } from "node:events";
import { Agent } from "node:http";
import { type AddressInfo, createServer, connect as dial } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import type { ServiceManifest } from "../../../src/protocol/manifest.ts";
import type { Calls } from "../../../src/queue/calls/calls.ts";
import { mountDocuments } from "../../../src/server/mounts/described.ts";

const MANIFEST: ServiceManifest = {
  name: "described",
  endpoints: [],
  mounts: [{ path: "/", timeoutMs: 60_000, concurrency: 1 }],
} as unknown as ServiceManifest;

it("gives a slot back, and a reason, where a server answers with another protocol", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = () => dial(port, "127.0.0.1");
  const release = vi.fn();
  const calls = {
    isServed: () => true,
    hold: async () => ({ agent, ranIn: { worker: "w" }, release }),
  } as unknown as Calls;
  const [described] = (await mountDocuments({ calls }, MANIFEST)) ?? [];
  expect(described?.found).toEqual({ fault: "GET /openapi.json was not answered in HTTP" });
  expect(release).toHaveBeenCalledOnce();
});
