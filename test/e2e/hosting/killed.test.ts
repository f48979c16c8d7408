import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { Program } from "../cli/program.ts";
import { newPostgres } from "../start/databases.ts";
import { start } from "../start/platform.ts";
import { type Answer, artifact, call, until, World } from "./world.ts";

/** A node in a process of its own, on the data of a world. */
async function spawnNode(world: World, env: Record<string, string> = {}) {
  const program = new Program(["start", "--port", "0", "--data", world.folder.data], {
    cwd: world.folder.path,
    env,
  });
  const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
  return { program, started: { ...world.platform.started, port: Number(port) } };
}

const BROKEN = `const VERSION = "two";
if (process.env.FAIL) {
  throw new Error("it does not start");
}`;

const say = { body: { text: "x" } };

describe("a node that is killed", () => {
  let world: World;
  let program: Program | undefined;

  beforeEach(() => {
    program = undefined;
  });
  afterEach(async () => {
    await program?.[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  it("finds deployments, queue and results when it starts again", async () => {
    world = await World.start();
    await world.deployed("echo", await artifact(), { settings: { maxWorkers: 1 } });
    await world.platform[Symbol.asyncDispose]();
    const node = await spawnNode(world);
    program = node.program;
    const ask = (path: string, options = {}): Promise<Answer> => call(node, "echo", path, options);
    const submit = async (text: string, forMs = 0): Promise<string> =>
      (await ask("/work/submit", { body: { text, forMs } })).json.task_id;
    await until(
      () => ask("/say", say),
      ({ text }) => text === "one x",
    );
    const finished = await submit("finished");
    expect((await ask(`/work/get?task_id=${finished}&wait=20`)).text).toBe("one finished");
    const running = await submit("running", 1_000);
    const queued = await submit("queued");
    await until(
      () => ask(`/work/status?task_id=${running}`),
      ({ json }) => json.status === "running",
    );
    await program.stop("SIGKILL");

    await using again = await start(world.folder);
    const result = (id: string) => call(again, "echo", `/work/get?task_id=${id}&wait=30`);
    expect((await call(again, "echo", "/say", say)).text).toBe("one x");
    expect((await result(finished)).text).toBe("one finished");
    expect((await result(running)).text).toBe("one running");
    expect((await result(queued)).text).toBe("one queued");
  }, 60_000);

  it("leaves the other to serve, which runs what its share was within 10 s", async () => {
    const database = await newPostgres();
    world = await World.start({ database });
    await world.deployed("echo", await artifact(), {
      settings: { minWorkers: 2, maxWorkers: 2 },
    });
    const node = await spawnNode(world, { DATABASE_URL: database });
    program = node.program;
    const both = await world.until("echo", ({ nodes, workers }) => nodes === 2 && workers === 2);
    expect(both.status).toBe(DeploymentStatus.READY);
    const there = (options = {}): Promise<Answer> =>
      call(node, "echo", "/say", { ...say, ...options });
    expect((await there()).text).toBe("one x");

    await world.client.deployments.updateDeployment({
      deployment: { name: "echo", authorization: true },
    });
    expect((await world.call("echo", "/say", say)).status).toBe(401);
    const closedAtMs = performance.now();
    await until(there, ({ status }) => status === 401);
    expect(performance.now() - closedAtMs).toBeLessThan(1_000);
    await (await world.callerClient()).deployments.updateDeployment({
      deployment: { name: "echo", authorization: false },
      updateMask: { paths: ["authorization"] },
    });

    await program.stop("SIGKILL");
    const killedAtMs = performance.now();
    expect((await world.call("echo", "/say", say)).text).toBe("one x");
    await world.until("echo", ({ nodes, workers }) => nodes === 1 && workers === 2);
    expect(performance.now() - killedAtMs).toBeLessThan(10_000);
  }, 60_000);

  it("has what others serve in its place, when the target revision does not start", async () => {
    const database = await newPostgres();
    world = await World.start({ database });
    await world.deployed("echo", await artifact());
    const broken = await artifact("echo", { 'const VERSION = "one";': BROKEN });
    const env = { FAIL: "yes" };
    await world.deploy("echo", broken, { settings: { env } });
    await world.until("echo", ({ status }) => status === DeploymentStatus.FAILED);
    const node = await spawnNode(world, { DATABASE_URL: database });
    program = node.program;
    await until(
      () => call(node, "echo", "/say", say),
      ({ text }) => text === "one x",
    );
  }, 60_000);
});
