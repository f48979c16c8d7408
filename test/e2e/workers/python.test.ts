/** Services in Python at an agent, which makes their environments on its own machine. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { TaskStatus, WorkerPlace } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import type { Program } from "../cli/program.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { until, World } from "../hosting/world.ts";
import { PackageIndex } from "../python/package-index.ts";
import { buildOptions, environmentsIn, indexEnv, type Tools, tools } from "../python/uv.ts";
import { hasJoined, startAgent, workerToken } from "./agent-program.ts";

const SILENCE_MS = 3_000;
const HOUR_MS = 3_600_000;
const MEBIBYTE = 1024 ** 2;
const skipped = noSandbox || leftOut(pythonMissing);

const SERVICE = `
import time
from collections.abc import Iterator

import one
from tessera import Batch, Context, api, service, task


@service
class Reader:
    @api
    def value(self) -> int:
        return one.VALUE

    @api(timeout="500ms")
    async def linger(self) -> int:
        import asyncio
        await asyncio.sleep(60)
        return 0

    @task
    def add(self, number: int) -> int:
        return one.VALUE + number

    @task
    def count(self, to: int) -> Iterator[int]:
        yield from range(to)

    @api
    def spell(self, text: str) -> Iterator[str]:
        yield from text

    @task(batch=Batch(max_size=8, max_wait="500ms"))
    def embed(self, text: list[str]) -> list[str]:
        return [f"{each} of {len(text)}" for each in text]

    @task
    def hold(self, seconds: float, ctx: Context) -> int:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
            ctx.check()
        return ctx.attempt
`;

describe.skipIf(skipped)(`a service in Python at an agent${skipped}`, () => {
  let found: Tools;
  let index: PackageIndex;
  let env: Record<string, string>;
  let folder: string;
  let world: World;
  let token: string;
  const agents: Program[] = [];

  async function build(): Promise<BuiltArtifact> {
    const home = join(folder, "service");
    mkdirSync(home);
    writeFileSync(join(home, "service.py"), SERVICE);
    writeFileSync(join(home, "requirements.txt"), "one\n");
    return buildArtifact(join(home, "service.py"), {
      python: buildOptions(found, env),
    });
  }

  /** An agent that has joined, with this interpreter. */
  async function joined({
    python = `${found.interpreter.version}=${found.interpreter.path}`,
    more = {} as Readonly<Record<string, string>>,
  } = {}): Promise<Program> {
    const agent = startAgent(world, {
      ...{ token, deployment: "reader", env: { ...env, ...more } },
      flags: ["--sandbox", "kernel", "--python", python, "--uv", found.uv],
    });
    agents.push(agent);
    await hasJoined(agent);
    return agent;
  }

  const serves = () =>
    until(
      () => world.call("reader", "/value", { body: {} }),
      ({ status, json }) => status === 200 && json === 41,
      ({ status, text }) => `${status} ${text}`,
    );

  async function submit(endpoint: string, values: object): Promise<string> {
    const { json, text } = await world.call("reader", `/${endpoint}/submit`, { body: values });
    expect(json?.task_id, text).toBeTypeOf("string");
    return json.task_id;
  }

  const result = (endpoint: string, taskId: string) =>
    world.call("reader", `/${endpoint}/get?task_id=${taskId}&wait=60`);

  const isRunning = (taskId: string, attempt: number) =>
    until(
      () => world.client.tasks.getTask({ deployment: "acme/reader", taskId }),
      (task) => task.status === TaskStatus.RUNNING && task.attempt === attempt,
    );

  beforeAll(async () => {
    if (skipped) {
      return;
    }
    found = await tools();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-python-agent-")));
    index = await PackageIndex.start();
    index.add("one", "1.0", { code: "VALUE = 41\n" });
    env = indexEnv(index.url);
    const { version, path } = found.interpreter;
    world = await World.start({
      env,
      config: {
        silenceMs: SILENCE_MS,
        python: {
          interpreters: [`${version}=${path}`],
          needsSandbox: true,
          uv: found.uv,
          maxBytesPerOrganization: 64 * MEBIBYTE,
        },
      },
    });
    await world.deploy("reader", await build(), { settings: { place: WorkerPlace.REMOTE } });
    token = await workerToken(world, ["reader"]);
  }, 300_000);
  afterEach(async () => {
    for (const agent of agents.splice(0)) {
      await agent[Symbol.asyncDispose]();
    }
  });
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
    await index?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("answers apis and runs tasks in an environment that is made there, and not at the node", async () => {
    await joined();
    await serves();
    expect((await result("add", await submit("add", { number: 1 }))).json).toBe(42);
    expect(environmentsIn(world.folder.data)).toEqual([]);
    const data = readdirSync(world.folder.path).filter((name) => name.startsWith("agent-"));
    expect(data.flatMap((name) => environmentsIn(join(world.folder.path, name)))).toHaveLength(1);
  });

  it("streams, from apis and tasks", async () => {
    await joined();
    await serves();
    expect((await result("count", await submit("count", { to: 50 }))).json).toEqual(
      Array.from({ length: 50 }, (_, number) => number),
    );
    const spelled = await world.call("reader", "/spell", { body: { text: "abc" } });
    expect([spelled.status, spelled.text.replace(/[^abc]/g, "")]).toEqual([200, "abc"]);
  });

  it("takes the calls of a batch together", async () => {
    await joined();
    await serves();
    const texts = ["a", "b", "c", "d"];
    const ids = await Promise.all(texts.map((text) => submit("embed", { text })));
    const answers = await Promise.all(ids.map(async (id) => (await result("embed", id)).text));
    expect(answers.map((answer) => answer[0])).toEqual(texts);
    // The first may have gone alone, before the others came.
    expect(answers.filter((answer) => / of [34]$/.test(answer)).length).toBeGreaterThan(2);
  });

  it.each([
    ["an hour fast", HOUR_MS],
    ["an hour slow", -HOUR_MS],
  ])("runs and times out as ever when the agent's clock is %s", async (_, shiftMs) => {
    const preload = join(import.meta.dirname, "shifted-clock.cjs");
    const more = { NODE_OPTIONS: `--require ${preload}`, CLOCK_SHIFT_MS: String(shiftMs) };
    const agent = await joined({ more });
    await serves();
    // Longer than the fence of a worker that hears nothing.
    const taskId = await submit("hold", { seconds: (SILENCE_MS * 1.2) / 1_000 });
    const beganMs = performance.now();
    expect((await world.call("reader", "/linger", { body: {} })).status).toBe(504);
    expect(performance.now() - beganMs).toBeLessThan(SILENCE_MS);
    expect((await result("hold", taskId)).json).toBe(1);
    expect((await agent.stop()).stderr).not.toMatch(/gives its calls to others|cut off/);
  });

  it("runs a task again, once, when its agent was frozen, whose late result counts for nothing", async () => {
    const agent = await joined();
    await serves();
    const taskId = await submit("hold", { seconds: 3 });
    await isRunning(taskId, 1);
    agent.send("SIGSTOP");
    await joined();
    await isRunning(taskId, 2);
    agent.send("SIGCONT");
    await agent.says("stderr", /registers anew/);
    expect((await result("hold", taskId)).json).toBe(2);
    const task = await world.client.tasks.getTask({ deployment: "acme/reader", taskId });
    expect(task).toMatchObject({ status: TaskStatus.SUCCESS, attempt: 2 });
  });

  it("is said to need another Python, with what the agent has", async () => {
    const program = join(folder, "python3.99");
    const facts = { version: "3.99", path: program, files: [program] };
    writeFileSync(program, `#!/bin/sh\necho '${JSON.stringify(facts)}'\n`);
    chmodSync(program, 0o755);
    await joined({ python: `3.99=${program}` });
    const said = `ENVIRONMENT_UNAVAILABLE: it needs Python ${found.interpreter.version}, and this machine has 3.99 (${program})`;
    await world.until("reader", ({ statusReason }) =>
      statusReason.includes(`; the one that has joined cannot start it: ${said}`),
    );
    const { workers } = await world.client.deployments.listWorkers({ deployment: "reader" });
    expect(workers).toMatchObject([{ ready: false, fault: expect.stringContaining(said) }]);
    const refused = await world.call("reader", "/value", { body: {} });
    expect([refused.status, refused.json.details[0].debug.reason]).toEqual([
      503,
      "NO_MATCHING_WORKER",
    ]);
    const lines = world.client.deployments.watchDeploymentLogs({
      deployment: "reader",
      follow: true,
    });
    for await (const { text } of lines) {
      if (text.includes(said)) {
        break;
      }
    }
  });
});
