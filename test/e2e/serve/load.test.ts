import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, serve } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serve("faults", { workers: 2 });
});
afterAll(() => served.stop());

it("1,000 tasks of 64 callers all succeed, each run once", async () => {
  const ids = new Map<string, number>();
  const files = new Set<string>();
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < 1_000) {
      const number = next++;
      const id = await served.submit("mark", { number });
      const result = await served.result("mark", id);
      const { file, ...rest } = result.json as { number: number; file: string };
      expect(rest).toEqual({ number });
      files.add(file);
      ids.set(id, number);
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  expect(ids.size).toBe(1_000);
  // Each worker wrote the ids of the tasks that it ran into its own folder.
  const ran = [...files].flatMap((file) => readFileSync(file, "utf8").trim().split("\n"));
  expect(ran.sort()).toEqual([...ids.keys()].sort());
  const shown = await Promise.all([...ids.keys()].map((id) => served.status("mark", id)));
  expect(shown.filter(({ attempt, status }) => attempt !== 1 || status !== "success")).toEqual([]);
});

it("while one worker is blocked, the other serves all else", async () => {
  const spinning = await served.submit("spin", {});
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, number) => served.submit("mark", { number })),
  );
  const results = await Promise.all(ids.map((id) => served.result("mark", id)));
  expect(results.map(({ json }) => (json as { number: number }).number)).toEqual(
    Array.from({ length: 20 }, (_, number) => number),
  );
  expect(await served.ended("spin", spinning)).toMatchObject({
    status: "failure",
    failure: { reason: "timeout" },
  });
});

it("a result is gone when its retention is over", async () => {
  const id = await served.submit("brief", {});
  expect((await served.result("brief", id)).json).toBe("soon gone");
  const { finished_at: finished, expires_at: expires } = await served.status("brief", id);
  expect(Date.parse(expires) - Date.parse(finished ?? "")).toBe(1_000);
  for (const verb of ["status", "get", "events"]) {
    const ask = async () => (await served.get(`/brief/${verb}?task_id=${id}`)).status;
    await expect.poll(ask, { interval: 50 }).toBe(404);
  }
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires));
});
