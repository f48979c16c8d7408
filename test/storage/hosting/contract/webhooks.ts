import { expect } from "vitest";
import type { HostingStorage } from "../../../../src/storage/hosting/hosting.ts";
import type { TakenDelivery } from "../../../../src/storage/hosting/webhooks.ts";
import type { NewTask } from "../../../../src/storage/storage.ts";
import { allPages } from "../../accounts/fixtures.ts";
import { attempt, endAttempt, FAILURE, json, newTask, openLease, success } from "../../fixtures.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const DEPLOYMENT = "summarizer-id";
const MINUTE_MS = 60_000;

type NewWebhook = Parameters<HostingStorage["createWebhook"]>[0];

/** A platform with a deployment, and short ways to webhooks of it. */
class Hooks {
  readonly platform: HostingPlatform;

  static async on(platform: HostingPlatform): Promise<Hooks> {
    await platform.deploy(["one"]);
    await openLease(platform.storage, "lease-1", platform.nowMs);
    return new Hooks(platform);
  }

  private constructor(platform: HostingPlatform) {
    this.platform = platform;
  }

  get key() {
    return { organizationId: this.platform.organizationId, deploymentId: DEPLOYMENT };
  }

  create(name: string, rest: Partial<NewWebhook> = {}) {
    const { platform, key } = this;
    return platform.hosting.createWebhook({
      ...platform.deed("ada@example.com"),
      ...key,
      name,
      webhookId: platform.newId("webhook"),
      url: `https://${name}.example.com/told?key=hidden`,
      ends: ["success", "failure", "cancelled"],
      endpoint: "",
      namedOnly: false,
      sealed: "sealed secrets",
      limit: 3,
      ...rest,
    });
  }

  submit(taskId: string, changes: Partial<NewTask> = {}) {
    const { storage, nowMs } = this.platform;
    const times = { createdAtMs: nowMs, runAtMs: nowMs, expiresAtMs: nowMs + MINUTE_MS };
    const task = newTask(taskId, { deploymentId: DEPLOYMENT, ...times, ...changes });
    return storage.submitTasks({ tasks: [task] });
  }

  /** Submits a task under a lease, and ends its attempt. */
  async end(
    taskId: string,
    end: Parameters<typeof endAttempt>[2] = success("done"),
    changes: Partial<NewTask> = {},
  ) {
    const { storage, nowMs } = this.platform;
    await this.submit(taskId, { leaseId: "lease-1", ...changes });
    return await endAttempt(storage, attempt(taskId, { deploymentId: DEPLOYMENT }), end, nowMs);
  }

  take(rest: Partial<Parameters<HostingStorage["takeDeliveries"]>[0]> = {}) {
    const { hosting, nowMs } = this.platform;
    return hosting.takeDeliveries({
      claim: "claim-1",
      nowMs,
      ttlMs: MINUTE_MS,
      limit: 10,
      perWebhook: 5,
      withoutOrganizations: [],
      withoutWebhooks: [],
      ...rest,
    });
  }

  record(
    { deploymentId, organizationId, webhookId, deliveryId }: TakenDelivery,
    rest: Partial<Parameters<HostingStorage["recordDelivery"]>[0]> = {},
  ) {
    const { hosting, nowMs } = this.platform;
    return hosting.recordDelivery({
      ...{ deploymentId, organizationId, webhookId, deliveryId, claim: "claim-1", nowMs },
      ...{ state: "delivered", nextInMs: 0, answers: [], body: "{}", pausesMs: [] },
      ...rest,
    });
  }

  async told(): Promise<string[]> {
    const { items } = await this.platform.hosting.listDeliveries({ ...this.key, limit: 100 });
    return items.map(({ webhook, taskId, end }) => `${webhook} ${taskId} ${end}`).sort();
  }
}

