import { afterEach, expect, it } from "vitest";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { nextTime } from "../../../src/queue/schedules/cron.ts";
import { ScheduleFirer } from "../../../src/queue/schedules/firing.ts";
import { ArgumentsReader } from "../../../src/service/input/arguments.ts";
import type { NewSchedule } from "../../../src/storage/hosting/schedules.ts";
import type { Task } from "../../../src/tasks/task.ts";
import { endpoint } from "../../service/manifests.ts";
import { localFiles } from "../../storage/files/local.ts";
import {
  claim,
  DEPLOYMENT,
  endAttempt,
  LEASE,
  openLease,
  success,
} from "../../storage/fixtures.ts";
import { HostingPlatform } from "../../storage/hosting/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { LOG, queueOn } from "../queues.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** One deployment with a schedule, on several nodes, by a clock that the test sets. */
class Nodes implements AsyncDisposable {
  nowMs: number;
  isNewest = true;
  /** How often a schedule waited for a revision that knows more. */
  asked = 0;
  served: EndpointManifest | undefined = endpoint({
    name: "work",
    kind: "task",
    input: { type: "object", properties: { n: { type: "number" } }, additionalProperties: false },
  });
  readonly #platform: HostingPlatform;
  readonly #firers: ScheduleFirer[];

  static async with(now: string, schedule: Partial<NewSchedule> = {}, count = 3): Promise<Nodes> {
    const storage = await openSqlite(":memory:");
    const platform = await HostingPlatform.on(storage);
    await platform.deploy(["one"], { deploymentId: DEPLOYMENT });
    const nodes = new Nodes(platform, Date.parse(now), count);
    await nodes.create(schedule);
    return nodes;
  }

  private constructor(platform: HostingPlatform, nowMs: number, count: number) {
    this.#platform = platform;
    this.nowMs = nowMs;
    const { storage } = platform;
    this.#firers = Array.from({ length: count }, () => {
      return new ScheduleFirer({
        deploymentId: DEPLOYMENT,
        storage,
        queue: queueOn(storage, { keeper: localFiles().task }),
        revision: () => ({
          isNewest: this.isNewest,
          find: (name) =>
            this.served?.name === name
              ? { manifest: this.served, reader: new ArgumentsReader(this.served) }
              : undefined,
        }),
        onUnknown: () => {
          this.asked += 1;
        },
        admit: () => {},
        log: LOG,
        now: () => this.nowMs,
      });
    });
  }

  get storage() {
    return this.#platform.storage;
  }

  async create(rest: Partial<NewSchedule>): Promise<void> {
    const { cron = "0 * * * *", timeZone = "UTC" } = rest;
    const { organizationId, hosting } = this.#platform;
    const created = await hosting.createSchedule({
      ...this.#platform.deed(),
      ...{ organizationId, deploymentId: DEPLOYMENT, limit: 10 },
      schedule: {
        ...{ name: "hourly", endpoint: "work", arguments: '{"n":1}', cron, timeZone },
        ...{ overlap: "queue", catchUp: "one", paused: false },
        nextAtMs: nextTime({ cron, timeZone }, this.nowMs) ?? 0,
        ...rest,
      },
    });
    expect(created.outcome).toBe("created");
  }

  /** Sets the clock, and has all nodes look at once. */
  async at(time: string | number): Promise<void> {
    this.nowMs = typeof time === "number" ? time : Date.parse(time);
    await Promise.all(this.#firers.map((one) => one.look()));
  }

  async schedule() {
    const { organizationId, hosting } = this.#platform;
    const [found] = await hosting.listSchedules({ organizationId, deploymentId: DEPLOYMENT });
    return found;
  }

  /** Its tasks, oldest first. */
  async tasks(): Promise<Task[]> {
    const listing = { deploymentId: DEPLOYMENT, limit: 1_000, nowMs: this.nowMs };
    return (await this.storage.listTasks(listing)).tasks.reverse();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#firers.map((one) => one[Symbol.asyncDispose]()));
    await this.storage[Symbol.asyncDispose]();
  }
}

