import { expect } from "vitest";
import type { It } from "../contract.ts";
import { DAY_MS, FIELDS, type Platform } from "../fixtures.ts";

const HASH = "hash of another password";

/** An account whose address nobody has proved, in the organization `acme`. */
async function unverified(platform: Platform) {
  const { organizationId } = await platform.setUp();
  const email = "bob@example.com";
  const userId = await platform.join(organizationId, email, { role: "admin", shown: true });
  return { organizationId, userId, email };
}

function verify(platform: Platform, userId: string, passwordHash?: string) {
  return platform.accounts.verifyEmail({
    ...platform.deed("bob@example.com"),
    userId,
    way: "oidc",
    ...(passwordHash !== undefined && { passwordHash }),
  });
}

async function loginsOf(platform: Platform, who: { organizationId: string; userId: string }) {
  const { accounts, nowMs } = platform;
  const { name: _, ...fields } = FIELDS;
  const token = () => ({ tokenId: platform.newId("token"), secret: platform.secret(), fields });
  const expiresAtMs = nowMs + DAY_MS;
  const redeem = { codeChallenge: "challenge", redirectUri: "http://127.0.0.1:9/" };
  const code = { digest: "code", ...redeem, hostName: "laptop", expiresAtMs };
  await accounts.createLoginCode({ ...platform.deed("bob@example.com"), ...who, ...code });
  const device = { deviceDigest: "device", userCodeDigest: "user code", hostName: "laptop" };
  const pending = { address: "", nowMs, expiresAtMs, intervalMs: 0, limit: 10 };
  await accounts.createDeviceLogin({ ...device, ...pending });
  const answer = { userCodeDigest: "user code", approve: true };
  await accounts.answerDeviceLogin({ ...platform.deed("bob@example.com"), ...who, ...answer });
  return [
    () =>
      accounts.redeemLoginCode({ ...platform.deed(), digest: "code", ...redeem, token: token() }),
    () =>
      accounts.redeemDeviceLogin({ ...platform.deed(), deviceDigest: "device", token: token() }),
  ];
}

