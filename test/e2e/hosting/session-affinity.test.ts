/** `Tessera-Worker`: the next request goes to the same worker, as far as that is there. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { WorkerPlace } from "../../../src/client/index.ts";
import type { Program } from "../cli/program.ts";
import { type Over, open } from "../websockets/client.ts";
import { startAgent, workerToken } from "../workers/agent-program.ts";
import { World } from "./world.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/serve/mounts.ts", import.meta.url));
const WORKERS = 3;

describe.each([
  ["the node", false],
  ["a machine that has joined", true],
] as const)("a worker of %s that a request names", (_machine, isJoined) => {
  let world: World;
  let agent: Program | undefined;
  const settings = isJoined
    ? { place: WorkerPlace.REMOTE }
    : { minWorkers: WORKERS, maxWorkers: WORKERS };

  beforeAll(async () => {
    world = await World.start({ env: { TESSERA_SANDBOX: "permission" } });
    await world.deploy("mounted", await buildArtifact(SERVICE), { settings });
    if (isJoined) {
      const token = await workerToken(world, ["mounted"]);
      const flags = ["--workers", String(WORKERS)];
      agent = startAgent(world, { token, deployment: "mounted", flags });
    }
    const allServe = async () => expect((await workers()).size).toBe(WORKERS);
    await vi.waitFor(allServe, { timeout: 30_000 });
  }, 120_000);
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await world?.[Symbol.asyncDispose]();
  });

  const naming = (worker: string | undefined): Record<string, string> =>
    worker === undefined ? {} : { "tessera-worker": worker };

  const ask = async (worker?: string) => {
    const options = { method: "GET", headers: naming(worker) } as const;
    const { text, headers: said } = await world.call("mounted", "/self", options);
    return { process: text, worker: String(said["tessera-worker"]) };
  };

  const callFunction = (worker?: string) =>
    world.call("mounted", "/process", { body: {}, headers: naming(worker) });

  /** The processes of the service by the names of their workers, of a request to each. */
  async function workers(): Promise<Map<string, string>> {
    const held = Array.from({ length: WORKERS * 2 }, () => hold());
    const found = await Promise.all(held);
    const names = new Set(found.map(({ worker }) => worker));
    for (const { res } of found) {
      res.destroy();
    }
    const processes = await Promise.all([...names].map(async (name) => ask(name)));
    return new Map(processes.map(({ worker, process }) => [worker, process]));
  }

  /** A request whose answer never ends. */
  async function hold(): Promise<{ readonly res: IncomingMessage; readonly worker: string }> {
    const { port } = new URL(world.platform.url);
    const headers = { host: `mounted.acme.apps.localhost:${port}` };
    const sent = request({ host: "127.0.0.1", port, path: "/held", headers, agent: false }).end();
    const [res] = (await once(sent, "response")) as [IncomingMessage];
    res.on("error", () => {});
    return { res, worker: String(res.headers["tessera-worker"]) };
  }

  it("reaches the worker that an answer has named", async () => {
    const known = await workers();
    for (const [worker, process] of known) {
      for (let count = 0; count < 10; count++) {
        expect(await ask(worker)).toEqual({ worker, process });
      }
    }
  });

  it.each(["HTTP/1.1", "HTTP/2"] as Over[])("reaches it by a WebSocket over %s", async (over) => {
    const host = `mounted.acme.apps.localhost:${new URL(world.platform.url).port}`;
    for (const worker of (await workers()).keys()) {
      const { headers, stream } = await open(world.platform.url, {
        ...{ over, path: "/plain/live", headers: { host, "tessera-worker": worker } },
      });
      expect(headers["tessera-worker"]).toBe(worker);
      stream.destroy();
    }
  });

  it("reaches it by a function, which says so to who asks for it", async () => {
    expect((await callFunction()).headers).not.toHaveProperty("tessera-worker");
    expect((await callFunction("any")).headers["tessera-worker"]).toMatch(/^[\da-f-]{36}$/);
    for (const [worker, process] of await workers()) {
      const { text, headers } = await callFunction(worker);
      expect([text, headers["tessera-worker"]]).toEqual([process, worker]);
    }
  });

  it.each([
    ["a worker that has gone", "0198c0de-0000-7000-8000-000000000000"],
    ["what is no name of a worker", "../../etc/passwd"],
    ["a name that is too long", "a".repeat(10_000)],
    ["nothing", ""],
  ])("reaches any worker by %s", async (_what, worker) => {
    expect([...(await workers()).values()]).toContain((await ask(worker)).process);
  });

  it("reaches another worker once a new revision has taken over", async () => {
    const before = await workers();
    const [old = ""] = before.keys();
    await world.deployed("mounted", await buildArtifact(SERVICE), { settings });
    const { worker } = await ask(old);
    expect(before.has(worker)).toBe(false);
  });
});
