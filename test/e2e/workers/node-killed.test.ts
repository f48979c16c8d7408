/** An agent whose node ends by force while its tasks run. */
import { afterEach, describe, expect, it } from "vitest";
import { WorkerPlace } from "../../../src/client/index.ts";
import { freePort } from "../../free-port.ts";
import { Program } from "../cli/program.ts";
import { artifact, call, until, World } from "../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "./agent-program.ts";

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
    "goes on with a task when its node ends by %s, whose result is stored once",
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
      const before = await until(
        () => call(at, "afar", "/parent", { body: {} }),
        ({ status }) => status === 200,
      );
      const submitted = await call(at, "afar", "/hold/submit", { body: { forMs: 4_000 } });
      const taskId: string = submitted.json.task_id;
      await until(
        () => call(at, "afar", `/hold/status?task_id=${taskId}`),
        ({ json }) => json.status === "running",
      );
      await node.stop(signal);
      await startNode(port);
      const path = `/hold/get?task_id=${taskId}&wait=40`;
      const after = await until(
        () => call(at, "afar", path),
        ({ status }) => status === 200,
      );
      expect(after.json).toEqual({ attempt: 1, pid: before.json.pid, version: "one" });
      expect((await call(at, "afar", path)).json).toEqual(after.json);
    },
  );
});
