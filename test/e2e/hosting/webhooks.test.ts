import type { ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { WebhookDeliveryState, WebhookEvent } from "../../../src/client/index.ts";
import { type Received, Receiver } from "../../hosting/webhooks/receiver.ts";
import { Program } from "../cli/program.ts";
import { newPostgres } from "../start/databases.ts";
import { artifact, call, reasonOf, until, World } from "./world.ts";

/** How often a node is killed; the larger run is in CONTRIBUTING.md, on both databases. */
const KILLS = Number(process.env.TESSERA_WEBHOOK_KILLS ?? 3);
/** Tasks whose messages wait at each kill. */
const TASKS = Number(process.env.TESSERA_WEBHOOK_TASKS ?? (KILLS > 3 ? 250 : 5));
const DATABASES = [
  ["SQLite", async () => undefined],
  ...(KILLS > 3 ? ([["Postgres", newPostgres]] as const) : []),
] as const;
const deployment = "echo";

function verified(secret: string, { body, headers }: Received): unknown {
  const given = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  return new Webhook(secret).verify(body, Object.fromEntries(given));
}

async function submit(world: Pick<World, "platform">, path = "/work/submit"): Promise<string> {
  const answer = await call(world.platform, deployment, path, { body: { text: "x" } });
  expect(answer.status).toBe(202);
  return answer.json.task_id;
}

async function startWorld(database?: string): Promise<World> {
  const env = { TESSERA_ALLOW_EGRESS: "127.0.0.1" };
  const world = await World.start({ env, ...(database !== undefined && { database }) });
  await world.deployed(deployment, await artifact());
  return world;
}

describe("webhooks", () => {
  it("tell a server of the end of each task, and of those alone that name one", async () => {
    await using world = await startWorld();
    await using receiver = await Receiver.start();
    const { webhooks } = world.client;
    const { secret = "", webhook } = await webhooks.createWebhook({
      deployment,
      webhook: { name: "app", url: `${receiver.url}/all` },
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toMatchObject({ name: "app", disabled: false, createdBy: "ada@example.com" });
    await webhooks.createWebhook({
      deployment,
      webhook: { name: "some", url: `${receiver.url}/some`, namedOnly: true },
    });
    const first = await submit(world);
    await receiver.has(1);
    const second = await submit(world, "/work/submit?webhook=some");
    const [message, ...others] = (await receiver.has(3)) as [Received, Received, Received];
    expect(verified(secret, message)).toMatchObject({
      type: "task.success",
      data: { deployment, organization: "acme", endpoint: "work", task_id: first, result: "one x" },
    });
    expect(others.map(({ path, id }) => `${path} ${id}`).sort()).toEqual([
      `/all ${second}-app`,
      `/some ${second}-some`,
    ]);
    const found = await webhooks.listWebhookDeliveries({ deployment, taskId: second });
    const delivered = { state: WebhookDeliveryState.DELIVERED, event: WebhookEvent.TASK_SUCCESS };
    await until(
      () => webhooks.listWebhookDeliveries({ deployment, taskId: second }),
      ({ deliveries }) => deliveries.every(({ state }) => state === delivered.state),
    );
    expect(found.deliveries.map(({ webhook }) => webhook).sort()).toEqual(["app", "some"]);
    const one = await webhooks.getWebhookDelivery({ deployment, deliveryId: `${first}-app` });
    expect(one).toMatchObject({ ...delivered, attempts: 1, body: message.body });

    const refused = await call(world.platform, deployment, "/work/submit?webhook=gone", {
      body: { text: "x" },
    });
    expect([refused.status, reasonOf(refused)]).toEqual([404, "WEBHOOK_NOT_FOUND"]);
  });

  it("are tested, rotated under way, sent again and deleted", async () => {
    await using world = await startWorld();
    await using receiver = await Receiver.start();
    const { webhooks } = world.client;
    const named = { deployment, name: "app" };
    const { secret: old } = await webhooks.createWebhook({
      deployment,
      webhook: { name: "app", url: receiver.url, events: [WebhookEvent.TASK_FAILURE] },
    });
    receiver.answer = (res) => res.writeHead(500).end("not now");
    const { id: deliveryId } = await webhooks.testWebhook(named);
    await receiver.has(1);
    const answered = await until(
      () => webhooks.getWebhookDelivery({ deployment, deliveryId }),
      ({ attempts }) => attempts === 1,
    );
    expect(answered).toMatchObject({
      state: WebhookDeliveryState.WAITING,
      answers: [{ status: 500, text: "not now" }],
    });
    // The secret is rotated while the message waits: its next copy has both signatures.
    const { secret: young } = await webhooks.rotateWebhookSecret(named);
    receiver.answer = (res) => res.writeHead(204).end();
    await webhooks.redeliverWebhook({ deployment, deliveryId });
    const [before, after] = (await receiver.has(2)) as [Received, Received];
    expect(before.id).toBe(after.id);
    expect(verified(old, before)).toMatchObject({ type: "webhook.test", data: { deployment } });
    expect(() => verified(young, before)).toThrow();
    expect(verified(old, after)).toEqual(verified(young, after));
    await webhooks.rotateWebhookSecret({ ...named, grace: { seconds: 0n, nanos: 0 } });
    await webhooks.testWebhook(named);
    const [, , last] = (await receiver.has(3)) as [Received, Received, Received];
    expect(() => verified(young, last)).toThrow();

    const disabled = await webhooks.updateWebhook({
      deployment,
      webhook: { name: "app", disabled: true, version: 1 },
    });
    expect(disabled.version).toBe(2);
    // Who has read the version before is told, and changes nothing.
    const stale = await fetch(
      `${world.platform.url}/api/v1/deployments/${deployment}/webhooks/app`,
      {
        method: "PATCH",
        headers: { ...world.cookie, "content-type": "application/json", "if-match": '"1"' },
        body: JSON.stringify({ url: `${receiver.url}/other` }),
      },
    );
    expect(stale.status).toBe(412);
    expect(await stale.json()).toMatchObject({ code: "aborted" });
    const off = "is disabled (disabled by ada@";
    await expect(webhooks.testWebhook(named)).rejects.toThrow(off);
    await expect(webhooks.redeliverWebhook({ deployment, deliveryId })).rejects.toThrow(off);
    await webhooks.deleteWebhook(named);
    expect((await webhooks.listWebhooks({ deployment })).webhooks).toEqual([]);
    await expect(webhooks.redeliverWebhook({ deployment, deliveryId })).rejects.toThrow(
      "or its webhook is gone",
    );
  });

  it("are refused where they lead to what is not public, or are no address", async () => {
    await using world = await World.start();
    await world.client.deployments.createDeployment({ name: deployment });
    const create = (url: string) =>
      world.client.webhooks.createWebhook({ deployment, webhook: { name: "app", url } });
    for (const url of ["http://127.0.0.1:9", "http://169.254.169.254/x", "https://[::1]/"]) {
      await expect(create(url)).rejects.toThrow("--allow-egress");
    }
    await expect(create("http://database.internal/")).rejects.toThrow("private networks");
    await expect(create("https://ada:secret@example.com/")).rejects.toThrow("no password");
    await expect(create("file:///etc/passwd")).rejects.toThrow("must be a URL");
    await expect(create(`https://example.com/${"x".repeat(2_048)}`)).rejects.toThrow();
    for (let n = 0; n < 10; n += 1) {
      await world.client.webhooks.createWebhook({
        deployment,
        webhook: { name: `app-${n}`, url: "https://example.com" },
      });
    }
    await expect(create("https://example.com")).rejects.toThrow("has 10 webhooks");
    await expect(
      world.client.webhooks.createWebhook({
        deployment,
        webhook: { name: "app-1", url: "https://example.com" },
      }),
    ).rejects.toThrow("has a webhook app-1");
  });

  it.each(DATABASES)(
    "miss no end of a task, however often their node is killed before it is delivered, on %s",
    async (name, newDatabase) => {
      const database = await newDatabase();
      await using world = await startWorld(database);
      await using receiver = await Receiver.start();
      await world.client.webhooks.createWebhook({
        deployment,
        webhook: { name: "app", url: receiver.url },
      });
      await world.platform[Symbol.asyncDispose]();
      const spawn = async () => {
        const program = new Program(["start", "--port", "0", "--data", world.folder.data], {
          cwd: world.folder.path,
          env: {
            TESSERA_ALLOW_EGRESS: "127.0.0.1",
            ...(database !== undefined && { DATABASE_URL: database }),
          },
          limitMs: 600_000,
        });
        const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
        const started = { ...world.platform.started, port: Number(port) };
        return { program, platform: { started } as World["platform"] };
      };
      /** The messages of ends that were told to callers, and of those the ones that were answered. */
      const ended = new Set<string>();
      const taken = new Set<string>();
      const take = (res: ServerResponse, { id }: Received) => {
        taken.add(id);
        res.writeHead(204).end();
      };
      for (let kill = 0; kill < KILLS; kill += 1) {
        const node = await spawn();
        await using _program = node.program;
        const due = Promise.withResolvers<void>();
        // What was left by the nodes before is taken. What this one sends of its own has no answer,
        // or every third time one, until the node is killed among them.
        const answered = kill % 3 === 2 ? 1 + (kill % TASKS) : 0;
        let sent = 0;
        receiver.answer = (res, message) => {
          if (ended.has(message.id) || answered > 0) {
            take(res, message);
          }
          sent += ended.has(message.id) ? 0 : 1;
          if (sent === Math.max(answered, 1)) {
            due.resolve();
          }
        };
        const ids = await Promise.all(
          Array.from({ length: TASKS }, async () => {
            const id = await until(
              () => submit(node).catch(() => ""),
              (text) => text !== "",
            );
            const told = await call(node.platform, deployment, `/work/get?task_id=${id}&wait=60`);
            expect(told.status).toBe(200);
            return id;
          }),
        );
        // Every third time before any need be sent.
        if (kill % 3 > 0) {
          await due.promise;
        }
        await node.program.stop("SIGKILL");
        for (const id of ids) {
          ended.add(`${id}-app`);
        }
      }
      receiver.answer = take;
      const node = await spawn();
      await using _program = node.program;
      const missing = () => [...ended].filter((id) => !taken.has(id));
      await expect.poll(missing, { timeout: 45_000 + ended.size * 100 }).toEqual([]);
      expect(new Set(receiver.ids)).toEqual(ended);
      if (KILLS > 3) {
        const { size } = ended;
        const told = `${size} ends, 0 missing, ${receiver.ids.length - size} copies under their ids`;
        console.log(`${name}: killed ${KILLS} times: ${told}`);
      }
    },
    120_000 + KILLS * 60_000,
  );
});
