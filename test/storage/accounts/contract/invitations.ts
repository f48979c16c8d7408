import { expect } from "vitest";
import type { It } from "../contract.ts";
import { DAY_MS } from "../fixtures.ts";

export function invitationsContract(it: It): void {
  it("finds open invitations by link and by e-mail address", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { digest, ...invitation } = await platform.invite(organizationId, "bob@example.com");
    expect(invitation).toMatchObject({ organization: "acme", createdBy: "ada@example.com" });
    expect(await accounts.findInvitation({ digest, nowMs })).toEqual(invitation);
    expect(await accounts.findInvitation({ email: "bob@example.com", nowMs })).toEqual(invitation);
    expect(await accounts.listInvitations({ organizationId, nowMs, limit: 5 })).toEqual([
      invitation,
    ]);
    const later = nowMs + 7 * DAY_MS;
    expect(await accounts.findInvitation({ digest, nowMs: later })).toBeUndefined();
    expect(await accounts.listInvitations({ organizationId, nowMs: later, limit: 5 })).toEqual([]);
  });

  it("replaces the open invitation of the same address", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const first = await platform.invite(organizationId, "bob@example.com");
    const second = await platform.invite(organizationId, "bob@example.com", "admin");
    expect(await accounts.findInvitation({ digest: first.digest, nowMs })).toBeUndefined();
    expect(await accounts.listInvitations({ organizationId, nowMs, limit: 5 })).toMatchObject([
      { invitationId: second.invitationId, role: "admin" },
    ]);
  });

  it("refuses members, and more than so many open ones", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const invite = async (email: string, atMs = nowMs) => {
      const ids = { invitationId: platform.newId("invitation"), digest: platform.newId("digest") };
      const terms = { role: "member", expiresAtMs: nowMs + DAY_MS, limit: 2 } as const;
      const deed = { ...platform.deed(), nowMs: atMs };
      return (await accounts.invite({ ...deed, organizationId, ...ids, email, ...terms })).outcome;
    };
    expect(await invite("ada@example.com")).toBe("is_member");
    expect(await invite("bob@example.com")).toBe("invited");
    expect(await invite("carl@example.com")).toBe("invited");
    expect(await invite("dora@example.com")).toBe("limit");
    expect(await invite("carl@example.com")).toBe("invited");
    expect(await invite("dora@example.com", nowMs + DAY_MS)).toBe("invited");
  });

  it("withdraws an invitation of its own organization only", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { invitationId, digest } = await platform.invite(organizationId, "bob@example.com");
    const withdraw = (from: string) =>
      accounts.deleteInvitation({ ...platform.deed(), organizationId: from, invitationId });
    expect(await withdraw("other")).toBe(false);
    expect(await accounts.findInvitation({ digest, nowMs })).toBeDefined();
    expect(await withdraw(organizationId)).toBe(true);
    expect(await accounts.findInvitation({ digest, nowMs })).toBeUndefined();
    expect(await withdraw(organizationId)).toBe(false);
  });

  it("lets a new person join once, with a session", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { invitationId } = await platform.invite(organizationId, "bob@example.com", "admin");
    const userId = platform.newId("user");
    const session = platform.session();
    const newUser = { email: "bob@example.com", displayName: "Bob" };
    const accept = () =>
      accounts.acceptInvitation({ ...platform.deed(), invitationId, userId, newUser, session });
    expect(await platform.changesOf(accept)).toEqual([`user ${userId}`]);
    expect(await accounts.findSession({ digest: session.digest, nowMs })).toMatchObject({
      memberships: [{ organizationId, role: "admin" }],
    });
    expect(await accounts.findUser({ userId })).toMatchObject({ passwordHash: undefined });
    expect(await accept()).toEqual({ outcome: "not_found" });
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({ action: "member.join", subject: "bob@example.com" });
  });

  it("is worth nothing after its end, or to somebody else", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const { invitationId } = await platform.invite(organizationId, "bob@example.com");
    const deed = () => ({ ...platform.deed(), invitationId });
    const newUser = { email: "bob@example.com", displayName: "" };
    const late = { ...deed(), nowMs: nowMs + 7 * DAY_MS, userId: "late", newUser };
    expect(await accounts.acceptInvitation(late)).toEqual({ outcome: "not_found" });
    expect(await accounts.acceptInvitation({ ...deed(), userId })).toEqual({
      outcome: "not_found",
    });
    const other = { email: "eve@example.com", displayName: "" };
    expect(await accounts.acceptInvitation({ ...deed(), userId: "eve", newUser: other })).toEqual({
      outcome: "not_found",
    });
    expect(await accounts.findUser({ email: "eve@example.com" })).toBeUndefined();
    expect(await accounts.acceptInvitation({ ...deed(), userId: "bob", newUser })).toEqual({
      outcome: "joined",
    });
  });

  it("stays open when the new person got an account in the meantime", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    const second = platform.newId("organization");
    const globex = { organizationId: second, name: "globex", displayName: "", userId };
    await accounts.createOrganization({ ...platform.deed(), ...globex });
    const { invitationId } = await platform.invite(second, "bob@example.com");
    const newUser = { email: "bob@example.com", displayName: "" };
    const asNew = { ...platform.deed(), invitationId, userId: "another", newUser };
    expect(await accounts.acceptInvitation(asNew)).toEqual({ outcome: "user_exists" });
    const asOld = { ...platform.deed(), invitationId, userId: bob };
    expect(await accounts.acceptInvitation(asOld)).toEqual({ outcome: "joined" });
  });
}
