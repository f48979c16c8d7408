import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";
import { pino } from "pino";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { Deliverer, type DelivererOptions } from "../../../src/hosting/webhooks/deliverer.ts";
import { newWebhookSecret, rotated, secretsText } from "../../../src/hosting/webhooks/signature.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { attempt, endAttempt, newTask, openLease, success } from "../../storage/fixtures.ts";
import { HostingPlatform } from "../../storage/hosting/fixtures.ts";
import { type Received, Receiver } from "./receiver.ts";

const DEPLOYMENT = "summarizer-id";
/** Sealed is what it was. */
const KEYS = { unseal: (sealed: string) => sealed };

/** A platform with a deployment, and a node that delivers. */
class Setting implements AsyncDisposable {
  readonly storage: Storage;
  readonly platform: HostingPlatform;
  readonly secret = newWebhookSecret();
  readonly #resources: AsyncDisposableStack;

  static async open(): Promise<Setting> {
    const resources = new AsyncDisposableStack();
    const storage = resources.use(new SqliteStorage(":memory:"));
    await storage.start();
    const platform = await HostingPlatform.on(storage);
    platform.nowMs = Date.now();
    await platform.deploy(["one"]);
    await openLease(storage, "lease-1", platform.nowMs);
    return new Setting(platform, resources);
  }

  private constructor(platform: HostingPlatform, resources: AsyncDisposableStack) {
    this.platform = platform;
    this.storage = platform.storage;
    this.#resources = resources;
  }

  get key() {
    return { organizationId: this.platform.organizationId, deploymentId: DEPLOYMENT };
  }

  start(options: Partial<DelivererOptions> = {}): Deliverer {
    return this.#resources.use(
      new Deliverer({
        hosting: this.storage.hosting,
        storage: this.storage,
        changes: { listen: () => () => {} },
        keys: KEYS,
        platformUrl: "https://platform.example.com",
        allowedEgress: ["127.0.0.1"],
        now: Date.now,
        newId: createIdSource(Date.now),
        log: pino({ level: "silent" }),
        retryPausesMs: [1, 1],
        ...options,
      }),
    );
  }

  async hook(name: string, url: string, sealed = secretsText([{ secret: this.secret }])) {
    const created = await this.storage.hosting.createWebhook({
      ...this.platform.deed(),
      ...{ ...this.key, name, url, sealed, limit: 100, endpoint: "", namedOnly: false },
      webhookId: this.platform.newId("webhook"),
      ends: ["success", "failure", "cancelled"],
    });
    expect(created.outcome).toBe("created");
  }

  async end(taskId: string, result: unknown = 1, tags?: readonly string[]): Promise<void> {
    const nowMs = Date.now();
    const times = { createdAtMs: nowMs, runAtMs: nowMs, expiresAtMs: nowMs + 60_000 };
    const task = newTask(taskId, { deploymentId: DEPLOYMENT, leaseId: "lease-1", tags, ...times });
    await this.storage.submitTasks({ tasks: [task] });
    const running = attempt(taskId, { deploymentId: DEPLOYMENT });
    await endAttempt(this.storage, running, success(result), nowMs);
  }

  /** The delivery once it is no longer in a state. */
  async ended(deliveryId: string, state = "waiting") {
    const read = () => this.storage.hosting.getDelivery({ ...this.key, deliveryId });
    await expect.poll(async () => (await read())?.state).not.toBe(state);
    const found = await read();
    if (found === undefined) {
      throw new Error(`there is no delivery ${deliveryId}`);
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

function headersOf({ headers }: Received): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, String(value)] as const),
  );
}

function status(code: number) {
  return (res: ServerResponse): void => void res.writeHead(code).end(`status ${code}`);
}

