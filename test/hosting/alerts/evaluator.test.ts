/** Every kind of rule on real databases: each fires once and clears once, whichever node looks. */
import { describe, expect, it } from "vitest";
import type { Evaluator } from "../../../src/hosting/alerts/evaluator.ts";
import { Readings } from "../../../src/hosting/alerts/readings.ts";
import { TaskTally } from "../../../src/metrics/history/task-tally.ts";
import { dayOf, startOfDay } from "../../../src/storage/days.ts";
import type { AlertKind, AlertMessage } from "../../../src/storage/hosting/alerts.ts";
import type { DeploymentReport, NodeFacts } from "../../../src/storage/hosting/nodes.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { newTask } from "../../storage/fixtures.ts";
import { HostingPlatform } from "../../storage/hosting/fixtures.ts";
import { newSchema, openPostgres } from "../../storage/postgres/databases.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { evaluatorOn, type Measured, restarted } from "./evaluators.ts";

const DEPLOYMENT = "summarizer-id";
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const FACTS: NodeFacts = {
  ...{ version: "0.1.0", sandbox: "kernel", workers: 0, maxWorkers: 1, memoryBytes: 0 },
  ...{ maxMemoryBytes: 1, waiting: 0, freeDiskBytes: 50, diskBytes: 100 },
};

/** A platform with a deployment, a rule for one kind, and two nodes that evaluate in turn. */
class Setting implements AsyncDisposable {
  readonly platform: HostingPlatform;
  readonly #resources: AsyncDisposableStack;
  #measured: Measured = { failed: 0, succeeded: 90, restarts: 0 };

  static async open(opening: Promise<Storage> = openSqlite(":memory:")): Promise<Setting> {
    const resources = new AsyncDisposableStack();
    const storage = resources.use(await opening);
    const platform = await HostingPlatform.on(storage);
    await platform.deploy(["one"]);
    return new Setting(platform, resources);
  }

  private constructor(platform: HostingPlatform, resources: AsyncDisposableStack) {
    this.platform = platform;
    this.#resources = resources;
  }

  get of() {
    const { organizationId } = this.platform;
    return { organizationId, deploymentId: organizationId };
  }

  /** What nodes have measured within ten minutes. */
  measured({ failed = 0, succeeded = 90, restarts = 0 }): void {
    this.#measured = { failed, succeeded, restarts };
  }

