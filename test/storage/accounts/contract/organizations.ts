import { expect } from "vitest";
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

  it("keeps the audit logs of organizations apart, newest first, page by page", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const other = { organizationId: platform.newId("organization"), name: "globex", userId };
    await accounts.createOrganization({ ...platform.deed(), ...other, displayName: "" });
    for (const subject of ["one", "two", "three"]) {
      const event = { action: "token.reveal", subjectId: "t", subject, details: { why: "asked" } };
      await accounts.recordAuditEvent({ ...platform.deed("ada"), organizationId, ...event });
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
}
