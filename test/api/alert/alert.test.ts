import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AlertService } from "../../../gen/tessera/v1/alert_pb.js";
import { webhookContext } from "../../../src/auth/keys.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform, violatedFields } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newMember, type Person } from "../../server/rpc/world.ts";
import { newSchema } from "../../storage/postgres/databases.ts";

const alert = AlertService.method;

describe.each(DATABASES)("AlertService on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let operator: Person;
  let member: Person;

  beforeAll(async () => {
    const mailer = { send: () => Promise.resolve() };
    platform = await TestPlatform.start(await open(newSchema()), mailer);
    company = await newCompany(platform);
    operator = await newMember(platform, company);
    member = await newMember(platform, company);
    const { userId } = operator;
    await platform.accounts.setOperator({ ...platform.deed(), userId, operator: true });
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  const create = (name: string, { headers }: Person) => {
    const rule = { name, kind: "ALERT_KIND_DISK_FREE" };
    const message = { organization: company.name, rule };
    return platform.call(alert.createAlertRule, message, { headers });
  };
  const update = (rule: object, { updateMask, by }: { updateMask: string; by: Person }) =>
    platform.call(
      alert.updateAlertRule,
      { organization: company.name, rule, updateMask },
      { headers: by.headers },
    );

  it("lets operators alone make and change a rule of the disks of nodes, and others stop it", async () => {
    expect((await create("disk", member)).outcome).toBe("OPERATOR_REQUIRED");
    expect((await create("disk", operator)).outcome).toBe("ok");
    const stopped = { name: "disk", threshold: 50, disabled: true };
    for (const [rule, updateMask] of [
      [{ name: "disk", threshold: 50 }, "threshold"],
      // What a mask leaves out does not count as what is asked.
      [stopped, "threshold"],
      [stopped, "receivers"],
      [stopped, "threshold,disabled"],
      [stopped, "*"],
      [{ name: "disk" }, "disabled"],
    ] as const) {
      const { outcome } = await update(rule, { updateMask, by: member });
      expect(outcome, updateMask).toBe("OPERATOR_REQUIRED");
    }
    const { body } = await update(stopped, { updateMask: "disabled", by: member });
    expect(body).toMatchObject({ disabled: true, threshold: 10 });
    const changed = await update(stopped, { updateMask: "threshold", by: operator });
    expect(changed.body).toMatchObject({ threshold: 50 });
  });

  it("lists what fires or what is pending, not both at once", async () => {
    const list = (asked: object) =>
      platform.call(
        alert.listAlerts,
        { organization: company.name, ...asked },
        { headers: member.headers },
      );
    expect((await list({ firing: true })).outcome).toBe("ok");
    expect((await list({ pending: true })).outcome).toBe("ok");
    const both = await list({ firing: true, pending: true });
    expect([both.outcome, violatedFields(both)]).toEqual(["REQUEST_INVALID", ["pending"]]);
  });

  it("moves a receiver to another address, with the checks of its creation, and keeps its secret", async () => {
    const { name: organization, admin } = company;
    const by = (person: Person) => ({ headers: person.headers });
    const make = async (name: string, kind: string, address: string) => {
      const receiver = { name, kind: `ALERT_RECEIVER_KIND_${kind}`, address };
      const made = await platform.call(
        alert.createAlertReceiver,
        { organization, receiver },
        by(admin),
      );
      expect(made.outcome, name).toBe("ok");
    };
    const move = (name: string, address: string, person = member) =>
      platform.call(
        alert.updateAlertReceiver,
        { organization, receiver: { name, address } },
        by(person),
      );
    const named = (name: string) => ({
      organizationId: company.organizationId,
      deploymentId: company.organizationId,
      name,
    });
    const sealedOf = async (name: string) => {
      const found = await platform.storage.hosting.getSealedWebhook(named(name));
      return found === undefined
        ? ""
        : platform.keys.unseal(found.sealed, webhookContext({ ...found }));
    };
    await make("app", "WEBHOOK", "https://example.com/told");
    await make("chat", "SLACK", "https://hooks.slack.com/services/T0/B0/one");
    await make("ops", "MAIL", "ops@example.com");

    const secret = await sealedOf("app");
    const moved = await move("app", "https://example.org/other");
    expect(moved.body).toMatchObject({ address: "https://example.org/other", version: 2 });
    expect(await sealedOf("app")).toBe(secret);
    const url = "https://hooks.slack.com/services/T0/B0/two";
    expect((await move("chat", url)).body.address).toBe("https://hooks.slack.com/");
    expect(await sealedOf("chat")).toBe(url);
    expect((await move("ops", member.email)).body.address).toBe(member.email);

    for (const [name, address] of [
      ["app", "http://10.0.0.1/"],
      ["app", "ops@example.com"],
      ["chat", "http://169.254.169.254/"],
      ["ops", "https://example.com/"],
      ["ops", ""],
    ] as const) {
      const updateMask = "address";
      const receiver = { name, address };
      const answer = await platform.call(
        alert.updateAlertReceiver,
        { organization, receiver, updateMask },
        by(member),
      );
      expect(violatedFields(answer), `${name} ${address}`).toEqual(["receiver.address"]);
    }
    expect((await move("ops", "other@example.com")).outcome).toBe("ADMIN_REQUIRED");
    expect((await move("ops", "other@example.com", admin)).outcome).toBe("ok");
    expect((await move("gone", "https://example.com/")).outcome).toBe("ALERT_NOT_FOUND");
  });

  it("lets two people who change a rule or a receiver see that there are two", async () => {
    const { headers } = member;
    const query = `organization=${company.name}`;
    const kind = "failures";
    const made = await platform.rest(
      "POST",
      "/api/v1/alertRules",
      { organization: company.name, rule: { name: "shared", kind } },
      { headers },
    );
    expect(made.body.version).toBe(1);
    const receiver = { name: "both", kind: "webhook", address: "https://example.com/told" };
    const asked = { organization: company.name, receiver };
    await platform.rest("POST", "/api/v1/alertReceivers", asked, { headers });
    for (const [path, change, other] of [
      ["alertRules/shared", { threshold: 9 }, { hold: "180s" }],
      ["alertReceivers/both", { address: "https://example.com/a" }, { disabled: true }],
    ] as const) {
      const patch = (body: object, ifMatch: string) =>
        platform.rest("PATCH", `/api/v1/${path}?${query}`, body, {
          headers: { ...headers, ...(ifMatch && { "if-match": ifMatch }) },
        });
      const first = await patch(change, '"1"');
      expect(first.body, path).toMatchObject({ ...change, version: 2 });
      expect(first.headers.get("etag")).toBe('"2"');
      const second = await patch(other, '"1"');
      expect([second.status, second.outcome], path).toEqual([412, "VERSION_CONFLICT"]);
      expect(second.text).toContain("was changed by somebody else meanwhile: read it again");
      expect((await patch({ ...other, version: 1 }, "")).status).toBe(409);
      const silence = { organization: company.name, name: "shared" };
      expect((await platform.call(alert.silenceAlertRule, silence, { headers })).outcome).toBe(
        "ok",
      );
      expect((await patch(other, '"2"')).body, path).toMatchObject({
        ...change,
        ...other,
        version: 3,
      });
    }
  });

  it("sends a delivery again, and counts that as a mail where it is one", async () => {
    const { hosting } = platform.storage;
    const { organizationId, name: organization } = company;
    const key = { organizationId, deploymentId: organizationId };
    const { headers } = member;
    for (const [name, kind] of [
      ["again-app", "webhook"],
      ["again-ops", "mail"],
    ] as const) {
      await hosting.createWebhook({
        ...platform.deed(),
        ...{ ...key, name, webhookId: platform.newId(), kind, url: "https://example.com" },
        ...{ ends: [], endpoint: "", namedOnly: false, sealed: "", limit: 100 },
      });
      const deliveryId = `${name}-1`;
      const test = { ...key, name, deliveryId, body: '{"type":"alert.test"}' };
      await hosting.addTestDelivery({ ...platform.deed(), ...test });
      const again = () =>
        platform.call(alert.redeliverAlert, { organization, deliveryId }, { headers });
      expect((await again()).body).toMatchObject({
        id: deliveryId,
        webhook: name,
        body: test.body,
      });
      const read = await platform.call(
        alert.getAlertDelivery,
        { organization, deliveryId },
        { headers },
      );
      expect(read.body).toMatchObject({ id: deliveryId, body: test.body });
      const outcomes = new Set<string>();
      for (let count = 0; count < 60; count++) {
        outcomes.add((await again()).outcome);
      }
      expect([...outcomes], name).toEqual(kind === "mail" ? ["ok", "RATE_LIMITED"] : ["ok"]);
      await hosting.updateWebhook({ ...platform.deed(), ...key, name, enabled: false });
      expect((await again()).outcome).toBe("WEBHOOK_DISABLED");
    }
    const gone = { organization, deliveryId: "gone" };
    expect((await platform.call(alert.redeliverAlert, gone, { headers })).outcome).toBe(
      "ALERT_NOT_FOUND",
    );
  });
});
