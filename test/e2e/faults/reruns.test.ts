/** Calls of apis whose workers die, which run again where their author says that they may. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { WorkerPlace } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import type { Program } from "../cli/program.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { until, World } from "../hosting/world.ts";
import { serviceInterpreter } from "../python/interpreter.ts";
import { refusal } from "../serve/refusal.ts";
import { fixture, type Served, serve } from "../serve/served.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";

const skipped = leftOut(pythonMissing);

for (const [language, left] of [
  ["in Node", ""],
  ["in Python", skipped],
]) {
  describe.skipIf(left)(`a call of an idempotent api ${language}${left}`, () => {
    let served: Served;
    beforeAll(async () => {
      const python = language === "in Python" && {
        servicePath: fixture("reruns.py"),
        python: await serviceInterpreter(),
      };
      served = await serve("reruns", { workers: 2, ...python });
    }, 300_000);
    afterAll(() => served.stop());

    it("runs again in another worker, as often as a task", async () => {
      expect(await served.post("/again", { times: 1 })).toMatchObject({ status: 200, json: 2 });
      expect(await served.post("/again", { times: 3 })).toMatchObject({ status: 200, json: 4 });
    });

    it("is answered with whose fault it was after the fourth death, and at once where it is not", async () => {
      expect(refusal(await served.post("/again", { times: 9 }))).toMatchObject({
        status: 500,
        reason: "WORKER_LOST",
        message: expect.stringContaining("ran alone in it, at the last of 4 tries: it exited"),
      });
      expect(refusal(await served.post("/once", { times: 1 }))).toMatchObject({
        reason: "WORKER_LOST",
        message: expect.stringContaining("ran alone in it: it exited"),
      });
    });

    it("succeeds beside calls that end their worker again and again", async () => {
      const innocents = Array.from({ length: 12 }, () => served.post("/wait", { ms: 300 }));
      const poison = [9, 9].map((times) => served.post("/again", { times }));
      const others = served.post("/once", { times: 1 });
      for (const { status, text } of await Promise.all(innocents)) {
        expect(status, text).toBe(200);
      }
      for (const { status } of await Promise.all([...poison, others])) {
        expect(status).toBeGreaterThanOrEqual(500);
      }
    });

    it("succeeds in a batch with one that ends the worker", async () => {
      const calls = [1, 2, -1, 3].map((n) => served.post("/together", { n }));
      expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 500, 200]);
    });

    it("streams if nothing of its answer was sent, and breaks off if something was", async () => {
      const whole = await served.post("/pieces", { times: 2, before: 0 });
      expect([whole.status, whole.json]).toEqual([200, 3]);
      const broken = await served.post("/pieces", { times: 1, before: 2 });
      expect(broken.text).toMatch(/^1\n2\n.*WORKER_LOST/);
    });

    it("ends within its timeout", async () => {
      const beganMs = performance.now();
      const { status } = await served.post("/hurried", { times: 9 });
      expect(status).toBeGreaterThanOrEqual(500);
      expect(performance.now() - beganMs).toBeLessThan(4_000);
    });
  });
}

describe("a call of an idempotent api in a worker that has joined", () => {
  const programs: Program[] = [];
  let world: World;
  afterAll(async () => {
    for (const program of programs) {
      await program[Symbol.asyncDispose]();
    }
    await world?.[Symbol.asyncDispose]();
  });

  it("runs again when the process or the whole machine of its worker has died", async () => {
    world = await World.start({ config: { silenceMs: 3_000 } });
    await world.deploy("reruns", await buildArtifact(fixture("reruns.ts")), {
      settings: { place: WorkerPlace.REMOTE },
    });
    const token = await workerToken(world, ["reruns"]);
    const join = async (): Promise<Program> => {
      const agent = startAgent(world, { token, deployment: "reruns" });
      programs.push(agent);
      await hasJoined(agent);
      return agent;
    };
    const first = await join();
    const post = (path: string, body: object) => world.call("reruns", path, { body });
    await until(
      () => post("/wait", { ms: 1 }),
      ({ status }) => status === 200,
    );
    expect(await post("/again", { times: 2 })).toMatchObject({ status: 200, json: 3 });
    const call = post("/wait", { ms: 2_000 });
    await join();
    await first.stop("SIGKILL");
    expect(await call).toMatchObject({ status: 200 });
  });
});
