/** What each kind of receiver is sent, over real sockets. */
import { pino } from "pino";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { slackBody } from "../../../src/hosting/alerts/forms.ts";
import { Deliverer } from "../../../src/hosting/webhooks/deliverer.ts";
import { newWebhookSecret, secretsText } from "../../../src/hosting/webhooks/signature.ts";
import { alertMail } from "../../../src/server/mail/letter.ts";
import type { Mail } from "../../../src/server/mail/mailer.ts";
import type { AlertMessage } from "../../../src/storage/hosting/alerts.ts";
import type { ReceiverKind } from "../../../src/storage/hosting/webhooks.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { HostingPlatform } from "../../storage/hosting/fixtures.ts";
import { type Received, Receiver } from "../webhooks/receiver.ts";

const MINUTE_MS = 60_000;

const MESSAGE: AlertMessage = {
  type: "alert.firing",
  timestamp: "2026-01-31T12:00:00.000Z",
  data: {
    ...{ organization: "acme", rule: "slow", kind: "oldest_task_waits", more: 3 },
    condition: "the oldest task waits for more than 300 s",
    alerts: [
      {
        ...{ id: "a", subject: "deployment <ocr>", text: "it waits & waits" },
        ...{ since: "2026-01-31T11:59:00.000Z", fired_at: "2026-01-31T12:00:00.000Z" },
      },
    ],
    url: "https://tessera.example.com/o/acme/alerts",
  },
};

/** A platform with one receiver, of which an alert fires. */
async function firing(kind: ReceiverKind, { url = "https://x.example.com", sealed = "[]" }) {
  const storage = new SqliteStorage(":memory:");
  await storage.start();
  const platform = await HostingPlatform.on(storage);
  platform.nowMs = Date.now();
  const { hosting, organizationId } = platform;
  const key = { organizationId, deploymentId: organizationId };
  await hosting.createWebhook({
    ...{ ...platform.deed(), ...key, name: "app", webhookId: "app-id", kind, url, sealed },
    ...{ ends: [], endpoint: "", namedOnly: false, limit: 1 },
  });
  await hosting.createAlertRule({
    ...{ ...platform.deed(), organizationId, name: "slow", ruleId: "slow-id", kind: "failures" },
    ...{ threshold: 5, deployments: [], receivers: ["app"], holdMs: MINUTE_MS, limit: 1 },
  });
  for (const nowMs of [platform.nowMs - MINUTE_MS, platform.nowMs]) {
    await hosting.takeAlertRules({ claim: "claim", nowMs, ttlMs: 1, limit: 1 });
    await hosting.recordAlerts({
      ...{ organizationId, ruleId: "slow-id", claim: "claim", nowMs, limit: 10, newId: "alert" },
      platformUrl: "https://tessera.example.com",
      found: [{ subject: "deployment/ocr", name: "deployment ocr", text: "all tasks fail" }],
    });
  }
  return {
    async delivery(state: string) {
      const read = async () => (await hosting.listDeliveries({ ...key, limit: 1 })).items[0];
      await expect.poll(async () => (await read())?.state, { timeout: 30_000 }).toBe(state);
      return await read();
    },
    deliver: (mail?: (address: string, message: AlertMessage) => Promise<void>) =>
      new Deliverer({
        ...{ hosting, storage, changes: { listen: () => () => {} }, now: Date.now, mail },
        ...{ platformUrl: "https://tessera.example.com", allowedEgress: ["127.0.0.1"] },
        keys: { unseal: (text: string) => text },
        newId: createIdSource(Date.now),
        log: pino({ level: "silent" }),
        retryPausesMs: [1],
      }),
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}

describe("a receiver of alerts", () => {
  it("that is a webhook gets a message that the published library verifies", async () => {
    await using receiver = await Receiver.start();
    const secret = newWebhookSecret();
    await using at = await firing("webhook", {
      url: receiver.url,
      sealed: secretsText([{ secret }]),
    });
    await using _deliverer = at.deliver();
    const [{ body, headers }] = (await receiver.has(1)) as [Received];
    const message = new Webhook(secret).verify(body, headers as Record<string, string>);
    expect(message).toMatchObject({
      type: "alert.firing",
      data: {
        ...{ organization: "acme", rule: "slow", kind: "failures", more: 0 },
        alerts: [{ subject: "deployment ocr", text: "all tasks fail" }],
      },
    });
    expect(await at.delivery("delivered")).toMatchObject({ alert: "firing", webhook: "app" });
  });

  it("of Slack gets its JSON at the URL that is a secret", async () => {
    await using receiver = await Receiver.start();
    await using at = await firing("slack", {
      url: "https://hooks.slack.com/",
      sealed: `${receiver.url}/services/T0/B0/hidden`,
    });
    await using _deliverer = at.deliver();
    const [{ path, body, headers }] = (await receiver.has(1)) as [Received];
    expect(path).toBe("/services/T0/B0/hidden");
    expect(headers["webhook-signature"]).toBeUndefined();
    expect(JSON.parse(body.toString())).toEqual({
      text: expect.stringContaining("*Firing: slow, deployment ocr (acme)*"),
    });
    await at.delivery("delivered");
  });

  it("by mail is written to until the mail server takes it", async () => {
    await using at = await firing("mail", { url: "mailto:ops@example.com" });
    const mails: string[] = [];
    await using _deliverer = at.deliver(async (address, { type }) => {
      mails.push(`${address} ${type}`);
      if (mails.length === 1) {
        throw new Error("busy");
      }
    });
    const delivery = await at.delivery("delivered");
    expect(mails).toEqual(Array(2).fill("ops@example.com alert.firing"));
    expect(delivery?.answers).toMatchObject([
      { status: 0, error: "the mail server did not take it" },
      { status: 250 },
    ]);
  });

  it("by mail is given up, with the reason, where there is no mail server", async () => {
    await using at = await firing("mail", { url: "mailto:ops@example.com" });
    await using _deliverer = at.deliver();
    const delivery = await at.delivery("failed");
    expect(delivery?.answers.at(-1)?.error).toContain("no mail server");
  });
});

describe("the forms of a message about alerts", () => {
  it("say the same to Slack, which reads some characters as its own", () => {
    expect(JSON.parse(slackBody(MESSAGE)).text.split("\n")).toEqual([
      "🔴 *Firing: slow, 4 alerts (acme)*",
      "• deployment &lt;ocr&gt;: it waits &amp; waits",
      "• and 3 more",
      "_the oldest task waits for more than 300 s_",
      "<https://tessera.example.com/o/acme/alerts|Open in Tessera>",
    ]);
  });

  it("say the same in a mail", () => {
    const mail: Mail = alertMail("ops@example.com", MESSAGE);
    expect(mail.subject).toBe("Firing: slow, 4 alerts (acme)");
    expect(mail.text).toContain("deployment <ocr>: it waits & waits");
    expect(mail.html).toContain("deployment &lt;ocr&gt;: it waits &amp; waits");
    expect(mail.text).toContain("https://tessera.example.com/o/acme/alerts");
  });
});