  /** A node of which nothing runs but what is called; `onFailures` is called when it counts them. */
  node({ onFailures = () => {} }: { onFailures?(): void } = {}): Evaluator {
    const { platform } = this;
    return this.#resources.use(
      evaluatorOn(platform.storage, {
        now: () => platform.nowMs,
        newId: () => platform.newId("id"),
        measured: () => this.#measured,
        onFailures,
      }),
    );
  }

  async rule(kind: AlertKind, threshold: number, deployments: readonly string[] = []) {
    const { platform } = this;
    const { organizationId } = platform;
    await platform.hosting.createWebhook({
      ...{ ...platform.deed(), ...this.of, name: "app", webhookId: platform.newId("webhook") },
      ...{ url: "https://example.com", ends: [], endpoint: "", namedOnly: false, limit: 1 },
      sealed: "sealed",
    });
    await platform.hosting.createAlertRule({
      ...{ ...platform.deed(), organizationId, name: "rule", ruleId: "rule-id", kind, threshold },
      ...{ deployments, receivers: ["app"], holdMs: MINUTE_MS, limit: 1 },
    });
  }

  /** What was told, oldest first. */
  async told(): Promise<string[]> {
    const { hosting } = this.platform;
    const { items } = await hosting.listDeliveries({ ...this.of, limit: 100 });
    const lines: string[] = [];
    for (const { deliveryId } of items.reverse()) {
      const read = await hosting.getDelivery({ ...this.of, deliveryId });
      const { type, data } = JSON.parse(read?.body ?? "{}") as AlertMessage;
      lines.push(...data.alerts.map(({ subject, text }) => `${type} ${subject}: ${text}`));
    }
    return lines;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

interface Case {
  readonly kind: AlertKind;
  readonly threshold: number;
  /** Makes the condition true, or no longer. */
  readonly set: (setting: Setting, isTrue: boolean) => Promise<void> | void;
  readonly subject: string;
  readonly text: string;
}

const report = ({ organizationId }: HostingPlatform, status: "degraded" | "ready") =>
  ({
    ...{ organizationId, deploymentId: DEPLOYMENT, status, revision: 1, targetRevision: 1 },
    ...{ version: 1, workers: 1, reason: status === "ready" ? "" : "no GPU\nlines that it wrote" },
  }) satisfies DeploymentReport;

const beat = async ({ platform }: Setting, freeDiskBytes: number): Promise<void> => {
  const { hosting, nowMs } = platform;
  const facts = { ...FACTS, freeDiskBytes };
  await hosting.beat({ nodeId: "one", nowMs, ttlMs: DAY_MS, facts });
};

const CASES: readonly Case[] = [
  {
    kind: "oldest_task_waits",
    threshold: 300,
    set: async ({ platform }, isTrue) => {
      const { storage, nowMs } = platform;
      const key = { deploymentId: DEPLOYMENT, taskId: "old" };
      if (isTrue) {
        const dueAtMs = nowMs - 6 * MINUTE_MS;
        const times = { createdAtMs: dueAtMs, runAtMs: dueAtMs, expiresAtMs: nowMs + DAY_MS };
        await storage.submitTasks({ tasks: [newTask("old", { ...key, ...times })] });
      } else {
        await storage.cancelTask({ ...key, nowMs });
      }
    },
    subject: "deployment summarizer",
    text: "the oldest task waits for 9 min: work is paused",
  },
  {
    kind: "failures",
    threshold: 5,
    // Two of two are all, and no trend.
    set: (setting, isTrue) =>
      setting.measured(isTrue ? { failed: 10 } : { failed: 2, succeeded: 0 }),
    subject: "deployment summarizer",
    text: "10 of 100 tasks failed in ten minutes (10 %)",
  },
  {
    kind: "deployment_degraded",
    threshold: 0,
    set: async (setting, isTrue) => {
      await beat(setting, 50);
      const { hosting, nowMs } = setting.platform;
      const reports = [report(setting.platform, isTrue ? "degraded" : "ready")];
      await hosting.reportDeployments({ nowMs, nodeId: "one", reports });
    },
    subject: "deployment summarizer",
    text: "it is degraded: no GPU",
  },
  {
    kind: "worker_restarts",
    threshold: 3,
    set: (setting, isTrue) => setting.measured({ restarts: isTrue ? 4 : 3 }),
    subject: "deployment summarizer",
    text: "workers were restarted 4 times in ten minutes",
  },
  {
    kind: "disk_free",
    threshold: 10,
    set: (setting, isTrue) => beat(setting, isTrue ? 9 : 11),
    subject: "node one",
    text: "9 % of its disk is free",
  },
  {
    kind: "token_ends",
    threshold: 7,
    set: async ({ platform }, isTrue) => {
      const { accounts, organizationId } = platform;
      if (isTrue) {
        const expiresAtMs = Date.UTC(2027, 0, 20);
        await platform.token(organizationId, { fields: { name: "ci", expiresAtMs } });
        await platform.token(organizationId, { fields: { name: "long" } });
      } else {
        const { items } = await accounts.listTokens({
          ...{ organizationId, viewerId: undefined, limit: 10 },
        });
        const tokenId = items.find(({ name }) => name === "ci")?.tokenId;
        if (tokenId !== undefined) {
          await accounts.deleteToken({ ...platform.deed(), organizationId, tokenId });
        }
      }
    },
    subject: "token ci",
    text: "it ends at 2027-01-20 00:00 UTC",
  },
  {
    kind: "webhook_off",
    threshold: 0,
    set: async ({ platform }, isTrue) => {
      const { hosting, organizationId } = platform;
      const key = { organizationId, deploymentId: DEPLOYMENT, name: "hook" };
      await hosting.createWebhook({
        ...{ ...platform.deed(), ...key, webhookId: "hook-id", sealed: "sealed", limit: 1 },
        ...{ url: "https://example.com", ends: ["failure"], endpoint: "", namedOnly: false },
      });
      await hosting.updateWebhook({ ...platform.deed("ada"), ...key, enabled: !isTrue });
    },
    subject: "webhook hook of summarizer",
    text: "it is disabled: disabled by ada",
  },
  {
    kind: "budget_used",
    threshold: 80,
    set: ({ platform }, isTrue) => budget(platform, isTrue ? 5 : 100),
    subject: "budget month",
    text: "80 % of 5 calls a month are used",
  },
];

/** A budget, of which four calls are used. */
async function budget(platform: HostingPlatform, amount: number): Promise<void> {
  const { hosting, organizationId, nowMs } = platform;
  const used = { runMs: 0, gpuMs: 0, bytesIn: 0, bytesOut: 0, units: {} };
  const row = { ...used, deploymentId: DEPLOYMENT, endpoint: "e", tokenId: "", calls: 4 };
  const day = dayOf(nowMs);
  const rows = [{ ...row, day }];
  await hosting.addUsage({ recorder: "one", sequence: 1, day, rows });
  const key = { organizationId, name: "month" };
  await hosting.createBudget({
    ...{ ...platform.deed(), ...key, budgetId: "month-id", measure: "calls", period: "month" },
    ...{ amount, deployment: "", tokenId: "", limit: 1 },
  });
  await hosting.updateBudget({ ...platform.deed(), ...key, amount, version: 0 });
}

const DATABASES = [
  { database: "SQLite", open: () => openSqlite(":memory:") },
  {
    database: "Postgres",
    open: () => openPostgres({ schema: newSchema(), leaseClock: "caller" }),
  },
] as const;

describe.each(DATABASES)("the evaluator of alert rules on $database", ({ open }) => {
  it.each(CASES)(
    "fires and clears $kind once, though a node dies that has taken it",
    async ({ kind, threshold, set, subject, text }) => {
      await using setting = await Setting.open(open());
      const { platform } = setting;
      await set(setting, false);
      await setting.rule(kind, threshold);
      const nodes = [setting.node(), setting.node()] as const;
      const minute = async (node: Evaluator) => {
        platform.nowMs += MINUTE_MS;
        await node.evaluate();
      };
      await minute(nodes[0]);
      await set(setting, true);
      await minute(nodes[0]);
      // A node takes the rule, and dies before it records anything; the other one is late for it.
      platform.nowMs += MINUTE_MS;
      const { hosting, nowMs } = platform;
      await hosting.takeAlertRules({ claim: "dead", nowMs, ttlMs: MINUTE_MS, limit: 1 });
      await nodes[1].evaluate();
      expect(await setting.told()).toEqual([]);
      for (const node of [nodes[1], nodes[0], nodes[1]]) {
        await minute(node);
      }
      const [fired, ...more] = await setting.told();
      expect(fired).toBe(`alert.firing ${subject}: ${text}`);
      expect(more).toEqual([]);
      await set(setting, false);
      for (const node of [nodes[0], nodes[1], nodes[0], nodes[1]]) {
        await minute(node);
      }
      const told = await setting.told();
      expect(told).toHaveLength(2);
      expect(told[1]).toMatch(new RegExp(`^alert\\.cleared ${subject}: `));
      const { organizationId } = platform;
      expect(await hosting.listAlerts({ organizationId, state: "firing", limit: 9 })).toMatchObject(
        {
          items: [],
        },
      );
    },
  );
});

it("tells of a budget at 80 % and when it is spent, once in a period", async () => {
  await using setting = await Setting.open();
  const { platform } = setting;
  const { hosting, organizationId } = platform;
  await budget(platform, 5);
  await setting.rule("budget_used", 80);
  const node = setting.node();
  const minutes = async (count: number) => {
    for (let minute = 0; minute < count; minute += 1) {
      platform.nowMs += MINUTE_MS;
      await node.evaluate();
    }
  };
  await minutes(4);
  const text = "alert.firing budget month: 80 % of 5 calls a month are used";
  expect(await setting.told()).toEqual([text]);
  await budget(platform, 4);
  await minutes(6);
  const { toDay } = (await hosting.listBudgets({ organizationId, nowMs: platform.nowMs }))[0] ?? {
    toDay: 0,
  };
  const end = `${new Date(startOfDay(toDay)).toISOString().slice(0, 10)} 00:00 UTC`;
  const spent = `alert.firing budget month: it is spent: what it bounds is refused until ${end}`;
  expect(await setting.told()).toEqual([text, spent]);
  platform.nowMs = startOfDay(toDay);
  await minutes(4);
  const told = await setting.told();
  const cleared = "alert.cleared budget month";
  expect(told.slice(2).map((one) => one.split(":")[0])).toEqual([cleared, cleared]);
});

it("leaves rules that it has not come to, when its node stops, to the next minute", async () => {
  await using setting = await Setting.open();
  const { platform } = setting;
  const { hosting, organizationId } = platform;
  for (const name of ["one", "two"]) {
    await hosting.createAlertRule({
      ...{ ...platform.deed(), organizationId, name, ruleId: name, kind: "failures", threshold: 5 },
      ...{ deployments: [], receivers: [], holdMs: MINUTE_MS, limit: 2 },
    });
  }
  const evaluated = async () =>
    (await hosting.listAlertRules({ organizationId })).filter((rule) => rule.evaluatedAtMs).length;
  const stopped = Promise.withResolvers<void>();
  const stopping = setting.node({
    onFailures: () => stopped.resolve(stopping[Symbol.asyncDispose]()),
  });
  await stopping.evaluate();
  await stopped.promise;
  expect(await evaluated()).toBe(1);
  platform.nowMs += MINUTE_MS;
  await setting.node().evaluate();
  expect(await evaluated()).toBe(2);
});

describe("the readings of one moment", () => {
  it("ask once for what several rules look at", async () => {
    await using setting = await Setting.open();
    const { platform } = setting;
    const { storage, hosting, organizationId, nowMs } = platform;
    await beat(setting, 9);
    const reports = [report(platform, "degraded")];
    await hosting.reportDeployments({ nowMs, nodeId: "one", reports });
    const asked: string[] = [];
    const counting = <Asked, Answer>(what: string, read: (asked: Asked) => Answer) => {
      return (parameters: Asked): Answer => {
        asked.push(what);
        return read(parameters);
      };
    };
    const readings = new Readings(
      {
        ...{ accounts: storage.accounts, storage, whyQueued: () => undefined },
        hosting: {
          describeDeployments: counting("states", (one) => hosting.describeDeployments(one)),
          listNodes: counting("nodes", (one) => hosting.listNodes(one)),
          listEndingTokens: (one) => hosting.listEndingTokens(one),
          listWebhooksOff: (one) => hosting.listWebhooksOff(one),
          listBudgets: (one) => hosting.listBudgets(one),
        },
        history: {
          tasks: async () => ({ fromMs: 0, toMs: nowMs, tally: new TaskTally() }),
          read: counting("restarts", async () => restarted(4)),
        },
      },
      { organizationId, nowMs, signal: new AbortController().signal },
    );
    const rule = { organizationId, name: "rule", ruleId: "rule-id", createdAtMs: 0, atMs: nowMs };
    for (const deployments of [[], ["summarizer"], ["other"]]) {
      const found: number[] = [];
      for (const kind of ["deployment_degraded", "worker_restarts", "disk_free"] as const) {
        found.push((await readings.of({ ...rule, kind, deployments, threshold: 3 })).length);
        found.push((await readings.of({ ...rule, kind, deployments, threshold: 10 })).length);
      }
      const isOther = deployments.includes("other");
      expect(found).toEqual(isOther ? [0, 0, 0, 0, 0, 1] : [1, 1, 1, 0, 0, 1]);
    }
    expect(asked).toEqual(["states", "restarts", "restarts", "nodes"]);
  });
});
