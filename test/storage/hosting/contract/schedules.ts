import fc from "fast-check";
import { expect } from "vitest";
import type { NewSchedule, ScheduleRecord } from "../../../../src/storage/hosting/schedules.ts";
import type { Firing, NewTask } from "../../../../src/storage/storage.ts";
import { scheduleKey } from "../../../../src/tasks/task.ts";
import { newTask, RETENTION_MS } from "../../fixtures.ts";
import type { It } from "../contract.ts";
import { artifactOf, HOUR_MS, type HostingPlatform } from "../fixtures.ts";

const DEPLOYMENT_ID = "summarizer-id";

/** How the ids of tasks begin that schedules fire: with cells, they are home's. */
export const FIRED = "fired";

function scheduleOf(platform: HostingPlatform, rest: Partial<NewSchedule> = {}): NewSchedule {
  return {
    name: "nightly",
    endpoint: "summarize_batch",
    arguments: '{"text":"a"}',
    cron: "0 * * * *",
    timeZone: "UTC",
    overlap: "skip",
    catchUp: "one",
    paused: false,
    nextAtMs: platform.nowMs + HOUR_MS,
    ...rest,
  };
}

function ofDeployment({ organizationId }: HostingPlatform, name = "nightly") {
  return { organizationId, deploymentId: DEPLOYMENT_ID, name };
}

function create(platform: HostingPlatform, rest: Partial<NewSchedule> = {}, limit = 3) {
  return platform.hosting.createSchedule({
    ...platform.deed("ada@example.com"),
    ...ofDeployment(platform),
    schedule: scheduleOf(platform, rest),
    limit,
  });
}

function update(platform: HostingPlatform, before: ScheduleRecord, rest: Partial<NewSchedule>) {
  return platform.hosting.updateSchedule({
    ...platform.deed("root@example.com"),
    ...ofDeployment(platform),
    schedule: { ...before, nextAtMs: platform.nowMs + HOUR_MS, ...rest },
    version: before.version,
  });
}

async function made(platform: HostingPlatform, rest: Partial<NewSchedule> = {}) {
  const created = await create(platform, rest);
  if (created.outcome !== "created") {
    throw new Error(`not created: ${created.outcome}`);
  }
  return created.schedule;
}

function taskAt(platform: HostingPlatform, atMs: number, rest: Partial<NewTask> = {}): NewTask {
  const { nowMs } = platform;
  return newTask(platform.newId(FIRED), {
    deploymentId: DEPLOYMENT_ID,
    endpoint: "summarize_batch",
    createdAtMs: nowMs,
    runAtMs: nowMs,
    expiresAtMs: nowMs + RETENTION_MS,
    idempotency: { key: scheduleKey("nightly", atMs), digest: "nightly", replay: "always" },
    ...rest,
  });
}

/** A firing of the time that a schedule has next, an hour before the one after it. */
function firing(
  platform: HostingPlatform,
  schedule: ScheduleRecord,
  rest: Partial<NewTask> = {},
): Firing {
  const atMs = schedule.nextAtMs ?? 0;
  const task = taskAt(platform, atMs, rest);
  return { schedule, atMs, nextAtMs: atMs + HOUR_MS, end: { outcome: "task", task } };
}