describe("the deliverer", () => {
  it("sends what the published library verifies, with the result in it", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    await setting.hook("app", `${receiver.url}/told?from=tessera`);
    setting.start();
    await setting.end("a", { answer: 12345678901234567890n.toString() }, ["customer:42"]);
    const [message] = await receiver.has(1);
    const { path, body, headers } = message as Received;
    expect(path).toBe("/told?from=tessera");
    expect(headers).toMatchObject({ "content-type": "application/json", "webhook-id": "a-app" });
    const verified = new Webhook(setting.secret).verify(body, headersOf(message as Received));
    expect(verified).toMatchObject({
      type: "task.success",
      data: {
        organization: "acme",
        deployment: "summarizer",
        endpoint: "work",
        task_id: "a",
        status: "success",
        attempt: 1,
        tags: ["customer:42"],
        result: { answer: "12345678901234567890" },
        result_url:
          "https://platform.example.com/api/v1/tasks/a/result?organization=acme&deployment=summarizer",
      },
    });
    expect(() =>
      new Webhook(newWebhookSecret()).verify(body, headersOf(message as Received)),
    ).toThrow();
    const delivered = await setting.ended("a-app");
    expect(delivered).toMatchObject({
      state: "delivered",
      attempts: 1,
      answers: [{ status: 204, error: "" }],
      body,
    });
  });

  it("sends the address alone of a result of more than 20 kB", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    await setting.hook("app", receiver.url);
    setting.start();
    await setting.end("small", "x".repeat(19_900));
    await setting.end("large", "x".repeat(20_100));
    const messages = await receiver.has(2);
    const data = messages.map(({ body }) => JSON.parse(body).data);
    const small = data.find(({ task_id }) => task_id === "small");
    const large = data.find(({ task_id }) => task_id === "large");
    expect(small.result).toHaveLength(19_900);
    expect(large).toMatchObject({ result_url: expect.stringContaining("/tasks/large/result?") });
    expect(large).not.toHaveProperty("result");
  });

  it("signs with the secret before, too, until its time is over", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    const [old, young, younger] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()];
    const nowMs = Date.now();
    const once = rotated([{ secret: old }], { secret: young, nowMs, untilMs: nowMs + 60_000 });
    await setting.hook("twice", receiver.url, secretsText(once));
    const over = rotated(once, { secret: younger, nowMs, untilMs: nowMs });
    await setting.hook("over", receiver.url, secretsText(over));
    setting.start();
    await setting.end("a");
    const messages = await receiver.has(2);
    const twice = messages.find(({ id }) => id === "a-twice") as Received;
    for (const secret of [old, young]) {
      expect(new Webhook(secret).verify(twice.body, headersOf(twice))).toBeTruthy();
    }
    const single = messages.find(({ id }) => id === "a-over") as Received;
    expect(String(single.headers["webhook-signature"]).split(" ")).toHaveLength(1);
    expect(new Webhook(younger).verify(single.body, headersOf(single))).toBeTruthy();
  });

  it("sends again what fails, each copy under one id, and gives up after the last pause", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    const codes = [500, 429, 200, 503, 503, 503];
    receiver.answer = (res) => status(codes[receiver.received.length - 1] ?? 200)(res);
    await setting.hook("app", receiver.url);
    setting.start();
    await setting.end("a");
    const first = await setting.ended("a-app");
    expect(first).toMatchObject({ state: "delivered", attempts: 3 });
    expect(first.answers.map((each) => [each.status, each.text])).toEqual([
      [500, "status 500"],
      [429, "status 429"],
      [200, "status 200"],
    ]);
    expect(receiver.ids).toEqual(["a-app", "a-app", "a-app"]);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    await setting.end("b");
    expect(await setting.ended("b-app")).toMatchObject({ state: "failed", attempts: 3 });
    await setting.storage.hosting.redeliver({
      ...setting.platform.deed(),
      ...{ ...setting.key, deliveryId: "b-app" },
    });
    expect(await setting.ended("b-app", "failed")).toBeDefined();
    expect(await setting.ended("b-app")).toMatchObject({ state: "delivered" });
  });

  it("disables a webhook that answers 410", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    receiver.answer = status(410);
    await setting.hook("app", receiver.url);
    setting.start();
    await setting.end("a");
    expect(await setting.ended("a-app")).toMatchObject({ state: "failed", attempts: 1 });
    const [webhook] = await setting.storage.hosting.listWebhooks(setting.key);
    expect(webhook?.disabled?.reason).toBe("it answered 410: it wants no more of them");
  });

  it("waits for no slow receiver, follows no redirect, and reads little of an answer", async () => {
    await using setting = await Setting.open();
    await using slow = await Receiver.start();
    await using redirecting = await Receiver.start();
    await using target = await Receiver.start();
    await using talking = await Receiver.start();
    await using dripping = await Receiver.start();
    slow.answer = () => {};
    redirecting.answer = (res) => res.writeHead(307, { location: target.url }).end();
    talking.answer = (res) => res.end("x".repeat(10_000_000));
    dripping.answer = (res) => res.writeHead(200).write("a");
    const receivers = { slow, redirecting, talking, dripping };
    for (const [name, { url }] of Object.entries(receivers)) {
      await setting.hook(name, url);
    }
    await setting.hook("silent", "http://127.0.0.1:9");
    setting.start({ timeoutMs: 3_000, retryPausesMs: [] });
    await setting.end("a");
    const { host } = new URL(slow.url);
    expect(await setting.ended("a-slow")).toMatchObject({
      state: "failed",
      answers: [{ status: 0, error: `${host} took longer than 3 s` }],
    });
    expect(await setting.ended("a-redirecting")).toMatchObject({
      state: "failed",
      answers: [{ status: 307 }],
    });
    expect(target.received).toEqual([]);
    const talked = await setting.ended("a-talking");
    expect(talked).toMatchObject({ state: "delivered", answers: [{ text: "x".repeat(1_024) }] });
    expect(await setting.ended("a-dripping")).toMatchObject({ answers: [{ status: 200 }] });
    expect(await setting.ended("a-silent")).toMatchObject({
      answers: [{ status: 0, error: "127.0.0.1 port 9 could not be connected to: ECONNREFUSED" }],
    });
  });

  it("takes an answer of another protocol, and a connection that ends, for failures", async () => {
    await using setting = await Setting.open();
    await using upgrading = await Receiver.start();
    await using leaving = await Receiver.start();
    const upgrade = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    upgrading.answer = (res) => res.socket?.write(upgrade);
    leaving.answer = (res) => res.socket?.end();
    await setting.hook("upgrading", upgrading.url);
    await setting.hook("leaving", leaving.url);
    // No timeout helps: what is not settled by the answer never is.
    setting.start({ timeoutMs: 600_000, retryPausesMs: [] });
    await setting.end("a");
    expect(await setting.ended("a-upgrading")).toMatchObject({
      state: "failed",
      answers: [{ status: 101, error: "" }],
    });
    expect(await setting.ended("a-leaving")).toMatchObject({
      state: "failed",
      answers: [{ status: 0, error: expect.stringContaining("broke off") }],
    });
  });

  it("connects to no private address, also where a name leads to one at the second look", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    const looks: string[] = [];
    const resolve = async (name: string) => {
      looks.push(name);
      return looks.length === 1 ? ["127.0.0.1"] : ["127.0.0.2"];
    };
    receiver.answer = status(500);
    await setting.hook("app", `http://receiver.example.com:${receiver.port}`);
    await setting.hook("metadata", "http://169.254.169.254/latest");
    setting.start({ resolve, retryPausesMs: [1] });
    await setting.end("a");
    const { answers } = await setting.ended("a-app");
    expect(looks).toEqual(["receiver.example.com", "receiver.example.com"]);
    expect(answers).toMatchObject([
      { status: 500 },
      { status: 0, error: expect.stringContaining("is a loopback address") },
    ]);
    expect(receiver.received).toHaveLength(1);
    expect(receiver.received[0]?.headers.host).toBe(`receiver.example.com:${receiver.port}`);
    const refused = await setting.ended("a-metadata");
    expect(refused.answers[0]?.error).toContain("--allow-egress");
  });

  it("counts secrets that cannot be unsealed as a failed attempt", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    await setting.hook("app", receiver.url);
    const keys = {
      unseal: (): string => {
        throw new Error("sealed with a key that is not here");
      },
    };
    setting.start({ keys, retryPausesMs: [1] });
    await setting.end("a");
    expect(await setting.ended("a-app")).toMatchObject({
      state: "failed",
      attempts: 2,
      answers: [{ status: 0 }, { error: expect.stringContaining("cannot read the secret") }],
    });
    expect(receiver.received).toEqual([]);
  });

  it("pauses a receiver that is down, and lets it cost the others nothing", async () => {
    await using setting = await Setting.open();
    await using up = await Receiver.start();
    await using down = await Receiver.start();
    down.answer = status(503);
    await setting.hook("down", down.url);
    await setting.hook("up", up.url);
    setting.start({ retryPausesMs: Array(100).fill(0) });
    for (let n = 0; n < 40; n += 1) {
      await setting.end(`task-${n}`);
    }
    await up.has(40);
    const webhooks = () => setting.storage.hosting.listWebhooks(setting.key);
    const paused = async () => ((await webhooks())[0]?.pausedUntilMs ?? 0) > Date.now();
    await expect.poll(paused).toBe(true);
    // Eight that were under way at once, and then one at a time until it was paused.
    expect(down.received.length).toBeLessThanOrEqual(12);
    expect((await webhooks())[0]).toMatchObject({ name: "down", waiting: 40 });
  });

  it("has all for a receiver that answered 500 for a day, and nothing late for the others", async () => {
    await using setting = await Setting.open();
    await using up = await Receiver.start();
    await using down = await Receiver.start();
    down.answer = status(500);
    await setting.hook("down", down.url);
    await setting.hook("up", up.url);
    const { hosting } = setting.storage;
    let aheadMs = 0;
    let underWay = 0;
    const recorded = new EventEmitter<{ one: [] }>();
    const deliverer = setting.start({
      now: () => Date.now() + aheadMs,
      hosting: {
        ...hosting,
        takeDeliveries: async (asked) => {
          const taken = await hosting.takeDeliveries(asked);
          underWay += taken.length;
          return taken;
        },
        recordDelivery: async (parameters) => {
          const isRecorded = await hosting.recordDelivery(parameters);
          underWay -= 1;
          recorded.emit("one");
          return isRecorded;
        },
      },
      retryPausesMs: [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000],
    });
    const halfHour = async () => {
      aheadMs += 1_800_000;
      await deliverer.look();
      while (underWay > 0) {
        await once(recorded, "one");
      }
    };
    for (let half = 0; half < 48; half += 1) {
      if (half % 4 === 0) {
        await setting.end(`task-${half}`);
        await up.has(half / 4 + 1);
      }
      await halfHour();
    }
    expect(up.received).toHaveLength(12);
    // One at a time, and no more often than the breaker lets.
    expect(down.received.length).toBeLessThan(60);
    const [paused] = await hosting.listWebhooks(setting.key);
    expect(paused).toMatchObject({ name: "down", waiting: 12, disabled: undefined });
    down.answer = status(204);
    const refused = down.received.length;
    // The last pause is a day, give or take a tenth.
    for (let half = 0; half < 54; half += 1) {
      await halfHour();
    }
    const ids = down.ids.slice(refused);
    expect(ids.toSorted()).toEqual(up.ids.map((id) => id.replace("-up", "-down")).toSorted());
  });

  it("goes on with what a node that was stopped has left", async () => {
    await using setting = await Setting.open();
    await using receiver = await Receiver.start();
    receiver.answer = () => {};
    await setting.hook("app", receiver.url);
    const first = setting.start();
    await setting.end("a");
    await receiver.has(1);
    await first[Symbol.asyncDispose]();
    expect(
      await setting.storage.hosting.getDelivery({ ...setting.key, deliveryId: "a-app" }),
    ).toMatchObject({ state: "waiting", attempts: 0 });
    receiver.answer = status(200);
    // The time of the first is over.
    setting.start({ now: () => Date.now() + 61_000 });
    await setting.ended("a-app");
    expect(receiver.ids).toEqual(["a-app", "a-app"]);
  });
});