let nodes: Nodes;
afterEach(() => nodes[Symbol.asyncDispose]());

it("submits one task at a time that comes, on whichever of three nodes", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z");
  await nodes.at("2026-11-28T11:59:59.999Z");
  expect(await nodes.tasks()).toEqual([]);
  await nodes.at("2026-11-28T12:00:00Z");
  await nodes.at("2026-11-28T12:00:05Z");
  const [task, ...others] = await nodes.tasks();
  expect(others).toEqual([]);
  expect(task).toMatchObject({ endpoint: "work", status: "queued", schedule: "hourly" });
  expect(await nodes.schedule()).toMatchObject({
    nextAtMs: Date.parse("2026-11-28T13:00:00Z"),
    lastTask: { taskId: task?.taskId },
    last: { outcome: "task" },
  });
  const payload = await nodes.storage.getArguments({
    ...{ deploymentId: DEPLOYMENT, taskId: task?.taskId ?? "" },
  });
  expect(payload?.json).toBe('{"n":1}');
});

it("fires no time again when the clock is set back, and goes on when it has come there", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z");
  await nodes.at("2026-11-28T12:00:00Z");
  for (const time of ["11:00:00", "11:59:59", "12:00:00", "12:30:00"]) {
    await nodes.at(`2026-11-28T${time}Z`);
  }
  expect(await nodes.tasks()).toHaveLength(1);
  await nodes.at("2026-11-28T13:00:00Z");
  expect(await nodes.tasks()).toHaveLength(2);
});

it.each([
  ["Europe/Amsterdam", "2026-03-28T00:00:00Z", 71, 3],
  ["Europe/Amsterdam", "2026-10-23T23:00:00Z", 73, 3],
  ["America/New_York", "2026-03-07T05:00:00Z", 71, 3],
  ["America/New_York", "2026-10-31T04:00:00Z", 73, 3],
])(
  "fires each hour and each day once over the change of clocks in %s from %s",
  async (timeZone, from, hours, days) => {
    nodes = await Nodes.with(from, { cron: "30 * * * *", timeZone, name: "each-hour" });
    await nodes.create({ cron: "30 2 * * *", timeZone, name: "each-day" });
    const began = nodes.nowMs;
    for (let ms = began; ms < began + hours * HOUR_MS; ms += 10 * MINUTE_MS) {
      await nodes.at(ms);
    }
    const tasks = await nodes.tasks();
    const named = (name: string) => tasks.filter(({ schedule }) => schedule === name);
    expect(named("each-hour")).toHaveLength(hours);
    expect(named("each-day")).toHaveLength(days);
  },
);

it.each([
  ["none", 0],
  ["one", 1],
  ["all", 5],
] as const)("makes up for %s of the times that were missed", async (catchUp, expected) => {
  nodes = await Nodes.with("2026-11-28T06:30:00Z", { catchUp });
  await nodes.at("2026-11-28T11:30:00Z");
  expect(await nodes.tasks()).toHaveLength(expected);
  expect(await nodes.schedule()).toMatchObject({ nextAtMs: Date.parse("2026-11-28T12:00:00Z") });
  await nodes.at("2026-11-28T12:00:30Z");
  expect(await nodes.tasks()).toHaveLength(expected + 1);
});

it("makes up for the last seven days at most, and no time twice", async () => {
  nodes = await Nodes.with("2026-11-01T00:30:00Z", { catchUp: "all" });
  const now = "2026-11-28T00:30:00Z";
  await nodes.at(now);
  while ((await nodes.schedule())?.nextAtMs !== Date.parse("2026-11-28T01:00:00Z")) {
    await nodes.at(now);
  }
  expect(await nodes.tasks()).toHaveLength(7 * 24);
});

