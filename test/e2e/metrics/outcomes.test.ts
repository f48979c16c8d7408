import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, serve } from "../serve/served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("faults");
});
afterAll(() => served.stop());

/** What was counted with these labels, one of them an endpoint or a cause. */
async function counted(name: string, labels: string): Promise<string[]> {
  const { text } = await served.get("/metrics");
  return text
    .split("\n")
    .filter((line) => line.startsWith(`tessera_${name}{`) && line.includes(labels))
    .map((line) => line.replace(/.*?(?:outcome="(\w+)")?\} (\d+)$/, "$1 $2").trim())
    .toSorted();
}

it("a task whose worker dies is started again, and the worker is replaced", async () => {
  const taskId = await served.submit("exit", { times: 1 });
  expect(await served.ended("exit", taskId)).toMatchObject({ status: "success", attempt: 2 });
  const labels = 'endpoint="exit"';
  expect(await counted("tasks_submitted_total", labels)).toEqual(["1"]);
  expect(await counted("tasks_started_total", labels)).toEqual(["2"]);
  expect(await counted("tasks_finished_total", labels)).toEqual(["returned 1", "success 1"]);
  expect(await counted("task_run_seconds_count", labels)).toEqual(["2"]);
  expect(await counted("worker_restarts_total", 'cause="crashed"')).toEqual(["1"]);
});

it("attempts that fail are retried, and the last one is the failure", async () => {
  const taskId = await served.submit("flaky", { succeeds: 9 });
  expect(await served.ended("flaky", taskId)).toMatchObject({ status: "failure" });
  const finished = await counted("tasks_finished_total", 'endpoint="flaky"');
  expect(finished).toEqual(["failure 1", "retried 2"]);
});

it("a submit is a call, and what is asked about its task or the service is none", async () => {
  const before = await counted("requests_total", "");
  const taskId = await served.submit("exit", { times: 0 });
  expect(await served.ended("exit", taskId)).toMatchObject({ status: "success" });
  for (const path of [`/exit/get?task_id=${taskId}`, "/docs.json", "/schema.json"]) {
    expect((await served.get(path)).status, path).toBe(200);
  }
  const total = (lines: readonly string[]) => lines.reduce((sum, line) => sum + Number(line), 0);
  expect(total(await counted("requests_total", "")) - total(before)).toBe(1);
});

it("a task that is cancelled while it waits, or not started in time, ends without an attempt", async () => {
  const waiting = await served.post("/patient/submit?delay=3600", {});
  expect(waiting.status, waiting.text).toBe(202);
  const { task_id: taskId } = waiting.json as { task_id: string };
  expect((await served.post("/patient/cancel", { task_id: taskId })).status).toBe(200);
  // Takes the only slot, and keeps it.
  await served.submit("late", { url: served.origin });
  const late = await served.post("/late/submit?start_within=0.2", { url: served.origin });
  expect(late.status, late.text).toBe(202);
  const { task_id: lateId } = late.json as { task_id: string };
  expect(await served.ended("late", lateId)).toMatchObject({ status: "failure" });
  expect(await counted("tasks_finished_total", 'endpoint="patient"')).toEqual(["cancelled 1"]);
  expect(await counted("tasks_finished_total", 'endpoint="late"')).toEqual(["expired 1"]);
});
