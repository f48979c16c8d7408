/** An agent whose node ends by force while its tasks run. */
import { afterEach, describe, expect, it } from "vitest";
import { WorkerPlace } from "../../../src/client/index.ts";
import { LEASE_DURATION_MS } from "../../../src/queue/maintenance/leases.ts";
import { freePort } from "../../free-port.ts";
import { Program } from "../cli/program.ts";
import { artifact, call, until, World } from "../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "./agent-program.ts";

/** Longer than the lease of a worker that asks for no other silence limit, by a little. */
const AWAY_MS = LEASE_DURATION_MS + 2_000;

let world: World;
const programs: Program[] = [];

/** A node in a process of its own, on the data of the world. */
async function startNode(port: number): Promise<Program> {
  const node = new Program(["start", "--port", String(port), "--data", world.folder.data], {
    cwd: world.folder.path,
  });
  programs.push(node);
  await node.says("stdout", / runs on http/);
  return node;
}

afterEach(async () => {
  for (const program of programs.splice(0)) {
    await program[Symbol.asyncDispose]();
  }
  await world?.[Symbol.asyncDispose]();
});

describe("an agent", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "goes on with a task when its node ends by %s, whose result is stored once, and takes new ones",
    async (signal) => {
      world = await World.start();
      await world.deploy("afar", await artifact("afar"), {
        settings: { place: WorkerPlace.REMOTE },
      });
      const token = await workerToken(world, ["afar"]);
      await world.platform[Symbol.asyncDispose]();
      const port = await freePort();
      const at = { started: { ...world.platform.started, port } };
      const node = await startNode(port);
      const url = `http://127.0.0.1:${port}`;
      const agent = startAgent(world, { url, token, deployment: "afar" });
      programs.push(agent);
      await hasJoined(agent);
      const hold = (forMs: number) => call(at, "afar", "/hold/submit", { body: { forMs } });
      const submitted = await until(
        () => hold(4_000),
        ({ status }) => status === 202,
      );
      const taskId: string = submitted.json.task_id;
      await until(
        () => call(at, "afar", `/hold/status?task_id=${taskId}`),
        ({ json }) => json.status === "running",
      );
      // One that comes later and has ended: the next node may not give its number again.
      const before = await call(at, "afar", "/parent", { body: {} });
      await node.stop(signal);
      await startNode(port);
      const path = `/hold/get?task_id=${taskId}&wait=40`;
      const after = await until(
        () => call(at, "afar", path),
        ({ status }) => status === 200,
      );
      expect(after.json).toEqual({ attempt: 1, pid: before.json.pid, version: "one" });
      expect((await call(at, "afar", path)).json).toEqual(after.json);
      const { task_id: next } = (await hold(0)).json;
      const later = await call(at, "afar", `/hold/get?task_id=${next}&wait=40`);
      expect(later.json).toEqual(after.json);
    },
  );

  it("goes on for as long as its silence limit says while its node is away, and begins anew by default", async () => {
    world = await World.start();
    const names = ["patient", "usual"] as const;
    for (const name of names) {
      await world.deploy(name, await artifact("afar"), { settings: { place: WorkerPlace.REMOTE } });
    }
    const token = await workerToken(world, names);
    await world.platform[Symbol.asyncDispose]();
    const port = await freePort();
    const at = { started: { ...world.platform.started, port } };
    const node = await startNode(port);
    const url = `http://127.0.0.1:${port}`;
    const join = async (deployment: string, flags: readonly string[]): Promise<Program> => {
      const agent = startAgent(world, { url, token, deployment, flags });
      programs.push(agent);
      await hasJoined(agent);
      return agent;
    };
    const [, usual] = await Promise.all([
      join("patient", ["--silence-limit", "10m"]),
      join("usual", []),
    ]);
    const submit = async (name: string): Promise<string> => {
      await until(
        () => call(at, name, "/parent", { body: {} }),
        ({ status }) => status === 200,
      );
      const { json } = await call(at, name, "/hold/submit", { body: { forMs: 15_000 } });
      await until(
        () => call(at, name, `/hold/status?task_id=${json.task_id}`),
        ({ json }) => json.status === "running",
      );
      return json.task_id;
    };
    const ids = await Promise.all(names.map(submit));
    await node.stop("SIGKILL");
    const back = new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    await usual.says("stderr", /the platform was not reached in time/);
    await back;
    await startNode(port);
    const attempts = names.map(async (name, index) => {
      const path = `/hold/get?task_id=${ids[index]}&wait=60`;
      const { json } = await until(
        () => call(at, name, path),
        ({ status }) => status === 200,
      );
      return json.attempt;
    });
    expect(await Promise.all(attempts)).toEqual([1, 2]);
  }, 150_000);
});