it("skips a time while the task before is under way, and says so", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z", { overlap: "skip" });
  await openLease(nodes.storage, LEASE, Date.now());
  await nodes.at("2026-11-28T12:00:00Z");
  await nodes.at("2026-11-28T13:00:00Z");
  const [task] = await nodes.tasks();
  expect(await nodes.tasks()).toHaveLength(1);
  const { last, nextAtMs } = (await nodes.schedule()) ?? {};
  expect(last).toMatchObject({ outcome: "skipped", message: expect.stringContaining("under way") });
  expect(nextAtMs).toBe(Date.parse("2026-11-28T14:00:00Z"));
  const [claimed] = await claim(nodes.storage, { nowMs: Date.now() });
  const attempt = { deploymentId: DEPLOYMENT, taskId: task?.taskId ?? "", attempt: 1 };
  await endAttempt(nodes.storage, { ...attempt, leaseId: claimed?.leaseId ?? "" }, success(1));
  await nodes.at("2026-11-28T14:00:00Z");
  expect(await nodes.tasks()).toHaveLength(2);
});

it("replaces the task before by the next one", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z", { overlap: "replace" });
  await nodes.at("2026-11-28T12:00:00Z");
  await nodes.at("2026-11-28T13:00:00Z");
  await expect
    .poll(async () => (await nodes.tasks()).map(({ status }) => status))
    .toEqual(["cancelled", "queued"]);
});

it("keeps the task before while the queue has no room for the next one", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z", { overlap: "replace" });
  await nodes.at("2026-11-28T12:00:00Z");
  const { served } = nodes;
  nodes.served = served && { ...served, queueLimit: 0 };
  await nodes.at("2026-11-28T13:00:00Z");
  expect((await nodes.schedule())?.last).toMatchObject({ outcome: "refused" });
  expect((await nodes.tasks()).map(({ status }) => status)).toEqual(["queued"]);
  nodes.served = served;
  await nodes.at("2026-11-28T13:00:40Z");
  await expect
    .poll(async () => (await nodes.tasks()).map(({ status }) => status))
    .toEqual(["cancelled", "queued"]);
});

it("passes over times of an endpoint that the newest revision lacks, and says why", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z");
  nodes.served = undefined;
  // An older revision decides nothing.
  nodes.isNewest = false;
  await nodes.at("2026-11-28T12:00:00Z");
  expect((await nodes.schedule())?.last).toBeUndefined();
  expect(nodes.asked).toBe(3);
  nodes.isNewest = true;
  await nodes.at("2026-11-28T12:00:10Z");
  const { last, nextAtMs } = (await nodes.schedule()) ?? {};
  expect(last).toMatchObject({
    outcome: "refused",
    message: "the newest revision has no endpoint work",
  });
  expect(nextAtMs).toBe(Date.parse("2026-11-28T13:00:00Z"));
  expect(await nodes.tasks()).toEqual([]);
  nodes.served = endpoint({ name: "work", kind: "task" });
  await nodes.at("2026-11-28T13:00:00Z");
  expect(await nodes.tasks()).toHaveLength(1);
});

it("passes over times whose arguments the newest revision refuses", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z", { arguments: '{"n":"many"}' });
  await nodes.at("2026-11-28T12:00:00Z");
  expect((await nodes.schedule())?.last).toMatchObject({
    outcome: "refused",
    message: expect.stringContaining("the arguments do not fit endpoint work"),
  });
  expect(await nodes.tasks()).toEqual([]);
});

it("fires a time when the queue that was full has room again", async () => {
  nodes = await Nodes.with("2026-11-28T11:30:00Z");
  const { served } = nodes;
  nodes.served = served && { ...served, queueLimit: 0 };
  await nodes.at("2026-11-28T12:00:00Z");
  expect((await nodes.schedule())?.last).toMatchObject({ outcome: "refused" });
  nodes.served = served;
  await nodes.at("2026-11-28T12:00:40Z");
  expect(await nodes.tasks()).toHaveLength(1);
});
