import { Agent } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, artifact, until, World } from "./world.ts";

const CALLS_PER_SECOND = 200;
const EVERY_MS = 20;

describe("a rolling update", () => {
  let world: World;
  const agent = new Agent({ keepAlive: true, maxSockets: 50 });

  beforeAll(async () => {
    world = await World.start();
  });
  afterAll(async () => {
    agent.destroy();
    await world[Symbol.asyncDispose]();
  });

  it("under 200 calls a second fails no call and loses no task", async () => {
    const settings = { minWorkers: 2, maxWorkers: 2 };
    await world.deployed("rolling", await artifact(), { settings });
    const two = await artifact("echo", { '"one"': '"two"' });
    const running = (await submit("running", 2_500)).json.task_id;
    const calls: Promise<Answer>[] = [];
    const tasks: Promise<Answer>[] = [];
    const load = setInterval(() => {
      for (let count = 0; count < (CALLS_PER_SECOND * EVERY_MS) / 1_000; count += 1) {
        calls.push(world.call("rolling", "/say", { body: { text: "x" }, agent }));
      }
      if (tasks.length < 50) {
        tasks.push(submit("queued", 10));
      }
    }, EVERY_MS);
    try {
      await until(
        async () => calls.length,
        (count) => count > CALLS_PER_SECOND,
      );
      await world.deploy("rolling", two);
      await world.until("rolling", ({ revision }) => revision === 2);
      const sofar = calls.length;
      await until(
        async () => calls.length,
        (count) => count > sofar + CALLS_PER_SECOND,
      );
    } finally {
      clearInterval(load);
    }
    const answers = await Promise.all(calls);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(new Set(answers.map(({ text }) => text))).toEqual(new Set(["one x", "two x"]));
    expect(answers.at(-1)?.text).toBe("two x");
    const submitted = await Promise.all(tasks);
    for (const { status, json } of submitted) {
      expect(status).toBe(202);
      const { text } = await result(json.task_id);
      expect(text).toMatch(/^(one|two) queued$/);
    }
    // What was running finishes on the revision that began it.
    expect((await result(running)).text).toBe("one running");
  }, 60_000);

  it("fails a queued task whose endpoint is gone, and says why", async () => {
    const without = await artifact("echo", { "    work: task(": "    other: task(" });
    await world.deployed("gone", await artifact(), { settings: { maxWorkers: 1 } });
    const first = await world.call("gone", "/work/submit", { body: { text: "a", forMs: 6_000 } });
    const second = await world.call("gone", "/work/submit", { body: { text: "b" } });
    await world.deploy("gone", without);
    const { client } = world;
    const failed = await until(
      () => client.tasks.getTask({ deployment: "acme/gone", taskId: second.json.task_id }),
      ({ failure }) => failure !== undefined,
    );
    expect(failed.deployment).toBe("acme/gone");
    expect(failed.failure?.message).toContain("revision 2 has no endpoint work");
    const ran = await until(
      () => client.tasks.getTask({ deployment: "acme/gone", taskId: first.json.task_id }),
      ({ finishedAt }) => finishedAt !== undefined,
    );
    expect(ran.failure).toBeUndefined();
  });

  const submit = (text: string, forMs: number): Promise<Answer> =>
    world.call("rolling", "/work/submit", { body: { text, forMs }, agent });
  const result = (taskId: string): Promise<Answer> =>
    world.call("rolling", `/work/get?task_id=${taskId}&wait=30`);
});
