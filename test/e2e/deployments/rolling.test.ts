import { expect, it } from "vitest";
import { Hosting, source } from "./hosting.ts";

const REVISION = (number: number) =>
  source(
    `say: api({}, async () => { await new Promise((r) => setTimeout(r, 20)); return ${number}; }), ` +
      `work: task({ concurrency: 10 }, async () => { await new Promise((r) => setTimeout(r, 100)); return ${number}; })`,
  );

it("a rolling update under load fails no call and loses no task", async () => {
  await using hosting = await Hosting.start({ workers: 2, scale: { min: 2, max: 2 } });
  await hosting.deploy(REVISION(1));
  const next = await Promise.all([2, 3].map((number) => hosting.revision(REVISION(number))));
  let stop = false;
  const answers: unknown[] = [];
  const tasks: string[] = [];
  const load = Array.from({ length: 4 }, async () => {
    while (!stop) {
      answers.push(await hosting.call("say"));
      tasks.push(await hosting.submit("work"));
    }
  });
  for (const revision of next) {
    await hosting.hosted.deploy(revision);
  }
  await expect.poll(() => answers.includes(3)).toBe(true);
  stop = true;
  await Promise.all(load);
  expect([...new Set(answers)]).toEqual([1, 2, 3]);
  expect(await hosting.call("say")).toBe(3);
  expect(answers.length).toBeGreaterThan(20);
  for (const taskId of tasks) {
    expect(await hosting.ended(taskId)).toMatchObject({ status: "success" });
  }
});
