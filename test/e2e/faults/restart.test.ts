import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Gate } from "../serve/gate.ts";
import { ServerProcess } from "../serve/process.ts";
import { refusal } from "../serve/refusal.ts";
import { type Shown, serve } from "../serve/served.ts";

let folder: string;
let database: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-restart-"));
  database = join(folder, "tasks.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("a task that ran when the server stopped runs again on the same file, and keeps its id", async () => {
  await using gate = await Gate.build();
  let id: string;
  {
    await using served = await serve("faults", { database, drainMs: 0 });
    id = await served.submit("gated", { url: gate.url, listens: true });
    expect((await gate.arrival()).attempt).toBe(1);
  }
  await using served = await serve("faults", { database });
  const again = await gate.arrival();
  expect(again.attempt).toBe(2);
  again.open("after the restart");
  expect((await served.result("gated", id)).json).toBe("after the restart");
});

it("results, failures and queued tasks outlive a stop", async () => {
  await using gate = await Gate.build();
  const ids: Record<string, string> = {};
  {
    await using served = await serve("calls", { database, drainMs: 0 });
    for (const [endpoint, values] of [
      ["sum", { numbers: [1, 2] }],
      ["draw", { name: "a.png" }],
      ["fail_later", { how: "bad_input" }],
    ] as const) {
      ids[endpoint] = await served.submit(endpoint, values);
      await served.result(endpoint, ids[endpoint]);
    }
    ids.running = await served.submit("gated", { url: gate.url });
    await gate.arrival();
    ids.queued = await served.submit("gated", { url: gate.url });
  }
  await using served = await serve("calls", { database });
  expect((await served.result("sum", ids.sum ?? "")).json).toBe(3);
  const file = await served.result("draw", ids.draw ?? "");
  expect(file.headers.get("content-disposition")).toContain("a.png");
  const failed = await served.result("fail_later", ids.fail_later ?? "");
  expect(refusal(failed)).toMatchObject({ status: 400, message: "the picture is empty" });
  (await gate.arrival()).open("");
  (await gate.arrival()).open("");
  expect((await served.result("gated", ids.running ?? "")).status).toBe(200);
  expect((await served.result("gated", ids.queued ?? "")).status).toBe(200);
});

// On a busy machine a moment can be long; the poll would be late most of the time.
it("a delayed task starts at its time also when the server was restarted before", async () => {
  const runAtMs = Date.now() + 4_000;
  let id: string;
  {
    await using served = await serve("calls", { database });
    const query = `run_at=${new Date(runAtMs).toISOString()}`;
    const answer = await served.post(`/sum/submit?${query}`, { numbers: [1] });
    id = (answer.json as Shown).task_id;
  }
  await using served = await serve("calls", { database });
  // On a busy machine the restart may take longer than the delay.
  const earliestMs = Math.max(runAtMs, Date.now());
  const { started_at } = await served.ended("sum", id);
  const startedMs = Date.parse(started_at ?? "");
  expect(startedMs).toBeGreaterThanOrEqual(runAtMs);
  // The poll alone would find it up to 2.5 s late.
  expect(startedMs - earliestMs).toBeLessThan(1_000);
});

it("a stop lets calls finish, refuses new ones with 503, and is not ready meanwhile", async () => {
  await using gate = await Gate.build();
  const served = await serve("faults", { drainMs: 30_000 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (method: string, path: string) =>
    new Promise<{ status: number; retryAfter: string | undefined }>((resolve, reject) => {
      const { port } = served;
      const req = request({ host: "127.0.0.1", port, path, method, agent }, async (res) => {
        await readText(res);
        resolve({ status: res.statusCode ?? 0, retryAfter: res.headers["retry-after"] });
      });
      req.on("error", reject).end();
    });
  // The connection on which it will ask later has to be there before the stop.
  expect(await ask("GET", "/readyz")).toMatchObject({ status: 200 });
  const call = served.post("/gated_call", { url: gate.url });
  const arrival = await gate.arrival();
  const stopped = served.stop();
  expect(await ask("GET", "/readyz")).toEqual({ status: 503, retryAfter: "1" });
  expect(await ask("POST", "/pid")).toEqual({ status: 503, retryAfter: "1" });
  expect(await ask("POST", "/pid_later/submit")).toEqual({ status: 503, retryAfter: "1" });
  arrival.open("in time");
  expect((await call).json).toBe("in time");
  agent.destroy();
  await stopped;
});

it("what was acknowledged before a kill of the server ends in success after it", async () => {
  const ids: string[] = [];
  const workers = new Set<number>();
  {
    const served = await ServerProcess.start("faults", database);
    workers.add((await served.post("/pid", {})).json as number);
    const submit = async (number: number): Promise<void> => {
      const answer = await served.post("/mark/submit", { number });
      ids.push((answer.json as Shown).task_id);
      if (ids.length === 100) {
        await served.kill();
      }
    };
    const submits = Array.from({ length: 200 }, (_, number) => submit(number));
    const ends = await Promise.allSettled(submits);
    expect(ids.length).toBeGreaterThanOrEqual(100);
    expect(ends.filter(({ status }) => status === "rejected").length).toBe(200 - ids.length);
  }
  await using served = await ServerProcess.start("faults", database);
  const ended = await Promise.all(ids.map((id) => served.ended("mark", id)));
  expect(ended.filter(({ status }) => status !== "success")).toEqual([]);
  // Workers of the killed server noticed, and ended.
  for (const pid of workers) {
    await expect.poll(() => isAlive(pid)).toBe(false);
  }
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // No such process.
    return false;
  }
}
