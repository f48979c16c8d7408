import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fastify } from "fastify";
import { expect, it } from "vitest";
import { requestValues } from "../../../../src/server/rpc/engine/caller.ts";

it("a request whose connection broke is the caller's going, not a defect", async () => {
  const seen = Promise.withResolvers<unknown>();
  const app = fastify();
  app.get("/", async (req) => {
    const { socket } = req.raw;
    socket.destroy();
    await once(socket, "close");
    try {
      seen.resolve(requestValues(req, "http"));
    } catch (err) {
      seen.resolve(err);
    }
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  expect(await seen.promise).toMatchObject({ reason: "CALLER_GONE" });
  await app.close();
});
