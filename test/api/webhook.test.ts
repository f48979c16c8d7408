import { expect, it } from "vitest";
import { WebhookService } from "../../gen/tessera/v1/webhook_pb.js";
import { NO_ACCESS } from "../../src/auth/token-rules.ts";
import { TestPlatform } from "../server/rpc/platform.ts";
import { newCompany, newDeployment, newToken } from "../server/rpc/world.ts";
import { openSqlite } from "../storage/sqlite/databases.ts";

it("failing webhooks are listed for all, with answers only where the caller may read how tasks end", async () => {
  await using platform = await TestPlatform.start(await openSqlite(":memory:"));
  const { accounts, storage } = platform;
  const company = await newCompany(platform);
  const { organizationId, name: organization } = company;
  const open = await newDeployment(platform, company, false);
  const guarded = await newDeployment(platform, company);
  for (const [name, text] of [
    [open, "an open answer"],
    [guarded, "a guarded answer"],
  ] as const) {
    const found = await accounts.findDeployment({ organizationId, name });
    const { deploymentId = "" } = found ?? {};
    const hook = { organizationId, deploymentId, name: "broken" };
    await storage.hosting.createWebhook({
      ...{ ...platform.deed(), ...hook, webhookId: platform.newId(), url: "https://example.com/" },
      ...{ ends: [], endpoint: "", namedOnly: false, sealed: "", limit: 10 },
    });
    await storage.hosting.addTestDelivery({
      ...platform.deed(),
      ...hook,
      deliveryId: name,
      body: "{}",
    });
    const nowMs = platform.now();
    const [taken] = await storage.hosting.takeDeliveries({
      ...{ claim: name, nowMs, ttlMs: 60_000, limit: 1, perWebhook: 1 },
      ...{ withoutOrganizations: [], withoutWebhooks: [] },
    });
    const answers = [{ atMs: nowMs, tookMs: 1, status: 503, text, error: "" }];
    await storage.hosting.recordDelivery({
      ...{ ...hook, webhookId: taken?.webhookId ?? "", deliveryId: name, claim: name, nowMs },
      ...{ state: "waiting", nextInMs: 60_000, answers, body: "{}", pausesMs: [0] },
    });
  }
  const answersFor = async (headers: Readonly<Record<string, string>>) => {
    const { listFailingWebhooks } = WebhookService.method;
    const { body } = await platform.call(listFailingWebhooks, { organization }, { headers });
    const webhooks: { deployment: string; answer?: { text: string } }[] = body.webhooks;
    return webhooks.map(({ deployment, answer }) => [deployment, answer?.text]);
  };
  const both = [
    [open, "an open answer"],
    [guarded, "a guarded answer"],
  ];
  expect(await answersFor(company.admin.headers)).toEqual(both);
  const developer = await newToken(platform, company);
  expect(await answersFor(developer.headers)).toEqual([both[0], [guarded, undefined]]);
  const caller = await newToken(platform, company, {
    access: { ...NO_ACCESS, developerOperations: true, protectedEndpoint: true },
    allDeployments: true,
  });
  expect(await answersFor(caller.headers)).toEqual(both);
});
