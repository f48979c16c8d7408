/** A node that stops while a call runs, as its operator sees it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { quickTimers } from "../../quick-timers.ts";
import { administration } from "../start/platform.ts";
import { artifact, reasonOf, until, World } from "./world.ts";

quickTimers();

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

it("a node whose machine is drained ends its workers with their calls, and takes work when it is taken back", async () => {
  const gate = createServer().listen(0, "127.0.0.1");
  await once(gate, "listening");
  const { port } = gate.address() as AddressInfo;
  const config = { sandbox: "permission" } as const;
  await using world = await World.start({ config });
  await world.deployed("reaching", await artifact("reaching"));
  await world.deployed("echo", await artifact());
  await using operator = await administration(world.folder);
  const arrived = once(gate, "request");
  const running = world.call("reaching", "/fetch", { body: { url: `http://127.0.0.1:${port}` } });
  const [, gated] = (await arrived) as [IncomingMessage, ServerResponse];
  const [node] = await operator.nodes();
  const machine = node?.machine ?? "";
  await operator.setDrained(machine, true);
  const { statusReason } = await world.until(
    "echo",
    ({ status }) => status === DeploymentStatus.DEGRADED,
  );
  expect(statusReason).toContain("that of this node is drained");
  expect(reasonOf(await world.call("echo", "/say", { body: { text: "a" } }))).toBe(
    "NO_MATCHING_WORKER",
  );
  const { json } = await world.call("echo", "/work/submit", { body: { text: "a" } });
  gated.end("let go");
  expect(await running).toMatchObject({ status: 200, json: "200 let go" });
  await until(
    () => operator.nodes(),
    ([one]) => one?.isDrained === true && one.facts?.workers === 0,
  );
  expect(await (await fetch(`${world.platform.url}/readyz`)).text()).not.toContain("drained");

  await operator.setDrained(machine, false);
  for (const name of ["reaching", "echo"]) {
    await world.until(name, ({ status }) => status === DeploymentStatus.READY);
  }
  const path = `/work/get?task_id=${json.task_id}&wait=20`;
  expect((await world.call("echo", path)).text).toBe("one a");
  gate.close();
});
