import { expect } from "vitest";
import { dayOf, startOfDay } from "../../../../src/storage/days.ts";
import type { HostingStorage } from "../../../../src/storage/hosting/hosting.ts";
import type { UsedByCalls } from "../../../../src/storage/hosting/usage.ts";
import { newTask, submit } from "../../fixtures.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

type NewBudget = Parameters<HostingStorage["createBudget"]>[0];

/** The middle of a month. */
const NOW_MS = Date.UTC(2026, 10, 15, 12);
const DAY = dayOf(NOW_MS);
const INTERVAL_MS = 10_000;

export function budgetsContract(it: It): void {
  it("is made with what was used already, and listed by name", async (platform) => {
    const budgets = await Budgets.on(platform);
    await budgets.use({ runMs: 4_500, day: DAY - 14 });
    await budgets.use({ runMs: 1_000 });
    const made = await budgets.create("month", { period: "month", amount: 10 });
    expect(made).toMatchObject({
      outcome: "created",
      budget: {
        ...{ name: "month", measure: "run_seconds", amount: 10, period: "month", used: 5.5 },
        ...{ deployment: "", token: undefined, version: 1, createdBy: "ada@example.com" },
        ...{ fromDay: dayOf(Date.UTC(2026, 10)), toDay: dayOf(Date.UTC(2026, 11)) },
      },
    });
    await budgets.create("day");
    expect(await budgets.list()).toMatchObject([
      { name: "day", used: 1, fromDay: DAY, toDay: DAY + 1 },
      { name: "month" },
    ]);
    expect(await budgets.create("day")).toEqual({ outcome: "name_taken" });
    expect(await budgets.create("other", { limit: 2 })).toEqual({ outcome: "limit" });
  });

  it("counts its own measure, deployment and token", async (platform) => {
    const budgets = await Budgets.on(platform);
    await platform.deploy(["two"], { name: "two", deploymentId: "two-id" });
    const units = { pages: 2.5, constructor: 7 };
    await budgets.use({ calls: 3, gpuMs: 500, bytesIn: 10, bytesOut: 20, units });
    await budgets.use({ calls: 4, tokenId: "t2" });
    await budgets.use({ calls: 5, deploymentId: "two-id" });
    const task = { deploymentId: "one-id", createdAtMs: NOW_MS, runAtMs: NOW_MS };
    await submit(platform.storage, newTask("a", { ...task, tokenId: "t1", expiresAtMs: NOW_MS }));
    const all: Readonly<Record<string, readonly [Partial<NewBudget>, used: number]>> = {
      all: [{ measure: "calls" }, 12],
      one: [{ measure: "calls", deployment: "one" }, 7],
      both: [{ measure: "calls", deployment: "one", tokenId: "t2" }, 4],
      token: [{ measure: "calls", tokenId: "t1" }, 8],
      gone: [{ measure: "calls", deployment: "three" }, 0],
      tasks: [{ measure: "tasks", tokenId: "t1" }, 1],
      gpu: [{ measure: "gpu_seconds" }, 0.5],
      out: [{ measure: "bytes_out" }, 20],
      pages: [{ measure: "pages" }, 2.5],
      odd: [{ measure: "constructor" }, 7],
      none: [{ measure: "toString" }, 0],
    };
    for (const [name, [scope, used]] of Object.entries(all)) {
      expect([name, await budgets.create(name, scope)]).toMatchObject([name, { budget: { used } }]);
    }
  });

  it("is counted once in an interval, and told while it is spent", async (platform) => {
    const budgets = await Budgets.on(platform);
    expect(await budgets.count()).toEqual({ spent: [], counted: 0, inUse: false });
    await budgets.create("day", { amount: 2 });
    await budgets.create("month", { amount: 100, period: "month" });
    await budgets.use({ runMs: 2_000 });
    expect(await budgets.count(INTERVAL_MS - 1)).toEqual({ spent: [], counted: 0, inUse: true });
    const counts = [budgets.count(INTERVAL_MS), budgets.count(INTERVAL_MS)];
    const counted = (await Promise.all(counts)).map((one) => one.counted);
    expect(counted.sort()).toEqual([0, 2]);
    expect(await budgets.count(INTERVAL_MS)).toMatchObject({
      spent: [{ name: "day", used: 2, amount: 2 }],
      counted: 0,
    });
    expect(await budgets.list()).toMatchObject([{ used: 2 }, { used: 2 }]);
  });

  it("is whole again when its period turns, but for one of nothing", async (platform) => {
    const budgets = await Budgets.on(platform);
    await budgets.use({ runMs: 5_000 });
    await budgets.create("day", { amount: 2 });
    await budgets.create("month", { amount: 2, period: "month" });
    await budgets.create("nothing", { amount: 0 });
    const names = async (atMs: number) => (await budgets.count(atMs)).spent.map(({ name }) => name);
    expect(await names(0)).toEqual(["day", "month", "nothing"]);
    const nextDayMs = startOfDay(DAY + 1) - NOW_MS;
    expect(await names(nextDayMs - 1)).toEqual(["day", "month", "nothing"]);
    expect(await names(nextDayMs)).toEqual(["month", "nothing"]);
    expect(await names(nextDayMs + INTERVAL_MS)).toEqual(["month", "nothing"]);
    expect(await names(Date.UTC(2026, 11) - NOW_MS)).toEqual(["nothing"]);
  });

  it("counts what is flushed late for the day before, and each day all of the month", async (platform) => {
    const budgets = await Budgets.on(platform);
    await budgets.use({ runMs: 1_000, day: DAY - 5 });
    await budgets.create("month", { amount: 100, period: "month" });
    const used = async (afterMs: number) => {
      await budgets.count(afterMs);
      return (await budgets.list())[0]?.used;
    };
    await budgets.use({ runMs: 2_000, day: DAY - 1 });
    expect(await used(INTERVAL_MS)).toBe(3);
    // Nobody does, but what is settled is not read again on this day.
    await budgets.use({ runMs: 4_000, day: DAY - 2 });
    expect(await used(2 * INTERVAL_MS)).toBe(3);
    await budgets.use({ runMs: 8_000, day: DAY + 1 });
    expect(await used(startOfDay(DAY + 1) - NOW_MS)).toBe(15);
    expect(await used(startOfDay(DAY + 1) - NOW_MS + INTERVAL_MS)).toBe(15);
  });

  it("is changed below what was used, by one of two who change it at a time", async (platform) => {
    const budgets = await Budgets.on(platform);
    await budgets.create("day", { amount: 10 });
    await budgets.use({ runMs: 5_000 });
    const changes = [budgets.update("day", 4, 1), budgets.update("day", 6, 1)];
    const outcomes = (await Promise.all(changes)).map(({ outcome }) => outcome);
    expect(outcomes.sort()).toEqual(["updated", "version_conflict"]);
    expect(await budgets.update("day", 4, 2)).toMatchObject({ budget: { amount: 4, version: 3 } });
    expect((await budgets.count()).spent).toMatchObject([{ name: "day", used: 5 }]);
    expect(await budgets.update("day", 5.5, 0)).toMatchObject({ budget: { version: 4 } });
    expect((await budgets.count()).spent).toEqual([]);
    expect(await budgets.update("day", 1, 2)).toEqual({ outcome: "version_conflict" });
    expect(await budgets.update("other", 1, 0)).toEqual({ outcome: "not_found" });
  });

  it("is deleted, of one's own organization alone, and each change is told", async (platform) => {
    const { hosting, organizationId } = platform;
    const budgets = await Budgets.on(platform);
    const { latest } = await platform.accounts.listChanges({ afterSequence: 0, limit: 1_000 });
    await budgets.create("day", { amount: 3, deployment: "one" });
    await budgets.update("day", 4, 0);
    const foreign = { ...platform.deed(), organizationId: "another", name: "day" };
    expect(await hosting.deleteBudget(foreign)).toBe(false);
    expect(await hosting.listBudgets({ ...foreign, nowMs: NOW_MS })).toEqual([]);
    const gone = { ...platform.deed("ada@example.com"), organizationId, name: "day" };
    expect(await hosting.deleteBudget(gone)).toBe(true);
    expect(await hosting.deleteBudget(gone)).toBe(false);
    expect(await budgets.list()).toEqual([]);
    const told = await platform.accounts.listChanges({ afterSequence: latest, limit: 1_000 });
    expect(told.changes.map(({ kind, id }) => [kind, id])).toEqual(
      Array.from({ length: 3 }, () => ["deployment", organizationId]),
    );
    const { items } = await platform.accounts.listAuditEvents({ organizationId, limit: 3 });
    const scope = { measure: "run_seconds", period: "day", deployment: "one" };
    expect(items).toMatchObject([
      { action: "budget.delete", subject: "day" },
      { action: "budget.update", details: { ...scope, amount: "4", before: "3" } },
      { action: "budget.create", details: { ...scope, amount: "3" } },
    ]);
  });
}

