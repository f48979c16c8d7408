/** What a spent budget refuses on a node, on a real database. */
import { Code } from "@connectrpc/connect";
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import type { Forgotten } from "../../src/auth/change-feed.ts";
import { problem } from "../../src/errors.ts";
import { Budgets } from "../../src/hosting/budgets.ts";
import { dayOf, startOfDay } from "../../src/storage/days.ts";
import type { HostingStorage } from "../../src/storage/hosting/hosting.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import { HostingPlatform } from "../storage/hosting/fixtures.ts";

/** Noon of a day in November. */
const NOW_MS = Date.UTC(2026, 10, 15, 12);

type NewBudget = Parameters<HostingStorage["createBudget"]>[0];

/** A platform with the deployment `summarizer`, and what a node knows of its budgets. */
async function open() {
  const storage = new SqliteStorage(":memory:");
  onTestFinished(() => storage[Symbol.asyncDispose]());
  await storage.start();
  const platform = await HostingPlatform.on(storage);
  platform.nowMs = NOW_MS;
  await platform.deploy(["one"]);
  const { hosting, organizationId } = platform;
  let listener: ((forgotten: readonly Forgotten[]) => void) | undefined;
  let asked = 0;
  let isAway = false;
  const budgets = new Budgets({
    hosting: {
      countBudgets: async (parameters) => {
        asked += 1;
        if (isAway) {
          throw problem("STORAGE_UNAVAILABLE", "it is away");
        }
        return hosting.countBudgets(parameters);
      },
    },
    changes: {
      listen: (told) => {
        listener = told;
        return () => {
          listener = undefined;
        };
      },
    },
    now: () => platform.nowMs,
    log: pino({ level: "silent" }),
  });
  onTestFinished(() => budgets[Symbol.asyncDispose]());
  let flushes = 0;
  return {
    platform,
    look: () => budgets.look(),
    asked: () => asked,
    away: () => {
      isAway = true;
    },
    /** Tells of a change; whether the node asks then. */
    change: (kind: "deployment" | "token"): boolean => {
      const before = asked;
      listener?.([{ kind, id: organizationId }]);
      return asked > before;
    },
    create: (name: string, rest: Partial<NewBudget> = {}) =>
      hosting.createBudget({
        ...{ ...platform.deed(), nowMs: NOW_MS, organizationId, name, budgetId: `${name}-id` },
        ...{ measure: "run_seconds", amount: 10, period: "day", deployment: "", tokenId: "" },
        ...{ limit: 100, ...rest },
      }),
    use: (runMs: number, units: { readonly [unit: string]: number } = {}) => {
      flushes += 1;
      const day = dayOf(platform.nowMs);
      const used = { calls: 1, runMs, gpuMs: 0, bytesIn: 0, bytesOut: 0, units };
      const of = { deploymentId: "summarizer-id", day, endpoint: "e", tokenId: "t1" };
      const rows = [{ ...of, ...used }];
      return hosting.addUsage({ recorder: "one", sequence: flushes, day, rows });
    },
    /** The name of the budget that refuses; undefined: nothing does. */
    refusal: (kind: "api" | "task" = "api", tokenId: string | undefined = "t1", of = {}) => {
      const called = { organizationId, name: "summarizer", ...of };
      return budgets.refusal(called, kind, tokenId);
    },
  };
}

it("refuses with 429, when the budget is whole again, and what a client reads", async () => {
  const node = await open();
  await node.create("gpu-day");
  await node.use(9_000);
  await node.look();
  expect(node.refusal()).toBeUndefined();
  await node.use(1_000);
  node.platform.nowMs += 10_000;
  await node.look();
  const refused = node.refusal();
  expect(refused).toMatchObject({
    reason: "BUDGET_SPENT",
    code: Code.ResourceExhausted,
    rawMessage:
      "the budget gpu-day of 10 run_seconds a day is spent: try again after 2026-11-16T00:00:00.000Z, or let an admin of the organization raise it (tessera budget update gpu-day AMOUNT)",
    retryAfterMs: 3_600_000,
  });
  expect(refused?.metadata.get("retry-after")).toBe("3600");
  expect(refused?.metadata.get("ratelimit-policy")).toBe('"gpu-day";q=10;w=86400');
  expect(refused?.metadata.get("ratelimit")).toBe('"gpu-day";r=0;t=43190');
});

it("is over with its period, without a question, and says so in its last hour", async () => {
  const node = await open();
  await node.create("day", { amount: 1 });
  await node.create("month", { amount: 0, measure: "gpu_seconds", period: "month" });
  await node.use(1_000);
  node.platform.nowMs = startOfDay(dayOf(NOW_MS) + 1) - 60_000;
  await node.look();
  const asked = node.asked();
  expect(node.refusal()).toMatchObject({ retryAfterMs: 60_000 });
  node.platform.nowMs += 60_000;
  const month = node.refusal();
  expect(month?.metadata.get("ratelimit-policy")).toBe('"month";q=0;w=2592000');
  expect(node.asked()).toBe(asked);
});

it("bounds its measure, its deployment and its token, and nothing of others", async () => {
  const node = await open();
  const { deployment, tokenId } = { deployment: "summarizer", tokenId: "t1" };
  const other = { name: "other" };
  const foreign = { organizationId: "another" };
  for (const [scope, [api, task, ofOther, withoutToken]] of [
    [{ measure: "calls" }, [true, false, true, true]],
    [{ measure: "tasks", amount: 0 }, [false, true, false, false]],
    [{ measure: "pages" }, [true, true, true, true]],
    [{ deployment }, [true, true, false, true]],
    [{ tokenId }, [true, true, true, false]],
    [{ deployment, tokenId }, [true, true, false, false]],
  ] as const) {
    const { platform } = node;
    await node.use(1, { pages: 1 });
    await node.create("one", { amount: 0.001, ...scope });
    await node.look();
    const refusals = [
      node.refusal(),
      node.refusal("task"),
      node.refusal("api", "t1", other),
      // A parameter that is undefined has its default.
      node.refusal("api", ""),
    ];
    expect(refusals.map((one) => one !== undefined)).toEqual([api, task, ofOther, withoutToken]);
    expect(node.refusal("api", "t1", foreign)).toBeUndefined();
    const { organizationId } = platform;
    await platform.hosting.deleteBudget({ ...platform.deed(), organizationId, name: "one" });
  }
});

it("is asked for when it is changed", async () => {
  const node = await open();
  const { platform } = node;
  const { organizationId } = platform;
  await node.look();
  expect(node.refusal()).toBeUndefined();
  await node.create("none", { amount: 0 });
  expect(node.change("token")).toBe(false);
  expect(node.change("deployment")).toBe(true);
  await node.look();
  expect(node.refusal()).toMatchObject({ reason: "BUDGET_SPENT" });
  const key = { organizationId, name: "none" };
  await platform.hosting.updateBudget({ ...platform.deed(), ...key, amount: 1, version: 1 });
  expect(node.change("deployment")).toBe(true);
  await node.look();
  expect(node.refusal()).toBeUndefined();
});

it("stays as it was known while the database is away", async () => {
  const node = await open();
  await node.create("none", { amount: 0 });
  await node.look();
  node.away();
  await node.look();
  expect(node.refusal()).toMatchObject({ reason: "BUDGET_SPENT" });
});