export function webhooksContract(it: It): void {
  it("are created up to a number, listed, changed and deleted, each in the audit log", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting, organizationId } = platform;
    expect(await hosting.usesWebhooks({})).toBe(false);
    expect(await hooks.create("b")).toMatchObject({
      outcome: "created",
      webhook: { name: "b", createdBy: "ada@example.com", waiting: 0, disabled: undefined },
    });
    expect(await hosting.usesWebhooks({})).toBe(true);
    expect(await hooks.create("b")).toEqual({ outcome: "name_taken" });
    await hooks.create("a", { ends: ["failure"], endpoint: "work", namedOnly: true });
    await hooks.create("c");
    expect(await hooks.create("d")).toEqual({ outcome: "limit" });
    expect(await hooks.create("d", { deploymentId: "another" })).toEqual({ outcome: "not_found" });
    expect(await hosting.listWebhooks(hooks.key)).toMatchObject([
      { name: "a", ends: ["failure"], endpoint: "work", namedOnly: true },
      { name: "b", ends: ["success", "failure", "cancelled"], endpoint: "", namedOnly: false },
      { name: "c" },
    ]);
    const [created] = await platform.audit(organizationId);
    expect(created).toMatchObject({
      action: "webhook.create",
      details: { address: "https://c.example.com" },
    });
    expect(JSON.stringify(created)).not.toContain("hidden");

    const deed = platform.deed("root@example.com");
    const url = "https://other.example.com";
    expect(
      await hosting.updateWebhook({ ...deed, ...hooks.key, name: "a", url, enabled: false }),
    ).toMatchObject({
      outcome: "updated",
      webhook: {
        url,
        ends: ["failure"],
        namedOnly: true,
        disabled: { reason: "disabled by root@example.com" },
        version: 2,
      },
    });
    const again = { ...platform.deed(), ...hooks.key, name: "a", enabled: true };
    expect(await hosting.updateWebhook({ ...again, version: 1 })).toEqual({
      outcome: "version_conflict",
    });
    expect(await hosting.updateWebhook({ ...again, version: 2 })).toMatchObject({
      webhook: { url, disabled: undefined, version: 3 },
    });
    expect(await hosting.updateWebhook({ ...again, name: "x" })).toEqual({ outcome: "not_found" });
    expect(await hosting.deleteWebhook({ ...platform.deed(), ...hooks.key, name: "a" })).toBe(true);
    expect(await hosting.deleteWebhook({ ...platform.deed(), ...hooks.key, name: "a" })).toBe(
      false,
    );
    const elsewhere = { organizationId: "another", deploymentId: DEPLOYMENT };
    expect(await hosting.listWebhooks(elsewhere)).toEqual([]);
    expect(await hosting.getSealedWebhook({ ...elsewhere, name: "b" })).toBeUndefined();
  });

  it("are told of each end of a task that they want, and of no other", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { storage, nowMs } = platform;
    await hooks.end("before");
    await hooks.create("all");
    await hooks.create("failures", { ends: ["failure"] });
    await hooks.create("named", { namedOnly: true, endpoint: "work" });
    await hooks.end("s");
    await hooks.end("f", { status: "failure", failure: FAILURE }, { webhook: "named" });
    await hooks.end("c", { status: "cancelled" });
    await hooks.end("other", success(1), { endpoint: "elsewhere", webhook: "named" });
    await hooks.end("of another", success(1), { deploymentId: "another" });
    await hooks.submit("queued", { webhook: "named" });
    const key = { deploymentId: DEPLOYMENT, taskId: "queued" };
    await storage.cancelTask({ ...key, nowMs });
    await hooks.submit("late", { startByMs: nowMs + 1 });
    await storage.expireTasks({ nowMs: nowMs + 1, limit: 10 });
    await hooks.submit("waits");
    expect(await hooks.told()).toEqual([
      "all c cancelled",
      "all f failure",
      "all late failure",
      "all other success",
      "all queued cancelled",
      "all s success",
      "failures f failure",
      "failures late failure",
      "named f failure",
      "named queued cancelled",
    ]);
  });

  it("are told once of an end that is recorded twice, and not of an attempt that returns", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { storage, nowMs } = platform;
    await hooks.create("all");
    await hooks.submit("a", { leaseId: "lease-1" });
    const running = attempt("a", { deploymentId: DEPLOYMENT });
    const stale = { ...running, attempt: 7 };
    await endAttempt(storage, stale, success(1), nowMs);
    expect(await hooks.told()).toEqual([]);
    await endAttempt(storage, running, success(1), nowMs);
    await endAttempt(storage, running, success(1), nowMs);
    await hooks.submit("b", { leaseId: "lease-1" });
    const returned = { status: "queued", failed: true, failure: FAILURE } as const;
    await endAttempt(storage, attempt("b", { deploymentId: DEPLOYMENT }), returned, nowMs);
    expect(await hooks.told()).toEqual(["all a success"]);
  });

  it("are told of the retry of a task that named them, and hold up none once they are gone", async (platform) => {
    const hooks = await Hooks.on(platform);
    await hooks.create("named", { namedOnly: true });
    await hooks.create("other", { namedOnly: true });
    const failed = { status: "failure", failure: FAILURE } as const;
    await hooks.end("a", failed, { webhook: "named" });
    await hooks.end("b", failed, { retryOf: "a" });
    await hooks.end("c", success(1), { retryOf: "b" });
    await hooks.submit("cancelled", { retryOf: "c" });
    const { storage, nowMs } = platform;
    await storage.cancelTask({ deploymentId: DEPLOYMENT, taskId: "cancelled", nowMs });
    await hooks.end("elsewhere", success(1), { retryOf: "cancelled", webhook: "other" });
    await hooks.end("unnamed");
    await hooks.end("retried", success(1), { retryOf: "unnamed" });
    expect(await hooks.told()).toEqual([
      "named a failure",
      "named b failure",
      "named c success",
      "named cancelled cancelled",
      "other elsewhere success",
    ]);
    await platform.hosting.deleteWebhook({ ...platform.deed(), ...hooks.key, name: "named" });
    expect(await hooks.submit("late", { retryOf: "c" })).toMatchObject([{ outcome: "stored" }]);
  });

  it("refuse a task that names one which is not there", async (platform) => {
    const hooks = await Hooks.on(platform);
    await hooks.create("there");
    const unknown = { outcome: "webhook_unknown" };
    expect(await hooks.submit("a", { webhook: "gone" })).toEqual([unknown]);
    const { storage, nowMs } = platform;
    const task = (taskId: string, webhook?: string) =>
      newTask(taskId, { deploymentId: DEPLOYMENT, createdAtMs: nowMs, runAtMs: nowMs, webhook });
    const tasks = [task("b", "gone"), task("c"), task("d", "there")];
    const stored = { outcome: "stored" };
    expect(await storage.submitTasks({ tasks })).toMatchObject([unknown, stored, stored]);
  });

  it("answer a task that was stored under its key while they were there", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting, storage, nowMs } = platform;
    await hooks.create("there");
    const idempotency = { key: "order-7", digest: "one" };
    const named = { webhook: "there", idempotency };
    expect(await hooks.submit("a", named)).toMatchObject([{ outcome: "stored" }]);
    await hosting.deleteWebhook({ ...platform.deed(), ...hooks.key, name: "there" });
    const task = (taskId: string, changes: Partial<NewTask>) =>
      newTask(taskId, { deploymentId: DEPLOYMENT, createdAtMs: nowMs, runAtMs: nowMs, ...changes });
    const tasks = [
      task("b", named),
      task("c", named),
      task("d", { ...named, idempotency: { key: "order-7", digest: "two" } }),
      task("e", { ...named, idempotency: { key: "order-8", digest: "one" } }),
    ];
    const replayed = { outcome: "replayed", task: { taskId: "a" } };
    expect(await storage.submitTasks({ tasks })).toMatchObject([
      ...[replayed, replayed, { outcome: "key_reused" }, { outcome: "webhook_unknown" }],
    ]);
  });

  it("have deliveries that one node takes, and others when its time is over", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting } = platform;
    await hooks.create("all");
    await hooks.end("a", success({ answer: 42 }), { tags: ["customer:42", "nightly"] });
    const [taken, ...more] = await hooks.take();
    expect(more).toEqual([]);
    expect(taken).toMatchObject({
      organization: "acme",
      deployment: "summarizer",
      webhook: "all",
      url: "https://all.example.com/told?key=hidden",
      sealed: "sealed secrets",
      deliveryId: "a-all",
      end: "success",
      taskId: "a",
      endpoint: "work",
      attempts: 0,
      body: undefined,
      task: {
        ...{ attempt: 1, finishedAtMs: platform.nowMs, result: '{"answer":42}' },
        tags: "\ncustomer:42\nnightly\n",
      },
    });
    expect(await hooks.take({ claim: "claim-2" })).toEqual([]);
    platform.nowMs += MINUTE_MS;
    const [again] = await hooks.take({ claim: "claim-2" });
    expect(again?.deliveryId).toBe("a-all");
    // The fence: the one before has lost it.
    expect(await hooks.record(again as TakenDelivery)).toBe(false);
    const answer = { atMs: 1, tookMs: 2, status: 200, text: "ok", error: "" };
    const told = { claim: "claim-2", answers: [answer], body: '{"type":"task.success"}' };
    expect(await hooks.record(again as TakenDelivery, told)).toBe(true);
    expect(await hooks.record(again as TakenDelivery, told)).toBe(false);
    expect(await hosting.getDelivery({ ...hooks.key, deliveryId: "a-all" })).toMatchObject({
      state: "delivered",
      attempts: 1,
      answers: [answer],
      body: '{"type":"task.success"}',
    });
    platform.nowMs += 10 * MINUTE_MS;
    expect(await hooks.take()).toEqual([]);
  });

  it("tell how large a result is that does not stand in the row", async (platform) => {
    const hooks = await Hooks.on(platform);
    await hooks.create("all");
    const text = "x".repeat(5_000);
    await hooks.end("large", success(text));
    const file = { contentType: "text/plain", data: Buffer.from("a file") };
    const result = { ...json({ file: 1 }), files: [file] };
    await hooks.end("files", { status: "success", result });
    const taken = new Map((await hooks.take()).map((one) => [one.taskId, one.task]));
    expect(taken.get("large")).toMatchObject({ result: undefined, resultBytes: 5_002 });
    expect(taken.get("files")).toMatchObject({ result: undefined, resultBytes: undefined });
  });

  it("keep a task until the message of its end is made, or nobody waits for it", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting, storage, nowMs } = platform;
    await hooks.create("all");
    await hooks.create("named", { namedOnly: true });
    const brief = { retentionMs: 1, expiresAtMs: nowMs + 1 };
    await hooks.end("a", success(1), brief);
    await hooks.end("b", success(2), { ...brief, webhook: "named" });
    const prune = () => storage.pruneFinished({ nowMs: nowMs + 1, limit: 10 });
    expect(await prune()).toBe(0);
    const taken = await hooks.take();
    expect(taken.map(({ taskId, task }) => [taskId, task?.result])).toEqual(
      expect.arrayContaining([
        ["a", "1"],
        ["b", "2"],
      ]),
    );
    for (const one of taken.filter(({ webhook }) => webhook === "all")) {
      // Not delivered, but it has its body.
      await hooks.record(one, { state: "waiting", nextInMs: MINUTE_MS, pausesMs: [0] });
    }
    expect(await prune()).toBe(1);
    await hosting.deleteWebhook({ ...platform.deed(), ...hooks.key, name: "named" });
    expect(await prune()).toBe(1);
  });

  it("fail apart: one that fails is tried alone, then paused, and costs the others nothing", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting } = platform;
    await hooks.create("down");
    await hooks.create("up");
    for (const taskId of ["a", "b", "c"]) {
      await hooks.end(taskId);
    }
    const names = (taken: readonly TakenDelivery[]) => taken.map(({ webhook }) => webhook).sort();
    const taken = await hooks.take({ perWebhook: 2 });
    expect(names(taken)).toEqual(["down", "down", "up", "up"]);
    const pausesMs = [0, 0, 5 * MINUTE_MS];
    for (const one of taken) {
      const failed = { state: "waiting", nextInMs: MINUTE_MS, pausesMs } as const;
      await hooks.record(one, one.webhook === "down" ? failed : {});
    }
    const next = await hooks.take({ perWebhook: 2 });
    expect(names(next)).toEqual(["down", "up"]);
    for (const one of next) {
      const failed = { state: "failed", nextInMs: 0, pausesMs } as const;
      await hooks.record(one, one.webhook === "down" ? failed : {});
    }
    platform.nowMs += 2 * MINUTE_MS;
    expect(await hooks.take()).toEqual([]);
    const [down] = await hosting.listWebhooks(hooks.key);
    expect(down).toMatchObject({ name: "down", failures: 3, waiting: 2 });
    platform.nowMs += 3 * MINUTE_MS;
    const [tried, ...more] = await hooks.take();
    expect(more).toEqual([]);
    await hooks.record(tried as TakenDelivery);
    expect((await hosting.listWebhooks(hooks.key))[0]).toMatchObject({ failures: 0 });
    expect(names(await hooks.take())).toEqual(["down"]);
  });

  it("are listed for their organization while they fail, with what they answered last", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting, organizationId } = platform;
    for (const name of ["fine", "broken"]) {
      await hooks.create(name);
    }
    const failing = async () => {
      const found = await hosting.listFailingWebhooks({ organizationId, limit: 10 });
      return found.map(({ deployment, webhook, answer }) =>
        [deployment.name, webhook.name, webhook.failures, answer?.status].join(" "),
      );
    };
    expect(await failing()).toEqual([]);
    await hooks.end("a");
    const answers = [500, 503].map((status) => ({
      ...{ atMs: platform.nowMs, tookMs: 1, status, text: "", error: "" },
    }));
    for (const one of await hooks.take()) {
      const fails = one.webhook === "broken";
      const rest = { state: "waiting", nextInMs: MINUTE_MS, pausesMs: [0], answers } as const;
      await hooks.record(one, fails ? rest : {});
    }
    expect(await failing()).toEqual(["summarizer broken 1 503"]);
    // The answer is found behind a backlog that was never tried, however long.
    for (let each = 0; each < 201; each++) {
      await hooks.end(`later-${each}`);
    }
    expect(await failing()).toEqual(["summarizer broken 1 503"]);
    const foreign = { organizationId: "another", limit: 10 };
    expect(await hosting.listFailingWebhooks(foreign)).toEqual([]);
    // Somebody has seen it.
    await hosting.updateWebhook({
      ...platform.deed("ada@example.com"),
      ...{ ...hooks.key, name: "broken", enabled: false },
    });
    expect(await failing()).toEqual([]);
  });

  it("are left out for those who have no room for them", async (platform) => {
    const hooks = await Hooks.on(platform);
    await hooks.create("all", { webhookId: "the-webhook" });
    await hooks.end("a");
    const { organizationId } = platform;
    expect(await hooks.take({ withoutOrganizations: [organizationId, "x"] })).toEqual([]);
    expect(await hooks.take({ withoutWebhooks: ["the-webhook"] })).toEqual([]);
    expect(await hooks.take({ limit: 0 })).toEqual([]);
    expect(await hooks.take()).toHaveLength(1);
  });

  it("are disabled by an answer, keep what waits, and are told of nothing more", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting } = platform;
    await hooks.create("all");
    await hooks.end("a");
    await hooks.end("b");
    const [taken] = await hooks.take({ perWebhook: 1 });
    const gone = { state: "failed", pausesMs: [0], disable: "it answered 410" } as const;
    await hooks.record(taken as TakenDelivery, gone);
    await hooks.end("c");
    const again = { ...platform.deed(), ...hooks.key, deliveryId: "a-all" };
    expect(await hosting.redeliver(again)).toMatchObject({ outcome: "disabled", name: "all" });
    expect(await hooks.take()).toEqual([]);
    expect(await hosting.listWebhooks(hooks.key)).toMatchObject([
      { disabled: { reason: "it answered 410" }, waiting: 1 },
    ]);
    await hosting.updateWebhook({ ...platform.deed(), ...hooks.key, name: "all", enabled: true });
    expect(await hooks.take()).toHaveLength(1);
    expect(await hooks.told()).toEqual(["all a success", "all b success"]);
  });

  it("are tested, and have deliveries sent again, whatever they wait for", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting } = platform;
    await hooks.create("all");
    await hooks.end("a");
    const [taken] = await hooks.take();
    const failed = { state: "failed", pausesMs: [60 * MINUTE_MS], body: '{"a":1}' } as const;
    await hooks.record(taken as TakenDelivery, failed);
    const test = { ...hooks.key, name: "all", deliveryId: "test-1", body: "{}" };
    expect(await hosting.addTestDelivery({ ...platform.deed(), ...test })).toMatchObject({
      deliveryId: "test-1",
      end: undefined,
      state: "waiting",
      body: "{}",
    });
    expect(await hosting.addTestDelivery({ ...platform.deed(), ...test, name: "x" })).toBe(
      undefined,
    );
    const [tested] = await hooks.take();
    expect(tested).toMatchObject({ deliveryId: "test-1", end: undefined, body: "{}" });
    const again = { ...hooks.key, deliveryId: "a-all" };
    expect(await hosting.redeliver({ ...platform.deed(), ...again })).toMatchObject({
      outcome: "again",
      delivery: { state: "waiting", attempts: 0 },
    });
    // A second claim of it: whoever had it records nothing.
    expect(await hooks.record(taken as TakenDelivery)).toBe(false);
    await hooks.record(tested as TakenDelivery);
    expect(await hooks.take()).toMatchObject([{ deliveryId: "a-all", body: '{"a":1}' }]);
    await hosting.deleteWebhook({ ...platform.deed(), ...hooks.key, name: "all" });
    expect(await hosting.redeliver({ ...platform.deed(), ...again })).toBeUndefined();
    expect(await hosting.redeliver({ ...platform.deed(), ...again, deliveryId: "x" })).toBe(
      undefined,
    );
    expect(await hooks.take({ nowMs: platform.nowMs + 10 * MINUTE_MS })).toEqual([]);
  });

  it("rotate their secrets by compare-and-swap, and are resealed", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting, nowMs } = platform;
    await hooks.create("a");
    await hooks.create("b");
    const rotate = (from: string) =>
      hosting.rotateWebhook({
        ...platform.deed(),
        ...{ ...hooks.key, name: "a", from, to: "two", rotatedUntilMs: nowMs + MINUTE_MS },
      });
    expect(await rotate("another")).toBeUndefined();
    expect(await rotate("sealed secrets")).toMatchObject({ rotatedUntilMs: nowMs + MINUTE_MS });
    const [event] = await platform.audit(platform.organizationId);
    expect(event).toMatchObject({ action: "webhook.rotate", details: { grace_seconds: "60" } });
    const pages = await allPages((after) =>
      hosting.listSealedWebhooks({ limit: 1, ...(after !== undefined && { after }) }),
    );
    const sealed = pages.flat();
    expect(sealed.map((one) => one.sealed)).toEqual(["two", "sealed secrets"]);
    for (const one of sealed) {
      await hosting.replaceSealedWebhook({ ...one, from: "two", to: "three" });
    }
    const found = await hosting.getSealedWebhook({ ...hooks.key, name: "a" });
    expect(found?.sealed).toBe("three");
    expect((await hosting.getSealedWebhook({ ...hooks.key, name: "b" }))?.sealed).toBe(
      "sealed secrets",
    );
  });

  it("list deliveries in pages: of a webhook, of a task, by state", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting } = platform;
    await hooks.create("a");
    await hooks.create("b");
    for (const taskId of ["one", "two", "three"]) {
      platform.nowMs += 1;
      await hooks.end(taskId);
    }
    const list = async (filter: object) => {
      const found = await allPages((page) =>
        hosting.listDeliveries({
          ...{ ...hooks.key, ...filter, limit: 2 },
          ...(page !== undefined && { after: page }),
        }),
      );
      return found.flat().map(({ deliveryId }) => deliveryId);
    };
    expect(await list({})).toEqual(["three-b", "three-a", "two-b", "two-a", "one-b", "one-a"]);
    expect(await list({ webhook: "a" })).toEqual(["three-a", "two-a", "one-a"]);
    expect(await list({ taskId: "two" })).toEqual(["two-b", "two-a"]);
    expect(await list({ state: "delivered" })).toEqual([]);
    expect(await list({ state: "waiting", webhook: "b", taskId: "one" })).toEqual(["one-b"]);
    expect(await list({ organizationId: "another" })).toEqual([]);
  });

  it("lose deliveries that are old, and are disabled when too many wait for one that fails", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting, nowMs } = platform;
    await hooks.create("a");
    await hooks.create("b", { namedOnly: true });
    for (const taskId of ["one", "two", "three"]) {
      await hooks.end(taskId);
    }
    const bounds = { nowMs, limit: 2, maxWaiting: 3, maxWaitingFailed: 1 };
    const prune = (beforeMs: number, fromMs?: number) =>
      hosting.pruneDeliveries({ ...bounds, beforeMs, fromMs });
    const why = async () =>
      (await hosting.listWebhooks(hooks.key)).map(({ disabled }) => disabled?.reason);
    expect(await prune(nowMs)).toEqual({ deleted: 0, reachedMs: 0 });
    expect(await why()).toEqual([undefined, undefined]);
    const [taken] = await hooks.take({ perWebhook: 1 });
    await hooks.record(taken as TakenDelivery, { state: "waiting", pausesMs: [0] });
    expect(await prune(nowMs)).toMatchObject({ deleted: 0 });
    expect(await why()).toEqual(["more than 1 deliveries wait for it", undefined]);
    await hosting.updateWebhook({ ...platform.deed(), ...hooks.key, name: "a", enabled: true });
    await hooks.end("four");
    expect(await prune(nowMs)).toMatchObject({ deleted: 0 });
    expect(await why()).toEqual(["more than 3 deliveries wait for it", undefined]);
    expect((await hosting.listWebhooks(hooks.key))[0]).toMatchObject({ failures: 0 });
    const first = await prune(nowMs + 1);
    const others = [await prune(nowMs + 1, nowMs + 1), await prune(nowMs + 1, first.reachedMs)];
    expect([first, ...others].map(({ deleted }) => deleted)).toEqual([2, 0, 2]);
    expect(await hooks.told()).toEqual([]);
  });

  it("tell nothing of a task that was deleted, also what was to be sent again", async (platform) => {
    const hooks = await Hooks.on(platform);
    await hooks.create("app");
    for (const taskId of ["deleted", "kept"]) {
      await hooks.end(taskId);
    }
    const { storage, hosting, nowMs } = platform;
    const deploymentId = DEPLOYMENT;
    await storage.deleteTasks({ deploymentId, taskIds: ["deleted"], nowMs });
    const { items } = await hosting.listDeliveries({ ...hooks.key, limit: 10 });
    expect(items.map(({ taskId }) => taskId)).toEqual(["kept"]);
  });

  it("go with their deployment, and their deliveries after it", async (platform) => {
    const hooks = await Hooks.on(platform);
    const { hosting } = platform;
    await hooks.create("a");
    await hooks.end("one");
    await platform.remove("summarizer", true);
    expect(await hosting.listWebhooks(hooks.key)).toEqual([]);
    expect(await hooks.take()).toEqual([]);
    await platform.prune();
    expect(await hosting.usesWebhooks({})).toBe(false);
  });
}
