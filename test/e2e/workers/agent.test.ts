/** `tessera worker` joined to a real platform. */
import { mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TaskStatus, WorkerPlace } from "../../../src/client/index.ts";
import { isAlive, type Program } from "../cli/program.ts";
import { type Answer, artifact, until, World } from "../hosting/world.ts";
import { bearer } from "../start/platform.ts";
import { hasJoined, startAgent, workerToken } from "./agent-program.ts";

const OPERATOR = "the-operators-own-token";
const SILENCE_MS = 3_000;

let world: World;
let token: string;
const agents: Program[] = [];

/** An agent of the deployment that has joined. */
async function joined(deployment = "afar", flags: readonly string[] = []): Promise<Program> {
  const agent = startAgent(world, { token, deployment, flags });
  agents.push(agent);
  await hasJoined(agent);
  return agent;
}

/** Resolves when calls reach a process of this agent. */
async function serves(agent: Program, name = "afar"): Promise<number> {
  const { json } = await until(
    () => world.call(name, "/parent", { body: {} }),
    ({ json: found }) => found?.agent === agent.pid,
    ({ status, text }) => `${status} ${text}`,
  );
  return json.pid;
}

async function submit(endpoint: string, values: object): Promise<string> {
  const { json, text } = await world.call("afar", `/${endpoint}/submit`, { body: values });
  expect(json?.task_id, text).toBeTypeOf("string");
  return json.task_id;
}

async function task(taskId: string) {
  return world.client.tasks.getTask({ deployment: "acme/afar", taskId });
}

async function isRunning(taskId: string): Promise<void> {
  await until(
    () => task(taskId),
    ({ status }) => status === TaskStatus.RUNNING,
  );
}

/** Resolves when this line is in the deployment's log. */
async function hasLine(wanted: string): Promise<void> {
  const ended = new AbortController();
  const lines = world.client.deployments.watchDeploymentLogs(
    { deployment: "afar", follow: true },
    { signal: ended.signal },
  );
  for await (const { text } of lines) {
    if (text === wanted) {
      ended.abort();
      return;
    }
  }
}

async function result(taskId: string, endpoint = "hold"): Promise<Answer> {
  return world.call("afar", `/${endpoint}/get?task_id=${taskId}&wait=60`);
}

/** Sends and receives a file. */
async function sendFile(path: string, bytes: Buffer): Promise<Response> {
  const body = new FormData();
  body.set("original", new Blob([new Uint8Array(bytes)]), "original.bin");
  return fetch(`${world.platform.url}${path}`, {
    method: "POST",
    headers: { "tessera-deployment": "acme/afar" },
    body,
  });
}

beforeAll(async () => {
  world = await World.start({
    env: { TESSERA_METRICS_TOKEN: OPERATOR },
    config: { silenceMs: SILENCE_MS },
  });
  await world.deploy("afar", await artifact("afar"), {
    settings: { env: { SECRET_OF_TEST: "whispered" }, place: WorkerPlace.REMOTE },
  });
  token = await workerToken(world, ["afar"]);
});
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    await agent[Symbol.asyncDispose]();
  }
});
afterAll(() => world?.[Symbol.asyncDispose]());

