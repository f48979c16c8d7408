import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
import { Gate } from "../serve/gate.ts";
import { refusal } from "../serve/refusal.ts";
import { type Served, serve } from "../serve/served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("faults", { workers: 1, graceMs: 100 }), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

describe("what runs beside a function that has to be killed", () => {
  it("runs again, however often that happens, because it is not to blame", async () => {
    const id = await served.submit("gated", { url: gate.url, listens: false });
    for (let kill = 0; kill <= MAX_LOST_WORKERS; kill++) {
      await gate.arrival();
      await served.ended("spin_shared", await served.submit("spin_shared", {}));
    }
    (await gate.arrival()).open("at last");
    expect((await served.result("gated", id)).json).toBe("at last");
  });

  it("is told to try again when it is a call", async () => {
    const call = served.post("/gated_call", { url: gate.url, listens: false });
    await gate.arrival();
    await served.ended("spin", await served.submit("spin", {}));
    const answer = await call;
    expect(refusal(answer)).toMatchObject({ status: 503, reason: "WORKER_LOST" });
    expect(answer.headers.get("retry-after")).toBe("1");
  });
});

it("an endpoint whose slots are all taken does not keep the others waiting", async () => {
  await served.submit("gated", { url: gate.url });
  await served.submit("gated", { url: gate.url });
  const waiting = await served.submit("gated", { url: gate.url });
  const arrivals = [await gate.arrival(), await gate.arrival()];
  const other = await served.submit("pid_later", {});
  expect((await served.result("pid_later", other)).status).toBe(200);
  for (const arrival of arrivals) {
    arrival.open("done");
  }
  (await gate.arrival()).open("done too");
  expect((await served.result("gated", waiting)).json).toBe("done too");
});

it("a task that finishes in the grace of a shutdown has finished", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tessera-late-"));
  const options = {
    workers: 1,
    database: join(folder, "tasks.db"),
    graceMs: 5_000,
    drainMs: 5_000,
  };
  const first = await serve("faults", options);
  const id = await first.submit("late", { url: gate.url });
  await first.until("late", id, ({ status }) => status === "running");
  const stopped = first.stop();
  (await gate.arrival()).open("just in time");
  await stopped;
  const second = await serve("faults", options);
  expect((await second.result("late", id)).json).toBe("just in time");
  expect(await second.status("late", id)).toMatchObject({ attempt: 1 });
  await second.stop();
  rmSync(folder, { recursive: true });
});
