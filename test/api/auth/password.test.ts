/** What a change of the password ends, and what it leaves. */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { LoginService } from "../../../gen/tessera/v1/login_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { newCompany, newMember, newToken, PASSWORD, type Person } from "../../server/rpc/world.ts";
import { TokenCalls } from "../token/calls.ts";

const { changePassword } = AuthService.method;
const login = LoginService.method;

describe.each(DATABASES)("a change of the password on $database", ({ open }) => {
  let platform: TestPlatform;
  let calls: TokenCalls;
  let admin: Person;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    calls = await TokenCalls.inNewCompany(platform);
    ({ admin } = calls.company);
  });

  const change = (fields: object = {}) =>
    platform.call(
      changePassword,
      { currentPassword: PASSWORD, newPassword: "another password", ...fields },
      { headers: admin.headers },
    );
  const works = async (value: string) => (await calls.me(value)).outcome === "ok";

  it("keeps personal tokens unless it is told otherwise, and lists them", async () => {
    const own = { kind: "personal", userId: admin.userId } as const;
    const token = await newToken(platform, calls.company, { ...own, name: "laptop" });
    const expired = await newToken(platform, calls.company, { ...own, expiresAtMs: 1 });
    const { body } = await change();
    expect(body).toMatchObject({ keptTokenCount: 1 });
    expect(body.keptTokens).toMatchObject([
      { tokenId: token.tokenId, name: "laptop", organization: calls.company.name },
    ]);
    expect(JSON.stringify(body)).not.toContain(expired.tokenId);
    expect(body).not.toHaveProperty("endedTokens");
    expect(await works(token.value)).toBe(true);
  });

  it("ends them all at once, in every organization, when it is told to", async () => {
    const { organizationId } = await newCompany(platform);
    const invitationId = platform.newId();
    await platform.accounts.invite({
      ...platform.deed(),
      organizationId,
      invitationId,
      digest: invitationId,
      email: admin.email,
      role: "member",
      expiresAtMs: platform.now() + 60_000,
      limit: 10,
    });
    const { userId } = admin;
    await platform.accounts.acceptInvitation({ ...platform.deed(), invitationId, userId });
    const own = { kind: "personal", userId } as const;
    const here = await newToken(platform, calls.company, own);
    const there = await newToken(platform, { organizationId }, own);
    const ofOrganization = await newToken(platform, calls.company);
    const colleague = await newMember(platform, calls.company);
    const theirs = await newToken(platform, calls.company, {
      kind: "personal",
      userId: colleague.userId,
    });
    for (const { value } of [here, there, ofOrganization, theirs]) {
      expect(await works(value)).toBe(true);
    }
    const { body } = await change({ revokeTokens: true });
    expect(body).toMatchObject({ endedTokens: 2 });
    expect(body.keptTokens).toEqual([]);
    expect([await works(here.value), await works(there.value)]).toEqual([false, false]);
    expect([await works(ofOrganization.value), await works(theirs.value)]).toEqual([true, true]);
    const audit = await platform.call(
      OrganizationService.method.listAuditEvents,
      { organization: calls.company.name },
      { headers: admin.headers },
    );
    expect(audit.body.auditEvents[0]).toMatchObject({
      action: "password.change",
      details: { personal_tokens_ended: "1", token_ids: here.tokenId },
    });
  });

  it("ends logins of the command line that were allowed before, and not redeemed yet", async () => {
    const { headers } = admin;
    const device = (await platform.call(login.startDeviceLogin, { hostName: "thief" })).body;
    const approve = { userCode: device.userCode, approve: true };
    expect((await platform.call(login.answerDeviceLogin, approve, { headers })).outcome).toBe("ok");
    const codeVerifier = randomBytes(32).toString("base64url");
    const redirectUri = "http://127.0.0.1:5000/callback";
    const authorized = await platform.call(
      login.authorizeLogin,
      {
        redirectUri,
        codeChallenge: createHash("sha256").update(codeVerifier).digest("base64url"),
        codeChallengeMethod: "S256",
        state: "0123456789abcdef",
        hostName: "thief",
      },
      { headers },
    );
    const code = new URL(authorized.body.redirectUrl).searchParams.get("code");
    await change();
    const byDevice = await platform.call(login.redeemDeviceLogin, {
      deviceCode: device.deviceCode,
    });
    expect(byDevice.outcome).toBe("LOGIN_INVALID");
    const byBrowser = await platform.call(login.redeemLogin, { code, codeVerifier, redirectUri });
    expect(byBrowser.outcome).toBe("LOGIN_INVALID");
  });

  it("says how many sessions it has ended", async () => {
    const { email } = admin;
    await platform.call(AuthService.method.signIn, { email, password: PASSWORD });
    expect((await change()).body).toMatchObject({ endedSessions: 1 });
  });

  it("does nothing with a wrong password", async () => {
    const own = { kind: "personal", userId: admin.userId } as const;
    const token = await newToken(platform, calls.company, own);
    const refused = await change({ currentPassword: "wrong password", revokeTokens: true });
    expect(refused.outcome).toBe("SIGN_IN_FAILED");
    expect(await works(token.value)).toBe(true);
  });
});