export function schedulesContract(it: It): void {
  it("stores what a schedule says, changes it and deletes it, with who did it", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deploy(["one"]);
    const { nowMs } = platform;
    const said = scheduleOf(platform);
    const schedule = await made(platform);
    expect(schedule).toEqual({
      ...said,
      ...{ organizationId, deploymentId: DEPLOYMENT_ID, declared: false, version: 1 },
      ...{ lastTask: undefined, last: undefined },
      ...{ createdAtMs: nowMs, createdBy: "ada@example.com" },
      ...{ updatedAtMs: nowMs, updatedBy: "ada@example.com" },
    });
    expect(await hosting.getSchedule(ofDeployment(platform))).toEqual(schedule);
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "schedule.create",
      subject: "summarizer/nightly",
      details: { endpoint: "summarize_batch", cron: "0 * * * *", time_zone: "UTC" },
    });

    platform.nowMs += 1_000;
    const changed = await update(platform, schedule, { arguments: "{}", overlap: "replace" });
    expect(changed).toMatchObject({
      outcome: "updated",
      schedule: { version: 2, arguments: "{}", nextAtMs: schedule.nextAtMs },
    });
    expect(await update(platform, schedule, { arguments: "[]" })).toEqual({
      outcome: "version_conflict",
    });
    expect(await update(platform, { ...schedule, name: "nobody" }, {})).toEqual({
      outcome: "not_found",
    });
    const remove = () => hosting.deleteSchedule({ ...platform.deed(), ...ofDeployment(platform) });
    expect(await remove()).toEqual({ outcome: "deleted" });
    expect(await remove()).toEqual({ outcome: "not_found" });
    expect(await hosting.listSchedules(ofDeployment(platform))).toEqual([]);
  });

  it("refuses a name twice, more than the limit, and a deployment that is gone", async (platform) => {
    await platform.deploy(["one"]);
    await made(platform);
    expect(await create(platform)).toEqual({ outcome: "name_taken" });
    expect(await create(platform, { name: "other" }, 1)).toEqual({ outcome: "limit" });
    await platform.remove();
    expect(await platform.hosting.listSchedules(ofDeployment(platform))).toEqual([]);
    expect(await create(platform)).toEqual({ outcome: "deployment_gone" });
  });

  it("has no next time while it is paused, and a new one when it is resumed", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const schedule = await made(platform);
    const paused = await update(platform, schedule, { paused: true });
    expect(paused).toMatchObject({ schedule: { paused: true, nextAtMs: undefined } });
    expect(await storage.fireSchedule(firing(platform, schedule))).toBeUndefined();
    platform.nowMs += 10 * HOUR_MS;
    const due = { deploymentId: DEPLOYMENT_ID, nowMs: platform.nowMs, limit: 10 };
    expect(await hosting.dueSchedules(due)).toEqual([]);
    const before = await hosting.getSchedule(ofDeployment(platform));
    expect(before && (await update(platform, before, { paused: false }))).toMatchObject({
      schedule: { paused: false, nextAtMs: platform.nowMs + HOUR_MS },
    });
  });

  it("tells in a survey which deployments have a time until then", async (platform) => {
    await platform.deploy(["one"]);
    await made(platform);
    await made(platform, { name: "later", nextAtMs: platform.nowMs + 2 * HOUR_MS });
    const asked = { nowMs: platform.nowMs, deploymentIds: [DEPLOYMENT_ID, "another"] };
    const told = async (untilMs: number) =>
      (await platform.storage.survey({ ...asked, untilMs })).schedules;
    const nextAtMs = platform.nowMs + HOUR_MS;
    expect(await told(nextAtMs - 1)).toEqual([]);
    expect(await told(nextAtMs)).toEqual([{ deploymentId: DEPLOYMENT_ID, nextAtMs }]);
  });

  it("stores one task for a time, whoever fires it and however often", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const schedule = await made(platform);
    const fired = await Promise.all(
      [1, 2, 3, 4].map(() => storage.fireSchedule(firing(platform, schedule))),
    );
    const [stored, ...others] = fired.filter((each) => each !== undefined);
    expect(others).toEqual([]);
    expect(stored).toMatchObject({ outcome: "stored", task: { schedule: "nightly" } });
    const taskId = stored?.outcome === "stored" ? stored.task.taskId : "";
    const [due] = await hosting.dueSchedules({
      ...{ deploymentId: DEPLOYMENT_ID, nowMs: Number.MAX_SAFE_INTEGER, limit: 1 },
    });
    const { nextAtMs: atMs = 0 } = schedule;
    expect(due).toEqual({
      ...schedule,
      nextAtMs: atMs + HOUR_MS,
      lastTask: { taskId, atMs },
      last: { atMs, outcome: "task", message: "" },
    });
    const listing = { deploymentId: DEPLOYMENT_ID, limit: 10, nowMs: platform.nowMs };
    const { tasks } = await storage.listTasks(listing);
    expect(tasks.map((task) => [task.taskId, task.schedule])).toEqual([[taskId, "nightly"]]);
  });

  it("fires nothing that its reader has not seen: a changed or deleted schedule", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const schedule = await made(platform);
    await update(platform, schedule, { arguments: "{}" });
    expect(await storage.fireSchedule(firing(platform, schedule))).toBeUndefined();
    await hosting.deleteSchedule({ ...platform.deed(), ...ofDeployment(platform) });
    expect(await storage.fireSchedule(firing(platform, schedule))).toBeUndefined();
    platform.nowMs += 1;
    const again = await made(platform, { nextAtMs: schedule.nextAtMs ?? 0 });
    expect(again).toMatchObject({ version: schedule.version, nextAtMs: schedule.nextAtMs });
    expect(await storage.fireSchedule(firing(platform, schedule))).toBeUndefined();
    expect(await storage.countTasks({ deploymentId: DEPLOYMENT_ID })).toEqual([]);
  });

  it("keeps a time taken that is fired while the schedule is changed", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    let schedule: ScheduleRecord | undefined = await made(platform);
    for (let round = 0; schedule !== undefined && round < 20; round += 1) {
      const made = firing(platform, schedule);
      const [fired, changed] = await Promise.all([
        storage.fireSchedule(made),
        update(platform, schedule, { arguments: `[${round}]` }),
      ]);
      expect(changed).toMatchObject({ outcome: "updated" });
      schedule = await hosting.getSchedule(ofDeployment(platform));
      expect(schedule).toMatchObject({
        arguments: `[${round}]`,
        nextAtMs: fired === undefined ? made.atMs : made.nextAtMs,
      });
    }
  });

  it("leaves the time to be fired again where the queue is full, and says so", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const schedule = await made(platform);
    const full = await storage.fireSchedule(firing(platform, schedule, { queueLimit: 0 }));
    expect(full).toEqual({ outcome: "queue_full", queued: 0 });
    const after = await hosting.getSchedule(ofDeployment(platform));
    expect(after).toMatchObject({ nextAtMs: schedule.nextAtMs, lastTask: undefined });
    expect(after?.last).toMatchObject({ outcome: "refused" });
    const again = await storage.fireSchedule(firing(platform, schedule));
    expect(again).toMatchObject({ outcome: "stored" });
    const last = await hosting.getSchedule(ofDeployment(platform));
    expect(last?.last).toMatchObject({ outcome: "task", message: "" });
  });

  it("passes over a time and keeps the task before in mind", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const first = await made(platform);
    await storage.fireSchedule(firing(platform, first));
    const before = await hosting.getSchedule(ofDeployment(platform));
    const atMs = before?.nextAtMs ?? 0;
    const end = { outcome: "skipped", message: "still under way" } as const;
    const passing = { schedule: before ?? first, atMs, nextAtMs: atMs + HOUR_MS, end };
    expect(await storage.fireSchedule(passing)).toEqual({ outcome: "none" });
    expect(await storage.fireSchedule(passing)).toBeUndefined();
    expect(await hosting.getSchedule(ofDeployment(platform))).toEqual({
      ...before,
      nextAtMs: atMs + HOUR_MS,
      last: { atMs, ...end },
    });
  });

  it("gives a time that was fired before its first task again, as after a delete", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const schedule = await made(platform);
    const first = await storage.fireSchedule(firing(platform, schedule));
    await hosting.deleteSchedule({ ...platform.deed(), ...ofDeployment(platform) });
    const again = await made(platform);
    const second = await storage.fireSchedule(firing(platform, again));
    const task = first?.outcome === "stored" ? first.task : undefined;
    expect(second).toEqual({ outcome: "replayed", task });
    const after = await hosting.getSchedule(ofDeployment(platform));
    const { nextAtMs: atMs = 0 } = schedule;
    expect(after).toMatchObject({ nextAtMs: atMs + HOUR_MS, last: { outcome: "task" } });
  });

  it("are declared by a deploy, which keeps what others made and who paused", async (platform) => {
    const { hosting, organizationId } = platform;
    const names = async () =>
      (await hosting.listSchedules(ofDeployment(platform))).map(({ name }) => name);
    const { paused: _kept, ...declared } = scheduleOf(platform, { name: "declared" });
    await platform.deploy(["one"], { schedules: [declared], maxSchedules: 2 });
    await made(platform, { name: "by-hand" });
    const [, first] = await hosting.listSchedules(ofDeployment(platform));
    expect(first).toMatchObject({ name: "declared", declared: true, paused: false });
    await platform.hosting.updateSchedule({
      ...platform.deed(),
      ...ofDeployment(platform),
      schedule: { ...declared, paused: true },
      version: 1,
    });
    await platform.deploy(["two"], { schedules: [{ ...declared, cron: "5 * * * *" }] });
    const [, second] = await hosting.listSchedules(ofDeployment(platform));
    expect(second).toMatchObject({ cron: "5 * * * *", paused: true, nextAtMs: undefined });
    await platform.deploy(["two"]);
    expect(await names()).toEqual(["by-hand", "declared"]);
    await platform.upload("three");
    const many = ["a", "b"].map((name) => ({ ...declared, name }));
    expect(
      await hosting.createRevision(
        platform.newRevision(artifactOf("three"), { schedules: many, maxSchedules: 2 }),
      ),
    ).toEqual({ outcome: "too_many_schedules" });
    await platform.deploy(["two"], { schedules: [] });
    expect(await names()).toEqual(["by-hand"]);
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "deployment.deploy",
      details: { removed_schedules: "declared" },
    });
  });

  it("has one task for each time, whatever the sequence of calls", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    const step = fc.constantFrom(
      ...["fire", "fire", "fire", "fire stale", "pass", "pause", "resume", "again", "back"],
    );
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        round += 1;
        platform.nowMs += 100 * HOUR_MS;
        const name = `round-${round}`;
        const key = ofDeployment(platform, name);
        let stale = await made(platform, { name });
        const fired: number[] = [];
        for (const one of steps) {
          const current = await hosting.getSchedule(key);
          if (one === "again") {
            await hosting.deleteSchedule({ ...platform.deed(), ...key });
            await made(platform, { name });
          } else if (current === undefined) {
            throw new Error("the schedule is gone");
          } else if (one === "back") {
            platform.nowMs -= HOUR_MS;
          } else if (one === "pause" || one === "resume") {
            await update(platform, current, { paused: one === "pause" });
          } else {
            const of = one === "fire stale" ? stale : current;
            stale = current;
            const idempotency = {
              key: scheduleKey(name, of.nextAtMs ?? 0),
              digest: name,
              replay: "always" as const,
            };
            const made = firing(platform, of, { idempotency });
            const end = one === "pass" ? ({ outcome: "missed", message: "" } as const) : made.end;
            const outcome = await storage.fireSchedule({ ...made, end });
            expect(outcome === undefined).toBe(
              of.createdAtMs !== current.createdAtMs ||
                of.version !== current.version ||
                of.nextAtMs !== current.nextAtMs ||
                current.nextAtMs === undefined,
            );
            if (outcome?.outcome === "stored") {
              fired.push(made.atMs);
            }
          }
        }
        expect(new Set(fired).size).toBe(fired.length);
        await hosting.deleteSchedule({ ...platform.deed(), ...key });
      }),
      { numRuns: 15, seed: 20_261_128 },
    );
    const counted = await storage.countTasks({ deploymentId: DEPLOYMENT_ID });
    expect(counted.every(({ running }) => running === 0)).toBe(true);
  });
}