/** A platform with the deployment `one`, and short ways to budgets. */
class Budgets {
  readonly #platform: HostingPlatform;
  #flushes = 0;

  static async on(platform: HostingPlatform): Promise<Budgets> {
    await platform.deploy(["one"], { name: "one", deploymentId: "one-id" });
    return new Budgets(platform);
  }

  private constructor(platform: HostingPlatform) {
    this.#platform = platform;
  }

  create(name: string, rest: Partial<NewBudget> = {}) {
    const { organizationId } = this.#platform;
    return this.#platform.hosting.createBudget({
      ...{ ...this.#platform.deed("ada@example.com"), nowMs: NOW_MS, organizationId, name },
      ...{ budgetId: `${name}-id`, measure: "run_seconds", amount: 1, period: "day" },
      ...{ deployment: "", tokenId: "", limit: 100, ...rest },
    });
  }

  update(name: string, amount: number, version: number) {
    const { organizationId } = this.#platform;
    return this.#platform.hosting.updateBudget({
      ...{ ...this.#platform.deed("ada@example.com"), nowMs: NOW_MS, organizationId },
      ...{ name, amount, version },
    });
  }

  list() {
    const { organizationId } = this.#platform;
    return this.#platform.hosting.listBudgets({ organizationId, nowMs: NOW_MS });
  }

  /** What is counted after some time. */
  count(afterMs = 0) {
    const nowMs = NOW_MS + afterMs;
    return this.#platform.hosting.countBudgets({ nowMs, intervalMs: INTERVAL_MS, limit: 10 });
  }

  /** Calls of `one` by `t1`. */
  use(used: Partial<UsedByCalls>): Promise<void> {
    this.#flushes += 1;
    const row = {
      ...{ deploymentId: "one-id", day: DAY, endpoint: "greet", tokenId: "t1", calls: 0 },
      ...{ runMs: 0, gpuMs: 0, bytesIn: 0, bytesOut: 0, units: {}, ...used },
    };
    const flush = { recorder: "node/1", sequence: this.#flushes, day: DAY };
    return this.#platform.hosting.addUsage({ ...flush, rows: [row] });
  }
}
