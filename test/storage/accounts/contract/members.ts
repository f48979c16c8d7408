import { expect } from "vitest";
import type { It } from "../contract.ts";
import { allPages, type Platform } from "../fixtures.ts";

function removal(platform: Platform, organizationId: string, userId: string, left = false) {
  return { ...platform.deed("ada@example.com"), organizationId, userId, left };
}

export function membersContract(it: It): void {
  it("lists members by e-mail address, page by page", async (platform) => {
    const { organizationId } = await platform.setUp();
    for (const name of ["dora", "bob", "carl", "eve"]) {
      await platform.join(organizationId, `${name}@example.com`);
    }
    const pages = await allPages((after) =>
      platform.accounts.listMembers({ organizationId, limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ email }) => email.split("@")[0]))).toEqual([
      ["ada", "bob"],
      ["carl", "dora"],
      ["eve"],
    ]);
  });

  it("changes roles, and keeps one admin", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    const change = (who: string, role: "admin" | "member") =>
      accounts.changeRole({ ...platform.deed(), organizationId, userId: who, role });
    expect(await change(userId, "member")).toEqual({ outcome: "last_admin" });
    expect(await change("nobody", "member")).toEqual({ outcome: "not_found" });
    expect(await change(userId, "admin")).toMatchObject({ outcome: "changed" });
    expect(await platform.changesOf(() => change(bob, "admin"))).toEqual([`user ${bob}`]);
    expect(await change(userId, "member")).toMatchObject({
      outcome: "changed",
      member: { userId, email: "ada@example.com", role: "member" },
    });
    expect(await change(bob, "member")).toEqual({ outcome: "last_admin" });
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({
      action: "member.update",
      subject: "ada@example.com",
      details: { role: "member", previous_role: "admin" },
    });
  });

  it("lets everybody go but the last admin", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    const remove = async (who: string, left?: boolean) =>
      (await accounts.removeMember(removal(platform, organizationId, who, left))).outcome;
    expect(await remove(userId)).toBe("last_admin");
    expect(await remove(bob, true)).toBe("removed");
    expect(await remove(bob)).toBe("not_found");
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({ action: "member.leave", subject: "bob@example.com" });
    expect(await accounts.findUser({ userId: bob })).toBeDefined();
  });

  it("ends the personal tokens of who leaves for good, also when they return", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await platform.setUp();
    const bob = await platform.join(organizationId, "bob@example.com");
    const second = platform.newId("organization");
    const globex = { organizationId: second, name: "globex", displayName: "", userId: bob };
    await accounts.createOrganization({ ...platform.deed(), ...globex });
    const theirs = await platform.token(organizationId, { kind: "personal", userId: bob });
    const elsewhere = await platform.token(second, { kind: "personal", userId: bob });
    const shared = await platform.token(organizationId, { userId: bob });
    const hers = await platform.token(organizationId, { kind: "personal", userId });
    const valid = async () => {
      const secrets = [theirs, elsewhere, shared, hers].map(({ secret }) => secret.digest);
      const found = secrets.map((digest) => accounts.findCredential({ digests: [digest], nowMs }));
      return (await Promise.all(found)).map((credential) => credential !== undefined);
    };
    expect(await valid()).toEqual([true, true, true, true]);
    const remove = () => accounts.removeMember(removal(platform, organizationId, bob));
    expect(await platform.changesOf(remove)).toEqual([
      `user ${bob}`,
      `token ${theirs.token.tokenId}`,
    ]);
    expect(await valid()).toEqual([false, true, true, true]);
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({
      action: "member.remove",
      details: { personal_tokens_ended: "1", token_ids: theirs.token.tokenId },
    });
    await platform.join(organizationId, "bob@example.com", { userId: bob });
    expect(await valid()).toEqual([false, true, true, true]);
    const key = { organizationId, tokenId: theirs.token.tokenId };
    expect(await accounts.getToken(key)).toBeUndefined();
  });
}
