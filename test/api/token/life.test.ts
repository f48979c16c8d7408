import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import {
  type Company,
  newDeployment,
  newMember,
  newToken,
  PASSWORD,
  type Person,
} from "../../server/rpc/world.ts";
import { TokenCalls } from "./calls.ts";

const { getToken, updateToken, deleteToken, rotateToken, revealToken } = TokenService.method;

describe.each(DATABASES)("tokens in use on $database", ({ open }) => {
  let platform: TestPlatform;
  let calls: TokenCalls;
  let company: Company;
  let admin: Person;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    calls = await TokenCalls.inNewCompany(platform);
    ({ company } = calls);
    ({ admin } = company);
  });

  it("show when and from where they were used last, and who made them", async () => {
    const { token, value } = await calls.organizationToken();
    const { tokenId } = token;
    expect(token).not.toHaveProperty("lastUsedAt");
    const address = "2001:db8::7";
    await calls.me(value, address);
    const read = async () =>
      (await platform.call(getToken, { tokenId }, { headers: admin.headers })).body;
    await expect
      .poll(read)
      .toMatchObject({ lastUsedAddress: address, createdBy: admin.email, version: 1 });
    const { lastUsedAt } = await read();
    expect(Math.abs(Date.parse(lastUsedAt) - platform.now())).toBeLessThan(60_000);
  });

  it("stop at once when they are deleted", async () => {
    const { token, value } = await calls.organizationToken();
    const { tokenId } = token;
    expect((await calls.me(value)).outcome).toBe("ok");
    const call = { headers: admin.headers };
    expect((await platform.call(deleteToken, { tokenId }, call)).outcome).toBe("ok");
    expect((await calls.me(value)).outcome).toBe("TOKEN_INVALID");
    expect((await platform.call(getToken, { tokenId }, call)).outcome).toBe("TOKEN_NOT_FOUND");
    expect((await platform.call(deleteToken, { tokenId }, call)).outcome).toBe("TOKEN_NOT_FOUND");
  });

  it("are not found under ids that are none", async () => {
    const { headers } = admin;
    for (const tokenId of ["x", "' OR 1=1", platform.newId()]) {
      expect((await platform.call(getToken, { tokenId }, { headers })).outcome).toBe(
        "TOKEN_NOT_FOUND",
      );
    }
  });

  it("are rotated under the same id, the old value living on for the grace, never more than two", async () => {
    const { token, value: first } = await calls.organizationToken();
    const { tokenId } = token;
    const rotate = async (grace?: string) =>
      (
        await platform.call(
          rotateToken,
          { tokenId, ...(grace !== undefined && { grace }) },
          { headers: admin.headers },
        )
      ).body;
    const { value: second, token: rotated } = await rotate("3600s");
    expect(rotated).toMatchObject({ tokenId, hint: second.slice(0, 9) });
    expect(Date.parse(rotated.previousValidUntil) - platform.now()).toBeGreaterThan(3_500_000);
    expect((await calls.me(first)).outcome).toBe("ok");
    const { value: third } = await rotate("3600s");
    const outcomes = [first, second, third].map(async (value) => (await calls.me(value)).outcome);
    expect(await Promise.all(outcomes)).toEqual(["TOKEN_INVALID", "ok", "ok"]);
    const { value: fourth, token: last } = await rotate();
    expect(last).not.toHaveProperty("previousValidUntil");
    expect((await calls.me(third)).outcome).toBe("TOKEN_INVALID");
    expect((await calls.me(fourth)).outcome).toBe("ok");
  });

  it.each(["604801s", "-1s"])("are not rotated with a grace of %s", async (grace) => {
    const { token } = await calls.organizationToken();
    const { tokenId } = token;
    const answer = await platform.call(rotateToken, { tokenId, grace }, { headers: admin.headers });
    expect(answer.outcome).toBe("REQUEST_INVALID");
  });

  describe("are revealed", () => {
    const reveal = (tokenId: string) =>
      platform.call(revealToken, { tokenId }, { headers: admin.headers });

    it("to an admin, and recorded", async () => {
      const { token, value } = await calls.organizationToken();
      const { tokenId } = token;
      expect((await reveal(tokenId)).body).toEqual({ value });
      const [last] = await calls.audit();
      expect(last).toMatchObject({
        action: "token.reveal",
        subjectId: tokenId,
        actor: admin.email,
      });
    });

    it("in their newest value", async () => {
      const { token } = await calls.organizationToken();
      const { tokenId } = token;
      const { body } = await platform.call(rotateToken, { tokenId }, { headers: admin.headers });
      expect((await reveal(tokenId)).body).toEqual({ value: body.value });
    });

    it("only within 10 minutes of a sign-in, which a password confirms", async () => {
      const { token, value } = await calls.organizationToken({ expiresAt: calls.inDays(30) });
      const { tokenId } = token;
      platform.advance(11 * 60_000);
      expect(await reveal(tokenId)).toMatchObject({ status: 403, outcome: "SIGN_IN_REQUIRED" });
      const confirm = { password: PASSWORD };
      const { headers } = admin;
      await platform.call(AuthService.method.confirmPassword, confirm, { headers });
      expect((await reveal(tokenId)).body).toEqual({ value });
    });

    it("never again once the organization has switched it off", async () => {
      const { token } = await calls.organizationToken();
      const { tokenId } = token;
      const set = (revealEnabled: boolean) =>
        platform.call(
          OrganizationService.method.updateOrganization,
          {
            organization: { name: company.name, revealEnabled },
            updateMask: "revealEnabled",
          },
          { headers: admin.headers },
        );
      expect((await set(false)).outcome).toBe("ok");
      expect((await reveal(tokenId)).outcome).toBe("REVEAL_DISABLED");
      const made = await calls.organizationToken();
      expect((await set(true)).body.revealEnabled).toBe(true);
      expect((await reveal(tokenId)).outcome).toBe("REVEAL_DISABLED");
      expect((await reveal(made.token.tokenId)).outcome).toBe("REVEAL_DISABLED");
    });
  });

  it("of a person end for good when they leave, and those of the organization live on", async () => {
    const member = await newMember(platform, company);
    await platform.call(
      OrganizationService.method.updateMember,
      { userId: member.userId, role: "ROLE_ADMIN" },
      { headers: admin.headers },
    );
    const { body: personal } = await calls.create({ name: "theirs" }, member.headers);
    const { body: shared } = await calls.create(
      { name: "ours", kind: "TOKEN_KIND_ORGANIZATION" },
      member.headers,
    );
    expect((await calls.me(personal.value)).outcome).toBe("ok");
    expect((await calls.me(shared.value)).outcome).toBe("ok");
    const leave = OrganizationService.method.leaveOrganization;
    expect((await platform.call(leave, {}, { headers: member.headers })).outcome).toBe("ok");
    expect((await calls.me(personal.value)).outcome).toBe("TOKEN_INVALID");
    expect((await calls.me(shared.value)).outcome).toBe("ok");
    const { invitation, url } = (
      await platform.call(
        OrganizationService.method.inviteMember,
        { email: member.email },
        { headers: admin.headers },
      )
    ).body;
    expect(invitation.email).toBe(member.email);
    const joined = await platform.call(AuthService.method.acceptInvitation, {
      invitationCode: url.split("#code=")[1],
      password: PASSWORD,
    });
    expect(joined.outcome).toBe("ok");
    expect((await calls.me(personal.value)).outcome).toBe("TOKEN_INVALID");
  });

  it("leave an audit event for each change", async () => {
    const { token } = await calls.organizationToken();
    const { tokenId } = token;
    const { headers } = admin;
    await platform.call(updateToken, { token: { tokenId, name: "b" } }, { headers });
    await platform.call(rotateToken, { tokenId }, { headers });
    await platform.call(deleteToken, { tokenId }, { headers });
    const actions = (await calls.audit())
      .filter(({ subjectId }) => subjectId === tokenId)
      .map(({ action }) => action);
    expect(actions).toEqual(["token.delete", "token.rotate", "token.update", "token.create"]);
  });

  it("are named by the events of what a person did with one", async () => {
    const own = { kind: "personal", userId: admin.userId, name: "laptop" } as const;
    const personal = await newToken(platform, company, own);
    const { deleteDeployment } = DeploymentService.method;
    for (const { headers } of [personal, admin]) {
      const name = await newDeployment(platform, company);
      expect(
        (await platform.call(deleteDeployment, { deployment: name }, { headers })).outcome,
      ).toBe("ok");
    }
    const events = await calls.audit();
    const [bySession, byToken] = events.filter(({ action }) => action === "deployment.delete");
    expect(byToken).toMatchObject({
      actor: admin.email,
      details: { by_token: "laptop", by_token_id: personal.tokenId },
    });
    expect(bySession).toMatchObject({ actor: admin.email });
    expect(JSON.stringify(bySession)).not.toContain("by_token");
  });

  it("are in no log and no error", () => {
    expect(platform.leaks()).toEqual([]);
  });
});