export function verifiedAddressesContract(it: It): void {
  it("are those of the first admin, and of who came by mail or by a provider", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const byMail = await platform.join(organizationId, "mail@example.com");
    const byLink = await platform.join(organizationId, "link@example.com", { shown: true });
    const email = "provider@example.com";
    const { invitationId } = await platform.invite(organizationId, email, "member", true);
    const newUser = { email, displayName: "", emailVerified: true };
    const byProvider = platform.newId("user");
    await accounts.acceptInvitation({
      ...platform.deed(email),
      invitationId,
      userId: byProvider,
      newUser,
    });
    const found = [userId, byMail, byLink, byProvider].map((id) =>
      accounts.findUser({ userId: id }),
    );
    const verified = (await Promise.all(found)).map((user) => user?.emailVerified);
    expect(verified).toEqual([true, true, false, true]);
  });

  it("end everything that an account had or gave away before, at their first proof", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId, email } = await unverified(platform);
    const session = platform.session();
    await accounts.openSession({ ...platform.deed(email), userId, session });
    const personal = await platform.token(organizationId, { kind: "personal", userId });
    const shared = await platform.token(organizationId, { userId });
    const kept = await platform.token(organizationId);
    const logins = await loginsOf(platform, { organizationId, userId });
    const invitation = await accounts.invite({
      ...platform.deed(email),
      organizationId,
      invitationId: platform.newId("invitation"),
      digest: "of an invitation",
      email: "eve@example.com",
      role: "admin",
      expiresAtMs: nowMs + DAY_MS,
      limit: 10,
    });
    expect(invitation.outcome).toBe("invited");
    await platform.invite(organizationId, "carl@example.com");
    const changes = await platform.changesOf(async () =>
      expect(await verify(platform, userId)).toEqual({
        password: true,
        sessions: 1,
        personalTokens: 1,
        organizationTokens: 1,
        invitations: 1,
      }),
    );
    expect(changes).toEqual([
      `user ${userId}`,
      `token ${personal.token.tokenId}`,
      `token ${shared.token.tokenId}`,
    ]);
    expect(await accounts.findUser({ userId })).toMatchObject({
      passwordHash: undefined,
      emailVerified: true,
    });
    expect(await accounts.findSession({ digest: session.digest, nowMs })).toBeUndefined();
    const find = async ({ secret }: typeof kept) =>
      (await accounts.findCredential({ digests: [secret.digest], nowMs })) !== undefined;
    expect([await find(personal), await find(shared), await find(kept)]).toEqual([
      false,
      false,
      true,
    ]);
    for (const redeem of logins) {
      expect(await redeem()).toEqual({ outcome: "invalid" });
    }
    const open = await accounts.listInvitations({ organizationId, nowMs, limit: 10 });
    expect(open.map((one) => one.email)).toEqual(["carl@example.com"]);
    const { items } = await accounts.listMembers({ organizationId, limit: 10 });
    expect(items).toMatchObject([{ role: "admin" }, { email, role: "admin" }]);
    const [newest] = await platform.audit(organizationId);
    expect(newest).toMatchObject({
      action: "email.verify",
      subject: email,
      details: {
        way: "oidc",
        password_ended: "true",
        sessions_ended: "1",
        personal_tokens_ended: "1",
        organization_tokens_ended: "1",
        invitations_ended: "1",
        token_ids: `${personal.token.tokenId} ${shared.token.tokenId}`,
      },
    });
  });

  it("end tokens also where the account is no longer a member", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId } = await unverified(platform);
    const { secret } = await platform.token(organizationId, { userId });
    await accounts.removeMember({ ...platform.deed(), organizationId, userId, left: true });
    expect(await verify(platform, userId)).toMatchObject({ organizationTokens: 1 });
    expect(await accounts.findCredential({ digests: [secret.digest], nowMs })).toBeUndefined();
  });

  it("are proved once: nothing ends a second time, nor for who is verified already", async (platform) => {
    const { accounts } = platform;
    const { userId } = await unverified(platform);
    expect(await verify(platform, userId, "hash of the owner")).toMatchObject({ password: true });
    expect(await verify(platform, userId, "another hash")).toBeUndefined();
    expect(await accounts.findUser({ userId })).toMatchObject({
      passwordHash: "hash of the owner",
    });
    const admin = await accounts.findUser({ email: "ada@example.com" });
    expect(await verify(platform, admin?.userId ?? "")).toBeUndefined();
    expect(await accounts.findUser({ email: "ada@example.com" })).toEqual(admin);
    expect(await verify(platform, "nobody")).toBeUndefined();
  });

  it("leave no way back by the password that was proved before", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId, email } = await unverified(platform);
    const second = platform.newId("organization");
    const globex = { organizationId: second, name: "globex", displayName: "", userId };
    await accounts.createOrganization({ ...platform.deed(), ...globex });
    const other = await platform.join(second, "zoe@example.com");
    const { invitationId } = await platform.invite(organizationId, "zoe@example.com");
    await verify(platform, userId, "hash of the owner");
    const session = platform.session();
    const opened = { userId, session, passwordHash: HASH };
    expect(await accounts.openSession({ ...platform.deed(email), ...opened })).toBe(false);
    expect(await accounts.findSession({ digest: session.digest, nowMs })).toBeUndefined();
    const change = { userId, passwordHash: "of the attacker", currentHash: HASH };
    expect(await accounts.setPassword({ ...platform.deed(email), ...change })).toBeUndefined();
    expect(await accounts.findUser({ userId })).toMatchObject({
      passwordHash: "hash of the owner",
    });
    const accept = { invitationId, userId: other, currentHash: "an old hash", session };
    expect(await accounts.acceptInvitation({ ...platform.deed(), ...accept })).toEqual({
      outcome: "password_changed",
    });
    const current = { ...accept, currentHash: HASH };
    expect(await accounts.acceptInvitation({ ...platform.deed(), ...current })).toEqual({
      outcome: "joined",
    });
  });

  it("leave nothing that an ended session or token was about to make", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId, userId, email } = await unverified(platform);
    const session = platform.session();
    await accounts.openSession({ ...platform.deed(email), userId, session });
    const { token } = await platform.token(organizationId, { kind: "personal", userId });
    await verify(platform, userId);
    const { by, ...deed } = platform.deed(email);
    const actors = [
      { ...by, sessionId: session.sessionId },
      { ...by, token: { id: token.tokenId, name: token.name } },
    ];
    for (const by of actors) {
      const acting = () => ({ ...deed, by, eventId: platform.newId("event") });
      const made = platform.newToken(organizationId, { kind: "personal", userId });
      expect(await accounts.createToken({ ...made, ...acting() })).toEqual({
        outcome: "not_member",
      });
      const invitation = {
        organizationId,
        invitationId: platform.newId("invitation"),
        digest: platform.newId("digest"),
        email: "eve@example.com",
        role: "admin",
        expiresAtMs: nowMs + DAY_MS,
        limit: 10,
      } as const;
      expect(await accounts.invite({ ...acting(), ...invitation })).toEqual({
        outcome: "signed_out",
      });
      const code = { digest: platform.newId("code"), codeChallenge: "challenge" };
      const login = { redirectUri: "http://127.0.0.1:9/", hostName: "", expiresAtMs: nowMs + 1 };
      const who = { organizationId, userId };
      await accounts.createLoginCode({ ...acting(), ...who, ...code, ...login });
      const { name: _, ...fields } = FIELDS;
      const redeemed = { tokenId: platform.newId("token"), secret: platform.secret(), fields };
      const redeem = { ...platform.deed(), ...code, ...login, token: redeemed };
      expect(await accounts.redeemLoginCode(redeem)).toEqual({ outcome: "invalid" });
      const device = platform.newId("device");
      await accounts.createDeviceLogin({
        deviceDigest: device,
        userCodeDigest: device,
        hostName: "",
        address: "",
        nowMs,
        expiresAtMs: nowMs + DAY_MS,
        intervalMs: 0,
        limit: 10,
      });
      const answer = { ...who, userCodeDigest: device, approve: true };
      expect(await accounts.answerDeviceLogin({ ...acting(), ...answer })).toBe(false);
    }
  });

  it("leave no session of whoever signs in at the same moment", async (platform) => {
    const { accounts, nowMs } = platform;
    const { userId, email } = await unverified(platform);
    const sessions = Array.from({ length: 12 }, () => platform.session());
    const open = (session: (typeof sessions)[number]) =>
      accounts.openSession({ ...platform.deed(email), userId, session, passwordHash: HASH });
    await Promise.all([
      ...sessions.slice(0, 6).map(open),
      verify(platform, userId),
      ...sessions.slice(6).map(open),
    ]);
    const found = sessions.map(({ digest }) => accounts.findSession({ digest, nowMs }));
    expect((await Promise.all(found)).filter((session) => session !== undefined)).toEqual([]);
  });

  it("are protected from who sees links: those are for accounts, unless the organization may show them", async (platform) => {
    const { accounts } = platform;
    const { userId } = await platform.setUp();
    const organizationId = platform.newId("organization");
    const globex = { organizationId, name: "globex", displayName: "", userId };
    await accounts.createOrganization({ ...platform.deed(), ...globex });
    const invite = (email: string, shown: boolean) =>
      platform.invite(organizationId, email, "member", shown);
    await expect(invite("bob@example.com", true)).rejects.toThrow("links_disabled");
    expect(await invite("bob@example.com", false)).toMatchObject({ mailed: true });
    await platform.join(organizationId, "carl@example.com");
    await accounts.removeMember({
      ...platform.deed(),
      organizationId,
      userId: (await accounts.findUser({ email: "carl@example.com" }))?.userId ?? "",
      left: true,
    });
    expect(await invite("carl@example.com", true)).toMatchObject({ mailed: false });
    const enable = { organizationId, invitationLinksEnabled: true };
    const updated = await accounts.updateOrganization({ ...platform.deed(), ...enable });
    expect(updated).toMatchObject({ invitationLinksEnabled: true });
    expect(await invite("bob@example.com", true)).toMatchObject({ mailed: false });
    const [, newest] = await platform.audit(organizationId);
    expect(newest?.details).toEqual({ invitation_links_enabled: "true" });
  });
}
