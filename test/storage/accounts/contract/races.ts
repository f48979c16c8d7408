/**
 * Calls at the same moment: the rules hold whoever comes first. In Postgres
 * they run on connections of their own.
 */
import { expect } from "vitest";
import type { It } from "../contract.ts";
import { DAY_MS, FIELDS, type Platform } from "../fixtures.ts";

/** How often each outcome came. */
async function outcomes(
  calls: readonly Promise<{ readonly outcome: string }>[],
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { outcome } of await Promise.all(calls)) {
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

function times<Result>(count: number, call: (index: number) => Result): Result[] {
  return Array.from({ length: count }, (_, index) => call(index));
}

function loginToken(platform: Platform) {
  const { name: _, ...fields } = FIELDS;
  return { tokenId: platform.newId("token"), secret: platform.secret(), fields };
}

/** Connections that a pool may have; calls only meet on those that are open. */
const CONNECTIONS = 6;

export function racesContract(declare: It): void {
  const it: It = (name, run) =>
    declare(name, async (platform) => {
      await Promise.all(times(CONNECTIONS, () => platform.accounts.needsSetup()));
      await run(platform);
    });

  it("is set up once", async (platform) => {
    const { accounts, nowMs } = platform;
    await accounts.putSetupCode({ digest: "code", nowMs });
    const setUps = times(5, (index) =>
      accounts.setUp({
        ...platform.deed(),
        ...(index % 2 === 0 && { setupDigest: "code" }),
        organizationId: platform.newId("organization"),
        organization: `acme-${index}`,
        userId: platform.newId("user"),
        email: `admin-${index}@example.com`,
        displayName: "",
        passwordHash: "hash",
      }),
    );
    expect(await outcomes(setUps)).toEqual({ done: 1, already_done: 4 });
    expect((await accounts.listOrganizations({ limit: 10 })).items).toHaveLength(1);
  });

  it("keeps an admin when all admins go at once", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const admins = [userId];
    for (const name of ["bob", "carl", "dora"]) {
      admins.push(await platform.join(organizationId, `${name}@example.com`, { role: "admin" }));
    }
    const goes = admins.map((who, index) => {
      const key = { ...platform.deed(), organizationId, userId: who };
      return index % 2 === 0
        ? accounts.changeRole({ ...key, role: "member" })
        : accounts.removeMember({ ...key, left: true });
    });
    expect((await outcomes(goes)).last_admin).toBe(1);
    const { items } = await accounts.listMembers({ organizationId, limit: 10 });
    expect(items.filter(({ role }) => role === "admin")).toHaveLength(1);
  });

  it("gives a name to one organization and to one deployment", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const organizations = times(4, () => {
      const ids = { organizationId: platform.newId("organization"), userId };
      const names = { name: "globex", displayName: "" };
      return accounts.createOrganization({ ...platform.deed(), ...ids, ...names });
    });
    expect(await outcomes(organizations)).toEqual({ created: 1, name_taken: 3 });
    const deployments = times(4, () => {
      const terms = { name: "summarizer", authorization: true, limit: 10 };
      const ids = { organizationId, deploymentId: platform.newId("deployment") };
      return accounts.createDeployment({ ...platform.deed(), ...ids, ...terms });
    });
    expect(await outcomes(deployments)).toEqual({ created: 1, name_taken: 3 });
  });

  it("lets one person join by an invitation", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const { invitationId } = await platform.invite(organizationId, "bob@example.com");
    const newUser = { email: "bob@example.com", displayName: "" };
    const joins = times(4, () => {
      const userId = platform.newId("user");
      return accounts.acceptInvitation({ ...platform.deed(), invitationId, userId, newUser });
    });
    expect(await outcomes(joins)).toEqual({ joined: 1, not_found: 3 });
    expect((await accounts.listMembers({ organizationId, limit: 10 })).items).toHaveLength(2);
  });

  it("makes one account for a person who accepts two invitations at once", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const second = platform.newId("organization");
    const globex = { organizationId: second, name: "globex", displayName: "", userId };
    await accounts.createOrganization({ ...platform.deed(), ...globex });
    const invitations = [
      await platform.invite(organizationId, "bob@example.com"),
      await platform.invite(second, "bob@example.com"),
    ];
    const newUser = { email: "bob@example.com", displayName: "" };
    const joins = invitations.map(({ invitationId }) => {
      const bob = platform.newId("user");
      return accounts.acceptInvitation({
        ...platform.deed(),
        invitationId,
        userId: bob,
        newUser,
      });
    });
    expect(await outcomes(joins)).toEqual({ joined: 1, user_exists: 1 });
  });

  it("keeps one open invitation of an address, and the limit", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const invite = (email: string) => {
      const ids = { invitationId: platform.newId("invitation"), digest: platform.newId("digest") };
      const terms = { role: "member", expiresAtMs: nowMs + DAY_MS, limit: 3 } as const;
      return accounts.invite({ ...platform.deed(), organizationId, ...ids, email, ...terms });
    };
    await Promise.all(times(4, () => invite("bob@example.com")));
    expect(await outcomes(times(4, (index) => invite(`p${index}@example.com`)))).toEqual({
      invited: 2,
      limit: 2,
    });
    expect(await accounts.listInvitations({ organizationId, nowMs, limit: 10 })).toHaveLength(3);
  });

  it("redeems a code once", async (platform) => {
    const { accounts, nowMs } = platform;
    const who = await platform.setUp();
    const code = { digest: "code", codeChallenge: "c", redirectUri: "http://127.0.0.1:1/" };
    const terms = { hostName: "host", expiresAtMs: nowMs + 60_000 };
    await accounts.createLoginCode({ ...platform.deed(), ...who, ...code, ...terms });
    const redemptions = times(4, () =>
      accounts.redeemLoginCode({ ...platform.deed(), ...code, token: loginToken(platform) }),
    );
    expect(await outcomes(redemptions)).toEqual({ redeemed: 1, invalid: 3 });
  });

  it("redeems a login by code once", async (platform) => {
    const { accounts, nowMs } = platform;
    const who = await platform.setUp();
    const codes = { deviceDigest: "device", userCodeDigest: "user" };
    const asker = { hostName: "host", address: "::1", intervalMs: 0, limit: 5 };
    const expiresAtMs = nowMs + 60_000;
    await accounts.createDeviceLogin({ ...codes, ...asker, nowMs, expiresAtMs });
    const answers = times(3, () => {
      const { userCodeDigest } = codes;
      return accounts.answerDeviceLogin({
        ...platform.deed(),
        ...who,
        userCodeDigest,
        approve: true,
      });
    });
    expect((await Promise.all(answers)).filter(Boolean)).toHaveLength(1);
    const redemptions = times(4, () => {
      const token = loginToken(platform);
      return accounts.redeemDeviceLogin({ ...platform.deed(), deviceDigest: "device", token });
    });
    expect(await outcomes(redemptions)).toEqual({ redeemed: 1, invalid: 3 });
  });

  it("bounds tokens, deployments and device logins", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const tokens = times(6, () =>
      accounts.createToken(platform.newToken(organizationId, { limit: 3 })),
    );
    expect(await outcomes(tokens)).toEqual({ created: 3, limit: 3 });
    const userId = await platform.join(organizationId, "bob@example.com");
    const theirs = times(6, () => {
      const options = { kind: "personal", userId, personalLimit: 2 } as const;
      return accounts.createToken(platform.newToken(organizationId, options));
    });
    expect(await outcomes(theirs)).toEqual({ created: 2, personal_limit: 4 });
    const logins = times(6, (index) =>
      accounts.createDeviceLogin({
        deviceDigest: `device ${index}`,
        userCodeDigest: `user ${index}`,
        hostName: "",
        address: "",
        nowMs,
        expiresAtMs: nowMs + 60_000,
        intervalMs: 5_000,
        limit: 2,
      }),
    );
    expect((await Promise.all(logins)).filter(Boolean)).toHaveLength(2);
  });

  it("leaves two values of a token that is rotated many times at once", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const { token, secret } = await platform.token(organizationId);
    const secrets = [secret, ...times(5, () => platform.secret())];
    const rotations = secrets.slice(1).map((next) => {
      const rotation = { organizationId, tokenId: token.tokenId, graceMs: 60_000 };
      return accounts.rotateToken({ ...platform.deed(), ...rotation, secret: next });
    });
    const versions = (await Promise.all(rotations)).map((rotated) => rotated?.version);
    expect(versions.sort()).toEqual([2, 3, 4, 5, 6]);
    const found = secrets.map(({ digest }) =>
      accounts.findCredential({ digests: [digest], nowMs }),
    );
    expect((await Promise.all(found)).filter(Boolean)).toHaveLength(2);
  });

  it("lets one of two changes of the same version win", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const { token } = await platform.token(organizationId);
    const updates = times(4, (index) => {
      const change = { fields: { name: `name ${index}` }, version: 1 };
      const key = { organizationId, tokenId: token.tokenId };
      return accounts.updateToken({ ...platform.deed(), ...key, ...change });
    });
    expect(await outcomes(updates)).toEqual({ updated: 1, version_conflict: 3 });
  });

  it("leaves no personal token of a person who leaves while making some", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const userId = await platform.join(organizationId, "bob@example.com");
    const tokens = times(6, () => platform.newToken(organizationId, { kind: "personal", userId }));
    const calls: Promise<unknown>[] = tokens.map((token) => accounts.createToken(token));
    const leave = { organizationId, userId, left: true };
    calls.splice(3, 0, accounts.removeMember({ ...platform.deed(), ...leave }));
    await Promise.all(calls);
    await platform.join(organizationId, "bob@example.com", { userId });
    const found = tokens.map(({ secret }) =>
      accounts.findCredential({ digests: [secret.digest], nowMs }),
    );
    expect((await Promise.all(found)).filter(Boolean)).toEqual([]);
  });

  it("keeps no sealed value of a token made while reveal is switched off", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const calls: Promise<unknown>[] = times(6, () =>
      platform.token(organizationId, { secret: platform.secret("sealed") }),
    );
    const off = { ...platform.deed(), organizationId, revealEnabled: false };
    calls.splice(3, 0, accounts.updateOrganization(off));
    await Promise.all(calls);
    expect((await accounts.listSealed({ limit: 10 })).items).toEqual([]);
  });

  it("gives no token a deployment that is deleted at the same time", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    await platform.deployment(organizationId, "summarizer");
    const tokens = times(6, () =>
      platform.newToken(organizationId, { fields: { deployments: ["summarizer"] } }),
    );
    const calls: Promise<unknown>[] = tokens.map((token) => accounts.createToken(token));
    const remove = { ...platform.deed(), organizationId, name: "summarizer" };
    calls.splice(3, 0, accounts.deleteDeployment(remove));
    await Promise.all(calls);
    await platform.deployment(organizationId, "summarizer");
    const { items } = await accounts.listTokens({ organizationId, viewerId: undefined, limit: 10 });
    expect(items.flatMap(({ deployments }) => deployments)).toEqual([]);
  });

  it("does not wait in a circle when everything happens at once", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const second = { organizationId: platform.newId("organization"), userId };
    const globex = { name: "globex", displayName: "" };
    await accounts.createOrganization({ ...platform.deed(), ...second, ...globex });
    const bob = await platform.join(organizationId, "bob@example.com");
    const tokens = await Promise.all(
      times(12, (index) => {
        const organization = index % 2 === 0 ? organizationId : second.organizationId;
        return platform.token(
          organization,
          index % 4 === 0 ? { kind: "personal", userId: bob } : {},
        );
      }),
    );
    const uses = tokens.map(({ token }) => ({ ...token, timeMs: platform.nowMs, address: "::1" }));
    const calls: Promise<unknown>[] = times(10, (index) => [
      accounts.recordUses({ uses: index % 2 === 0 ? uses : [...uses].reverse() }),
      accounts.setPassword({ ...platform.deed(), userId, passwordHash: `hash ${index}` }),
      accounts.openSession({ ...platform.deed(), userId, session: platform.session() }),
      accounts.announceKeys(platform.deed()),
      platform.token(organizationId),
      platform.token(second.organizationId),
      accounts.pruneAccounts({ nowMs: platform.nowMs + 90 * DAY_MS, limit: 5 }),
    ]).flat();
    const leave = { organizationId, userId: bob, left: true };
    calls.push(accounts.removeMember({ ...platform.deed(), ...leave }));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "rejected")).toEqual([]);
  });
}