describe("an agent", () => {
  it("runs apis and tasks, with the secrets and variables of the deployment", async () => {
    const agent = await joined();
    await serves(agent);
    expect((await world.call("afar", "/secret", { body: {} })).json).toBe("one whispered");
    const held = await result(await submit("hold", { forMs: 10 }));
    expect(held.json).toMatchObject({ attempt: 1, version: "one" });
  });

  it.each([
    ["small", 10_000],
    ["large", 1_000_000],
  ])("takes and returns %s files", async (_name, size) => {
    const agent = await joined();
    await serves(agent);
    const bytes = Buffer.alloc(size, "0123456789abcdef");
    const copy = await sendFile("/copy", bytes);
    expect(copy.status).toBe(200);
    expect(Buffer.from(await copy.arrayBuffer()).equals(bytes)).toBe(true);
    const submitted = (await (await sendFile("/keep/submit", bytes)).json()) as { task_id: string };
    const query = `task_id=${submitted.task_id}&wait=30`;
    const kept = await fetch(`${world.platform.url}/keep/get?${query}`, {
      headers: { "tessera-deployment": "acme/afar" },
    });
    expect(Buffer.from(await kept.arrayBuffer()).equals(bytes)).toBe(true);
  });

  it("returns texts on both sides of what a message holds, and streams", async () => {
    const agent = await joined();
    await serves(agent);
    for (const times of [10, 500_000]) {
      const { text } = await result(await submit("repeat", { text: "ab", times }), "repeat");
      expect(text).toBe("ab".repeat(times));
    }
    const counted = await result(await submit("count", { to: 100 }), "count");
    expect(counted.json).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  it("brings lines, output, progress and metrics", async () => {
    const agent = await joined();
    await serves(agent);
    const submitted = (await (await sendFile("/keep/submit", Buffer.alloc(77))).json()) as {
      task_id: string;
    };
    await world.call("afar", `/keep/get?task_id=${submitted.task_id}&wait=30`);
    const events = await until(
      () => world.client.tasks.getTask({ deployment: "acme/afar", taskId: submitted.task_id }),
      ({ progress }) => progress !== undefined,
    );
    expect(events.progress).toMatchObject({ fraction: 0.5, message: "halfway" });
    await until(
      async () => {
        const page = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
        return page.text();
      },
      (text) => /afar_copied_bytes_total\{[^}]*\} \d+/.test(text),
    );
    await hasLine("keep: a copy of 77 bytes");
  });

  it("that is killed and started again tells so, and nobody waits for its silence limit", async () => {
    const data = mkdtempSync(join(world.folder.path, "agent-"));
    const begin = async (): Promise<Program> => {
      const flags = ["--silence-limit", "2h"];
      const agent = startAgent(world, { token, deployment: "afar", flags, data });
      agents.push(agent);
      await hasJoined(agent);
      return agent;
    };
    const first = await begin();
    const pid = await serves(first);
    const taskId = await submit("hold", { forMs: 3_000 });
    await isRunning(taskId);
    await first.stop("SIGKILL");
    const second = await begin();
    const { json } = await result(taskId);
    expect(json).toMatchObject({ attempt: 2 });
    expect(json.pid).not.toBe(pid);
    expect((await task(taskId)).attempts[0]).toMatchObject({
      failure: { message: expect.stringContaining("its process has died, and was started again") },
    });
    await second.stop();
    expect(readdirSync(join(data, "sessions"))).toEqual([]);
  });

  it("finishes its calls at SIGTERM, and exits with 0", async () => {
    const agent = await joined();
    await serves(agent);
    const taskId = await submit("hold", { forMs: 1_000 });
    await isRunning(taskId);
    const ended = await agent.stop();
    expect(ended.code).toBe(0);
    expect((await result(taskId)).json).toMatchObject({ attempt: 1 });
  });

  it("finds what its process kept when it is started again", async () => {
    const data = mkdtempSync(join(world.folder.path, "agent-"));
    for (const times of [1, 2]) {
      const agent = startAgent(world, { token, deployment: "afar", data });
      agents.push(agent);
      await hasJoined(agent);
      await serves(agent);
      expect((await world.call("afar", "/visits", { body: {} })).json).toBe(times);
      await agent.stop();
    }
  });

  it("loses its tasks when it is killed, and they run again once", async () => {
    const agent = await joined();
    const pid = await serves(agent);
    const taskId = await submit("hold", { forMs: 5_000 });
    await isRunning(taskId);
    await agent.stop("SIGKILL");
    await until(
      async () => isAlive(pid),
      (alive) => !alive,
    );
    await joined();
    expect((await result(taskId)).json).toMatchObject({ attempt: 2 });
  });

  it("kills what it ran when it wakes from a long sleep, and joins anew", async () => {
    const agent = await joined();
    const pid = await serves(agent);
    const taskId = await submit("hold", { forMs: 4_000 });
    await isRunning(taskId);
    agent.send("SIGSTOP");
    await joined();
    await until(
      () => task(taskId),
      ({ status, attempt }) => status === TaskStatus.RUNNING && attempt === 2,
    );
    agent.send("SIGCONT");
    await until(
      async () => isAlive(pid),
      (alive) => !alive,
    );
    expect((await result(taskId)).json).toMatchObject({ attempt: 2 });
    await agent.says("stderr", /registers anew/);
  });
});

describe("a new revision", () => {
  it("is what workers run as soon as their calls have ended", async () => {
    const agent = await joined();
    await serves(agent);
    const taskId = await submit("hold", { forMs: 1_500 });
    await isRunning(taskId);
    const next = await artifact("afar", { 'VERSION = "one"': 'VERSION = "two"' });
    await world.deploy("afar", next, { settings: { env: { SECRET_OF_TEST: "anew" } } });
    await until(
      () => world.call("afar", "/secret", { body: {} }),
      ({ json }) => json === "two anew",
    );
    expect((await result(taskId)).json).toMatchObject({ attempt: 1, version: "one" });
  });
});

describe("a platform", () => {
  it("refuses the token of another deployment", async () => {
    await world.deploy("other", await artifact("echo"), {
      settings: { place: WorkerPlace.REMOTE },
    });
    const agent = startAgent(world, { token, deployment: "other" });
    const ended = await agent.ended;
    await agent[Symbol.asyncDispose]();
    expect(ended.code).not.toBe(0);
    expect(ended.stderr).toMatch(/refuses the worker/);
  });
});
