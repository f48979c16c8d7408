import { expect } from "vitest";
import type { AuditAction } from "../../../../src/storage/accounts/audit.ts";
import type { AuditFilter } from "../../../../src/storage/accounts/organizations.ts";
import type { It } from "../contract.ts";
import { allPages } from "../fixtures.ts";

export function organizationsContract(it: It): void {
  it("creates organizations with their creator as admin, each name once", async (platform) => {
    const { accounts, nowMs } = platform;
    const { userId } = await platform.setUp();
    const organizationId = platform.newId("organization");
    const globex = { organizationId, name: "globex", displayName: "Globex", userId };
    const answer = await accounts.createOrganization({ ...platform.deed(), ...globex });
    const organization = {
      organizationId,
      name: "globex",
      displayName: "Globex",
      createdAtMs: nowMs,
      monitoringEnabled: false,
      revealEnabled: true,
      invitationLinksEnabled: false,
    };
    expect(answer).toEqual({ outcome: "created", organization });
    expect(await accounts.findOrganization({ name: "globex" })).toEqual(organization);
    expect(await accounts.findOrganization({ organizationId })).toEqual(organization);
    expect(await accounts.findOrganization({ name: "initech" })).toBeUndefined();
    const { items } = await accounts.listMembers({ organizationId, limit: 10 });
    expect(items).toMatchObject([{ userId, role: "admin", email: "ada@example.com" }]);
    const again = { ...globex, organizationId: platform.newId("organization") };
    expect(await accounts.createOrganization({ ...platform.deed(), ...again })).toEqual({
      outcome: "name_taken",
    });
    expect(await accounts.findOrganization({ organizationId: again.organizationId })).toBe(
      undefined,
    );
  });

  it("are no more than the limit, also when they are created at once", async (platform) => {
    const { accounts } = platform;
    const { userId } = await platform.setUp();
    const create = (name: string) =>
      accounts.createOrganization({
        ...platform.deed(),
        organizationId: platform.newId("organization"),
        name,
        displayName: "",
        userId,
        limit: 3,
      });
    const made = await Promise.all(["one", "two", "three", "four", "five"].map(create));
    expect(made.map(({ outcome }) => outcome).sort()).toEqual([
      "created",
      "created",
      "limit",
      "limit",
      "limit",
    ]);
  });

  it("lists organizations by name with their number of members, page by page", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    await platform.join(organizationId, "bob@example.com");
    for (const name of ["zeta", "globex", "initech"]) {
      const ids = { organizationId: platform.newId("organization"), userId };
      await accounts.createOrganization({ ...platform.deed(), ...ids, name, displayName: "" });
    }
    const pages = await allPages((after) =>
      accounts.listOrganizations({ limit: 2, ...(after !== undefined && { after }) }),
    );
    expect(pages.map((page) => page.map(({ name, members }) => `${name} ${members}`))).toEqual([
      ["acme 2", "globex 1"],
      ["initech 1", "zeta 1"],
    ]);
  });

  it("changes what is given and keeps the rest, and says what changed", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const update = { ...platform.deed(), organizationId, monitoringEnabled: true };
    expect(await platform.changesOf(() => accounts.updateOrganization(update))).toEqual([
      `organization ${organizationId}`,
    ]);
    await accounts.updateOrganization({ ...platform.deed(), organizationId, displayName: "Acme" });
    expect(await accounts.findOrganization({ organizationId })).toMatchObject({
      displayName: "Acme",
      monitoringEnabled: true,
      revealEnabled: true,
    });
    const events = await platform.audit(organizationId);
    expect(events.map(({ details }) => details)).toMatchObject([
      { display_name: "Acme" },
      { monitoring_enabled: "true" },
      { setup: "true" },
    ]);
    const none = { ...platform.deed(), organizationId: "none", displayName: "x" };
    expect(await accounts.updateOrganization(none)).toBeUndefined();
  });

  it("keeps the first request for monitoring until the operator answers", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const ask = () => accounts.askForMonitoring({ ...platform.deed(), organizationId });
    const set = (fields: { monitoringEnabled?: boolean; displayName?: string }) =>
      accounts.updateOrganization({ ...platform.deed(), organizationId, ...fields });
    const first = platform.deed();
    const monitoringAsked = { by: first.by.name, atMs: first.nowMs };
    const asking = await accounts.askForMonitoring({ ...first, organizationId });
    expect(asking).toMatchObject({ monitoringEnabled: false, monitoringAsked });
    const later = { ...platform.deed(), organizationId, nowMs: first.nowMs + 1_000 };
    expect(await accounts.askForMonitoring(later)).toMatchObject({ monitoringAsked });
    expect(await set({ displayName: "Acme" })).toMatchObject({ monitoringAsked });
    const listed = await accounts.listOrganizations({ limit: 10 });
    expect(listed.items).toMatchObject([{ organizationId, monitoringAsked }]);

    for (const monitoringEnabled of [false, true]) {
      const answered = await set({ monitoringEnabled });
      expect(answered).not.toHaveProperty("monitoringAsked");
      const asksAgain = await ask();
      expect(asksAgain?.monitoringAsked === undefined).toBe(monitoringEnabled);
      expect(await accounts.findOrganization({ organizationId })).toEqual(asksAgain);
    }
    const actions = (await platform.audit(organizationId)).map(({ action }) => action);
    expect(actions.filter((one) => one === "organization.ask_for_monitoring")).toHaveLength(2);
    const none = { ...platform.deed(), organizationId: "none" };
    expect(await accounts.askForMonitoring(none)).toBeUndefined();
  });

  it("keeps the audit logs of organizations apart, newest first, page by page", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = { organizationId: platform.newId("organization"), name: "globex", userId };
    await accounts.createOrganization({ ...platform.deed(), ...other, displayName: "" });
    for (const subject of ["one", "two", "three"]) {
      await accounts.recordAuditEvent({
        ...{ ...platform.deed("ada"), organizationId, action: "token.reveal", subjectId: "t" },
        ...{ subject, details: { why: "asked" } },
      });
    }
    const pages = await allPages((after) =>
      accounts.listAuditEvents({ organizationId, limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ subject }) => subject))).toEqual([
      ["three", "two"],
      ["one", "acme"],
    ]);
    expect(pages[0]?.[0]).toMatchObject({
      action: "token.reveal",
      actor: "ada",
      address: "203.0.113.9",
      details: { why: "asked" },
    });
  });

  it("lists audit events by actor, action, subject and time", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const record = async (actor: string, action: AuditAction, subject: string): Promise<string> => {
      const deed = platform.deed(actor);
      const event = { action, subjectId: `id of ${subject}`, subject };
      await accounts.recordAuditEvent({ ...deed, organizationId, ...event });
      return deed.eventId;
    };
    await record("ada", "token.reveal", "one");
    const second = await record("bob", "token.reveal", "two");
    await record("bob", "token_like.reveal" as AuditAction, "three");
    const listed = async (filter: AuditFilter & { after?: string }) => {
      const { items } = await accounts.listAuditEvents({ organizationId, limit: 10, ...filter });
      return items.map(({ subject }) => subject);
    };
    expect(await listed({ actor: "bob" })).toEqual(["three", "two"]);
    expect(await listed({ action: "token" })).toEqual(["two", "one"]);
    expect(await listed({ action: "token.reveal", actor: "ada" })).toEqual(["one"]);
    expect(await listed({ subject: "three" })).toEqual(["three"]);
    expect(await listed({ subject: "id of one" })).toEqual(["one"]);
    expect(await listed({ from: second })).toEqual(["three", "two"]);
    expect(await listed({ after: second, action: "token" })).toEqual(["one"]);
    expect(await listed({ actor: "nobody" })).toEqual([]);
  });

  it("ends a page of audit events where it has looked at two thousand", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const wanted = { action: "token.reveal" as const, subjectId: "t", subject: "wanted" };
    await accounts.recordAuditEvent({ ...platform.deed("ada"), organizationId, ...wanted });
    for (let batch = 0; batch < 20; batch++) {
      await Promise.all(
        Array.from({ length: 100 }, () =>
          accounts.recordAuditEvent({
            ...platform.deed("bob"),
            organizationId,
            ...{ ...wanted, subject: "other" },
          }),
        ),
      );
    }
    const pages = await allPages((after) =>
      accounts.listAuditEvents({ organizationId, limit: 5, actor: "ada", ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ subject }) => subject))).toEqual([[], ["wanted"]]);
  });
}
