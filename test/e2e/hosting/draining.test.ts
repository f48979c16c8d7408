/** A node that stops while a call runs, as its operator sees it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { administration } from "../start/platform.ts";
import { artifact, until, World } from "./world.ts";

it("a node that stops is listed as draining until its running calls have ended", async () => {
  const gate = createServer().listen(0, "127.0.0.1");
  await once(gate, "listening");
  const { port } = gate.address() as AddressInfo;
  // Where the kernel holds it, a worker reaches nothing on this machine.
  const config = { sandbox: "permission", drainMs: 60_000 } as const;
  await using world = await World.start({ config });
  await world.deployed("reaching", await artifact("reaching"));
  await using operator = await administration(world.folder);
  const arrived = once(gate, "request");
  const running = world.call("reaching", "/fetch", { body: { url: `http://127.0.0.1:${port}` } });
  const [, gated] = (await arrived) as [IncomingMessage, ServerResponse];
  const [node] = await operator.nodes();
  expect(node?.facts?.draining).toBe(undefined);
  const stopped = world.platform.started.stop();
  await until(
    () => operator.nodes(),
    ([one]) => one?.facts?.draining === true,
  );
  gated.end("let go");
  expect(await running).toMatchObject({ status: 200, json: "200 let go" });
  await stopped;
  expect(await operator.nodes()).toEqual([]);
  gate.close();
});
