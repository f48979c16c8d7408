import { expect } from "vitest";
import type { AlertMessage, Finding } from "../../../../src/storage/hosting/alerts.ts";
import type { HostingStorage } from "../../../../src/storage/hosting/hosting.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const MINUTE_MS = 60_000;
const URL = "https://tessera.example.com";

type NewRule = Parameters<HostingStorage["createAlertRule"]>[0];
type Changes = Partial<Parameters<HostingStorage["updateAlertRule"]>[0]>;

function found(...names: readonly string[]): Finding[] {
  return names.map((name) => ({
    subject: `deployment/${name}`,
    name: `deployment ${name}`,
    text: "it is degraded",
  }));
}

/** A platform with two receivers, and short ways to rules. */
class Rules {
  readonly platform: HostingPlatform;

  static async on(platform: HostingPlatform): Promise<Rules> {
    const rules = new Rules(platform);
    await rules.receiver("app");
    await rules.receiver("ops", { kind: "mail", url: "mailto:ops@example.com" });
    return rules;
  }

  private constructor(platform: HostingPlatform) {
    this.platform = platform;
  }

  get #organization() {
    return { organizationId: this.platform.organizationId };
  }

  get key() {
    const { organizationId } = this.platform;
    return { organizationId, deploymentId: organizationId };
  }

  receiver(name: string, rest: Partial<Parameters<HostingStorage["createWebhook"]>[0]> = {}) {
    return this.platform.hosting.createWebhook({
      ...this.platform.deed("ada@example.com"),
      ...{ ...this.key, name, webhookId: this.platform.newId("webhook"), sealed: "sealed" },
      ...{ url: `https://${name}.example.com/hidden`, ends: [], endpoint: "", namedOnly: false },
      limit: 3,
      ...rest,
    });
  }

  create(name: string, rest: Partial<NewRule> = {}) {
    return this.platform.hosting.createAlertRule({
      ...this.platform.deed("ada@example.com"),
      ...{ ...this.#organization, name, ruleId: `${name}-id`, kind: "deployment_degraded" },
      ...{ threshold: 0, deployments: [], receivers: ["app", "ops"], holdMs: 2 * MINUTE_MS },
      limit: 3,
      ...rest,
    });
  }

  update(name: string, changes: Changes) {
    return this.platform.hosting.updateAlertRule({
      ...{ ...this.platform.deed(), ...this.#organization, name, platformUrl: URL },
      ...changes,
    });
  }

  delete(name: string) {
    return this.platform.hosting.deleteAlertRule({
      ...{ ...this.platform.deed(), ...this.#organization, name, platformUrl: URL },
    });
  }

  async take(claim: string) {
    const { hosting, nowMs } = this.platform;
    return await hosting.takeAlertRules({ claim, nowMs, ttlMs: MINUTE_MS, limit: 10 });
  }

  record(
    ruleId: string,
    findings: readonly Finding[],
    { claim, nowMs = this.platform.nowMs }: { readonly claim: string; readonly nowMs?: number },
  ) {
    return this.platform.hosting.recordAlerts({
      ...{ ...this.#organization, ruleId, claim, nowMs, found: findings, platformUrl: URL },
      ...{ limit: 1_000, newId: this.platform.newId("alert") },
    });
  }

  /** What a node does in the next minute: takes the one rule, and records what it has found. */
  async minute(...names: readonly string[]) {
    this.platform.nowMs += MINUTE_MS;
    const claim = this.platform.newId("claim");
    const [rule] = await this.take(claim);
    if (rule === undefined) {
      throw new Error("no rule is due");
    }
    return await this.record(rule.ruleId, found(...names), { claim });
  }

  /** The messages, oldest first, as `receiver: type subjects`. */
  async told(): Promise<string[]> {
    const { items } = await this.platform.hosting.listDeliveries({ ...this.key, limit: 100 });
    const lines: string[] = [];
    for (const { deliveryId, webhook, alert } of items.reverse()) {
      const read = await this.platform.hosting.getDelivery({ ...this.key, deliveryId });
      const message = JSON.parse(read?.body ?? "{}") as AlertMessage;
      expect(message.type).toBe(`alert.${alert}`);
      const subjects = message.data.alerts.map(({ subject }) => subject.replace("deployment ", ""));
      lines.push(`${webhook}: ${message.type} ${subjects.join(" ")}`);
    }
    return lines;
  }

  async alerts() {
    const { items } = await this.platform.hosting.listAlerts({ ...this.#organization, limit: 100 });
    return items;
  }
}

export function alertsContract(it: It): void {
  it("have rules that are created up to a number, listed, changed and deleted, each in the audit log", async (platform) => {
    const { hosting, organizationId } = platform;
    expect(await hosting.usesAlerts({})).toBe(false);
    const rules = await Rules.on(platform);
    expect(await rules.create("b")).toMatchObject({
      outcome: "created",
      rule: { name: "b", receivers: ["app", "ops"], firing: 0, disabled: false },
    });
    expect(await hosting.usesAlerts({})).toBe(true);
    expect(await rules.create("b")).toEqual({ outcome: "name_taken" });
    const unknown = { outcome: "receiver_unknown", receiver: "gone" };
    expect(await rules.create("a", { receivers: ["app", "gone"] })).toEqual(unknown);
    await rules.create("a", { threshold: 2.5, kind: "failures", deployments: ["ocr"] });
    await rules.create("c");
    expect(await rules.create("d")).toEqual({ outcome: "limit" });
    expect(await hosting.listAlertRules({ organizationId })).toMatchObject([
      { name: "a", kind: "failures", threshold: 2.5, deployments: ["ocr"] },
      { name: "b" },
      { name: "c" },
    ]);
    expect(await hosting.listAlertRules({ organizationId: "another" })).toEqual([]);
    const changed = { threshold: 7, receivers: ["ops"], holdMs: 3 * MINUTE_MS };
    expect(await rules.update("a", changed)).toMatchObject({
      outcome: "updated",
      rule: { ...changed, deployments: ["ocr"], version: 2 },
    });
    expect(await rules.update("a", { threshold: 8, version: 1 })).toEqual({
      outcome: "version_conflict",
    });
    expect(await rules.update("a", { enabled: true, version: 2 })).toMatchObject({
      rule: { threshold: 7, version: 3 },
    });
    expect(await rules.update("a", { receivers: ["gone"] })).toEqual(unknown);
    expect(await rules.update("x", changed)).toEqual({ outcome: "not_found" });
    expect(await rules.update("a", { silencedUntilMs: platform.nowMs + 5_000 })).toMatchObject({
      rule: { silencedUntilMs: platform.nowMs + 5_000, threshold: 7, version: 3 },
    });
    expect(await rules.delete("a")).toBe(true);
    expect(await rules.delete("a")).toBe(false);
    const actions = (await platform.audit(organizationId)).map(({ action }) => action);
    expect(actions.slice(0, 8)).toEqual([
      "alert_rule.delete",
      "alert_rule.silence",
      ...Array(2).fill("alert_rule.update"),
      ...Array(3).fill("alert_rule.create"),
      "alert_receiver.create",
    ]);
  });

  it("move a receiver to another address with what it was told, and send that again", async (platform) => {
    const { hosting } = platform;
    const rules = await Rules.on(platform);
    await rules.create("slow", { receivers: ["app"], holdMs: MINUTE_MS });
    await rules.minute("one");
    await rules.minute("one");
    const [before] = await hosting.listWebhooks(rules.key);
    const { webhookId = "" } = before ?? {};
    const move = (changes: Partial<Parameters<HostingStorage["updateWebhook"]>[0]>) =>
      hosting.updateWebhook({
        ...{ ...platform.deed(), ...rules.key, name: "app", webhookId },
        ...changes,
      });
    const [url, sealed] = ["https://new.example.com/", "sealed anew"];
    expect(await move({ url, version: 2 })).toEqual({ outcome: "version_conflict" });
    // Another receiver has the name by now.
    expect(await move({ url, webhookId: "other" })).toEqual({ outcome: "version_conflict" });
    expect(await move({ url, version: 1 })).toMatchObject({
      outcome: "updated",
      webhook: { webhookId, url, version: 2, waiting: 1 },
    });
    const named = { ...rules.key, name: "app" };
    expect(await hosting.getSealedWebhook(named)).toMatchObject({ sealed: "sealed" });
    await move({ sealed });
    expect(await hosting.getSealedWebhook(named)).toMatchObject({ sealed });
    const take = (claim: string) =>
      hosting.takeDeliveries({
        ...{ claim, nowMs: platform.nowMs, ttlMs: MINUTE_MS, limit: 10, perWebhook: 10 },
        ...{ withoutOrganizations: [], withoutWebhooks: [] },
      });
    const [taken] = await take("first");
    const { deliveryId = "" } = taken ?? {};
    expect(taken).toMatchObject({ webhookId, url, sealed });
    const answers = [{ atMs: platform.nowMs, tookMs: 1, status: 500, text: "no", error: "" }];
    await hosting.recordDelivery({
      ...{ ...rules.key, webhookId, deliveryId, claim: "first", nowMs: platform.nowMs },
      ...{ state: "failed", nextInMs: 0, answers, body: taken?.body ?? "", pausesMs: [0] },
    });
    const again = { ...platform.deed(), ...rules.key, deliveryId };
    expect(await hosting.redeliver(again)).toMatchObject({
      outcome: "again",
      delivery: { state: "waiting", answers, attempts: 0 },
    });
    expect(await take("second")).toMatchObject([{ deliveryId, url, body: taken?.body }]);
    const [event] = await platform.audit(rules.key.organizationId);
    expect(event).toMatchObject({ action: "alert_receiver.redeliver", subject: "app" });
  });

  it("keep a receiver that a rule tells, and let it be deleted once none does", async (platform) => {
    const { hosting, organizationId } = platform;
    const rules = await Rules.on(platform);
    await rules.create("slow", { receivers: ["app"] });
    const remove = (name: string) =>
      hosting.deleteAlertReceiver({ ...platform.deed(), organizationId, name });
    expect(await remove("gone")).toEqual({ outcome: "not_found" });
    expect(await remove("app")).toEqual({ outcome: "in_use", rule: "slow" });
    // Whichever is first, no rule tells a receiver that is gone.
    const [changed, removed] = await Promise.all([
      rules.update("slow", { receivers: ["app", "ops"] }),
      remove("ops"),
    ]);
    expect([changed.outcome, removed.outcome]).toBeOneOf([
      ["updated", "in_use"],
      ["receiver_unknown", "deleted"],
    ]);
    await rules.delete("slow");
    expect(await remove("app")).toEqual({ outcome: "deleted" });
    expect((await hosting.listWebhooks(rules.key)).map(({ name }) => name)).not.toContain("app");
    const actions = (await platform.audit(organizationId)).map(({ action }) => action);
    expect(actions.slice(0, 2)).toEqual(["alert_receiver.delete", "alert_rule.delete"]);
  });

  it("fire and clear once each, when it has held for long enough", async (platform) => {
    const rules = await Rules.on(platform);
    await rules.create("degraded");
    expect(await rules.minute("one")).toEqual({ fired: 0, cleared: 0 });
    expect(await rules.minute("one")).toEqual({ fired: 0, cleared: 0 });
    expect(await rules.alerts()).toEqual([]);
    expect(await rules.minute("one")).toEqual({ fired: 1, cleared: 0 });
    expect(await rules.minute("one")).toEqual({ fired: 0, cleared: 0 });
    expect(await rules.alerts()).toMatchObject([
      { rule: "degraded", name: "deployment one", clearedAtMs: undefined },
    ]);
    const fired = ["app: alert.firing one", "ops: alert.firing one"];
    expect((await rules.told()).sort()).toEqual(fired);
    await rules.minute();
    await rules.minute();
    expect(await rules.minute()).toEqual({ fired: 0, cleared: 1 });
    expect(await rules.minute()).toEqual({ fired: 0, cleared: 0 });
    const [alert] = await rules.alerts();
    expect(alert?.clearedAtMs).toBe(platform.nowMs - MINUTE_MS);
    expect((await rules.told()).sort()).toEqual([
      "app: alert.cleared one",
      ...["app: alert.firing one", "ops: alert.cleared one", "ops: alert.firing one"],
    ]);
    const { hosting } = platform;
    const [taken] = await hosting.takeDeliveries({
      ...{ claim: "d", nowMs: platform.nowMs, ttlMs: MINUTE_MS, limit: 1, perWebhook: 1 },
      ...{ withoutOrganizations: [], withoutWebhooks: [] },
    });
    expect(taken).toMatchObject({ organization: "acme", deployment: "", end: undefined });
    expect(taken?.body).toContain("alert.firing");
  });

  it("are told together, however many fire at once", async (platform) => {
    const rules = await Rules.on(platform);
    await rules.create("degraded", { receivers: ["app"] });
    const names = Array.from({ length: 500 }, (_, index) => `d${String(index).padStart(4, "0")}`);
    for (let minute = 0; minute < 3; minute += 1) {
      await rules.minute(...names);
    }
    expect(await rules.alerts()).toHaveLength(100);
    const { items } = await platform.hosting.listDeliveries({ ...rules.key, limit: 10 });
    expect(items).toHaveLength(1);
    const [delivery] = items;
    const deliveryId = delivery?.deliveryId ?? "";
    const read = await platform.hosting.getDelivery({ ...rules.key, deliveryId });
    const { data } = JSON.parse(read?.body ?? "") as AlertMessage;
    expect(data.alerts).toHaveLength(20);
    expect(data.more).toBe(480);
    expect(data).toMatchObject({
      organization: "acme",
      rule: "degraded",
      url: `${URL}/o/acme/alerts`,
    });
  });

  it("that flap are told of at most once for their hold time", async (platform) => {
    const rules = await Rules.on(platform);
    await rules.create("degraded", { receivers: ["app"] });
    for (let minute = 0; minute < 20; minute += 1) {
      await rules.minute(...(minute % 2 === 0 ? ["one"] : []));
    }
    expect(await rules.told()).toEqual([]);
    for (let minute = 0; minute < 3; minute += 1) {
      await rules.minute("one");
    }
    for (let minute = 0; minute < 20; minute += 1) {
      await rules.minute(...(minute % 2 === 0 ? [] : ["one"]));
    }
    expect(await rules.told()).toEqual(["app: alert.firing one"]);
  });

  it("are recorded by one node: of one that was overtaken nothing is, and one that dies delays them", async (platform) => {
    const rules = await Rules.on(platform);
    await rules.create("degraded", { receivers: ["app"], holdMs: MINUTE_MS });
    const { nowMs } = platform;
    expect(await rules.take("first")).toMatchObject([{ name: "degraded", atMs: nowMs }]);
    expect(await rules.take("second")).toEqual([]);
    // The first node is gone, or slow, for a minute.
    platform.nowMs += MINUTE_MS;
    expect(await rules.take("second")).toHaveLength(1);
    expect(
      await rules.record("degraded-id", found("one"), { claim: "first", nowMs }),
    ).toBeUndefined();
    expect(await rules.record("degraded-id", found("one"), { claim: "second" })).toBeDefined();
    expect(await rules.record("degraded-id", found("one"), { claim: "second" })).toBeUndefined();
    expect(await rules.minute("one")).toEqual({ fired: 1, cleared: 0 });
    // What was taken before the rule changed, is not recorded.
    platform.nowMs += MINUTE_MS;
    await rules.take("third");
    await rules.update("degraded", { threshold: 1 });
    expect(await rules.record("degraded-id", [], { claim: "third" })).toBeUndefined();
    expect(await rules.told()).toEqual(["app: alert.firing one"]);
  });

  it("are told after a silence if they fire still, and not at all if they do not", async (platform) => {
    const rules = await Rules.on(platform);
    await rules.create("degraded", { receivers: ["app"], holdMs: MINUTE_MS });
    await rules.minute("told");
    await rules.minute("told");
    await rules.update("degraded", { silencedUntilMs: platform.nowMs + 10 * MINUTE_MS });
    for (let minute = 0; minute < 3; minute += 1) {
      await rules.minute("short", "long");
    }
    for (let minute = 0; minute < 3; minute += 1) {
      await rules.minute("long");
    }
    expect(await rules.alerts()).toHaveLength(3);
    expect(await rules.told()).toEqual(["app: alert.firing told"]);
    platform.nowMs += 4 * MINUTE_MS;
    await rules.minute("long");
    expect((await rules.told()).sort()).toEqual([
      "app: alert.cleared told",
      "app: alert.firing long",
      "app: alert.firing told",
    ]);
  });

  it("clear when their rule is disabled or deleted, which is told", async (platform) => {
    const rules = await Rules.on(platform);
    await rules.create("degraded", { receivers: ["app"], holdMs: MINUTE_MS });
    await rules.minute("one");
    await rules.minute("one", "waits");
    expect(await rules.update("degraded", { enabled: false })).toMatchObject({
      rule: { disabled: true, firing: 0 },
    });
    platform.nowMs += 5 * MINUTE_MS;
    expect(await rules.take("claim")).toEqual([]);
    await rules.update("degraded", { enabled: true });
    await rules.minute("two");
    await rules.minute("two");
    expect(await platform.hosting.listAlertRules(rules.key)).toMatchObject([{ firing: 1 }]);
    await rules.delete("degraded");
    expect((await rules.told()).sort()).toEqual([
      ...["app: alert.cleared one", "app: alert.cleared two"],
      ...["app: alert.firing one", "app: alert.firing two"],
    ]);
    const all = await rules.alerts();
    expect(all.map(({ clearedAtMs }) => clearedAtMs)).not.toContain(undefined);
    const { hosting, nowMs } = platform;
    expect(await hosting.pruneAlerts({ beforeMs: nowMs + 1, limit: 1 })).toBe(1);
    expect(await hosting.pruneAlerts({ beforeMs: nowMs + 1, limit: 10 })).toBe(1);
    expect(await hosting.usesAlerts({})).toBe(false);
  });

  it("are listed in pages, of a rule and of those that fire", async (platform) => {
    const rules = await Rules.on(platform);
    const { hosting, organizationId } = platform;
    await rules.create("degraded", { receivers: [], holdMs: MINUTE_MS });
    await rules.minute("a", "b", "c");
    await rules.minute("a", "b", "c");
    await rules.minute("c");
    await rules.minute("c", "d", "e");
    const names: string[] = [];
    let after: string | undefined;
    do {
      const query = { organizationId, limit: 1, ...(after !== undefined && { after }) };
      const page = await hosting.listAlerts(query);
      names.push(...page.items.map(({ name }) => name));
      after = page.next;
    } while (after !== undefined);
    expect(names).toEqual(["deployment c", "deployment b", "deployment a"]);
    const firing = await hosting.listAlerts({ organizationId, limit: 9, state: "firing" });
    expect(firing.items.map(({ name }) => name)).toEqual(["deployment c"]);
    const pending: string[] = [];
    do {
      const query = { organizationId, limit: 1, state: "pending" as const };
      const page = await hosting.listAlerts({ ...query, ...(after !== undefined && { after }) });
      pending.push(...page.items.map(({ name, firedAtMs }) => `${name} ${firedAtMs}`));
      after = page.next;
    } while (after !== undefined);
    expect(pending).toEqual(["deployment e undefined", "deployment d undefined"]);
    expect(await hosting.listAlertRules(rules.key)).toMatchObject([{ firing: 1, pending: 2 }]);
    const none = await hosting.listAlerts({ organizationId, limit: 9, rule: "other" });
    expect(none.items).toEqual([]);
    expect(await rules.told()).toEqual([]);
  });

  it("find tokens that end, and webhooks that are off", async (platform) => {
    const rules = await Rules.on(platform);
    const { hosting, organizationId, nowMs } = platform;
    await platform.deploy(["one"]);
    const of = { organizationId, deploymentId: "summarizer-id" };
    await rules.receiver("hook", { ...of, ends: ["failure"] });
    await rules.receiver("fine", { ...of, ends: ["failure"] });
    const off = { ...platform.deed("ada@example.com"), enabled: false };
    await hosting.updateWebhook({ ...off, ...of, name: "hook" });
    await hosting.updateWebhook({
      ...platform.deed("bob"),
      ...rules.key,
      name: "ops",
      enabled: false,
    });
    const listed = await hosting.listWebhooksOff({ organizationId, nowMs, limit: 10 });
    expect(listed.sort((a, b) => (a.name < b.name ? -1 : 1))).toMatchObject([
      { name: "hook", deployment: "summarizer", disabledReason: "disabled by ada@example.com" },
      { name: "ops", deployment: "", disabledReason: "disabled by bob" },
    ]);
    for (const [name, expiresAtMs] of [
      ["late", nowMs + 3],
      ["soon", nowMs + 2],
      ["ended", nowMs],
      ["history", nowMs - 1],
    ] as const) {
      await platform.token(organizationId, { fields: { name, expiresAtMs } });
    }
    await platform.token(organizationId, { fields: { name: "endless" } });
    const endingIn = async (ms: number, limit: number) => {
      const asked = { organizationId, afterMs: nowMs - 1, beforeMs: nowMs + ms, limit };
      return (await hosting.listEndingTokens(asked)).map(({ name }) => name);
    };
    expect(await endingIn(2, 10)).toEqual(["ended", "soon"]);
    expect(await endingIn(3, 2)).toEqual(["ended", "soon"]);
  });
}
