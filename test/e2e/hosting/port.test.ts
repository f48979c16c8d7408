/** A deployment that listens on every port it can get, to collect what is meant for the platform. */
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { freePort } from "../../free-port.ts";
import { start } from "../start/platform.ts";
import { artifact, World } from "./world.ts";

it("the port is never a worker's: not while its node starts, serves or drains", async () => {
  const taken: string[] = [];
  const gate = createHttp((req, res) => {
    taken.push(req.url ?? "");
    res.end();
  }).listen(0, "127.0.0.1");
  await once(gate, "listening");
  const { port: tell } = gate.address() as AddressInfo;
  const [port, free] = [await freePort(), await freePort()];
  // Where the kernel holds it, a worker has no ports of the machine.
  const config = { port, sandbox: "permission" } as const;
  await using world = await World.start({ config });
  const env = { PORTS: `${port},${free}`, TELL: `http://127.0.0.1:${tell}` };
  await world.deployed("grabber", await artifact("grabber"), { settings: { env } });
  // It does listen where it can.
  await expect.poll(() => taken).toContain(`/${free}-4`);
  // The drain waits for this call as long as it may.
  const busy = world.call("grabber", "/busy", { body: { forMs: 60_000 } });
  busy.catch(() => undefined);
  await world.platform[Symbol.asyncDispose]();
  {
    // Its worker starts while the node does.
    await using again = await start(world.folder, { config });
    const isReady = async () => (await fetch(`${again.url}/readyz`)).status;
    await expect.poll(isReady).toBe(200);
  }
  gate.close();
  expect(taken.filter((path) => path.startsWith(`/${port}-`))).toEqual([]);
});
