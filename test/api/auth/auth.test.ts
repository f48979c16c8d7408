import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { createCode, digestCode } from "../../../src/auth/one-time-codes.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { type PlatformAnswer, TestPlatform, violatedFields } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newMember, newName, PASSWORD } from "../../server/rpc/world.ts";
import { newSchema } from "../../storage/postgres/databases.ts";

const {
  setUp,
  signIn,
  signOut,
  changePassword,
  confirmPassword,
  getInvitation,
  acceptInvitation,
  getCurrentPrincipal,
} = AuthService.method;

/** The cookie that an answer leaves in a browser. */
function cookieOf({ headers }: PlatformAnswer): { readonly cookie: string } {
  return { cookie: headers.getSetCookie()[0]?.split(";")[0] ?? "" };
}

describe.each(DATABASES)("sign-in on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  beforeAll(async () => {
    // Nobody may have set it up before.
    platform = await TestPlatform.start(await open(newSchema()));
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  it("begins with a setup link, which works once and only as it is", async () => {
    const setupCode = createCode();
    await platform.accounts.putSetupCode({ digest: digestCode(setupCode), nowMs: platform.now() });
    const first = {
      setupCode,
      organization: newName(),
      email: " Ada@Example.com ",
      displayName: "Ada",
      password: "correct horse battery",
    };
    for (const [fault, field] of [
      [{ organization: "Not a name" }, "organization"],
      [{ organization: "api" }, "organization"],
      [{ email: "ada" }, "email"],
      [{ password: "short" }, "password"],
    ] as const) {
      const refused = await platform.call(setUp, { ...first, ...fault });
      expect(refused.outcome).toBe("REQUEST_INVALID");
      expect(violatedFields(refused)).toEqual([field]);
    }
    for (const code of ["", "x", createCode()]) {
      const refused = await platform.call(setUp, { ...first, setupCode: code });
      expect(refused.outcome).toBe("SETUP_INVALID");
    }
    const done = await platform.call(setUp, first);
    expect(done.body).toMatchObject({
      kind: "PRINCIPAL_KIND_SESSION",
      email: "ada@example.com",
      organizations: [{ name: first.organization, role: "ROLE_ADMIN" }],
    });
    const me = await platform.call(getCurrentPrincipal, {}, { headers: cookieOf(done) });
    expect(me.body.email).toBe("ada@example.com");
    expect((await platform.call(setUp, first)).outcome).toBe("SETUP_INVALID");
  });

  describe("once the platform is set up", () => {
    beforeEach(async () => {
      company = await newCompany(platform);
    });

    const principal = (headers: Record<string, string>) =>
      platform.call(getCurrentPrincipal, {}, { headers });

    it("gives a cookie that no script reads, no other site sends and only https carries", async () => {
      const { email } = company.admin;
      const answer = await platform.call(signIn, {
        email: email.toUpperCase(),
        password: PASSWORD,
      });
      const [cookie = ""] = answer.headers.getSetCookie();
      expect(cookie.split("; ").slice(1).sort()).toEqual(
        expect.arrayContaining(["HttpOnly", "Path=/", "SameSite=Lax", "Secure"]),
      );
      expect(cookie).not.toContain("Domain");
      expect(answer.body.email).toBe(email);
      expect((await principal(cookieOf(answer))).outcome).toBe("ok");
    });

    it("fails with one message, whatever is wrong, is recorded and leaves no cookie", async () => {
      const { email, headers } = company.admin;
      const attempts = [
        { email, password: "wrong password" },
        { email, password: "" },
        { email, password: "x".repeat(100_000) },
        { email: "nobody@example.com", password: PASSWORD },
        { email: "no address", password: PASSWORD },
      ];
      const answers = await Promise.all(attempts.map((attempt) => platform.call(signIn, attempt)));
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 401, outcome: "SIGN_IN_FAILED" });
        expect(answer.headers.getSetCookie()).toEqual([]);
      }
      expect(new Set(answers.map(({ body }) => body.message)).size).toBe(1);
      const failures = async () => {
        const list = OrganizationService.method.listAuditEvents;
        const { body } = await platform.call(list, {}, { headers });
        return body.auditEvents.filter(
          ({ action }: { action: string }) => action === "sign_in.failed",
        );
      };
      await expect.poll(failures).toHaveLength(3);
      expect((await failures())[0]).toMatchObject({ actor: email, subject: email });
    });

    it("takes as long for people who do not exist", async () => {
      const { email } = company.admin;
      const time = async (who: string) => {
        const startMs = performance.now();
        await platform.call(signIn, { email: who, password: "wrong password" });
        return performance.now() - startMs;
      };
      const median = (times: number[]) => times.sort((a, b) => a - b)[2] ?? 0;
      const known: number[] = [];
      const unknown: number[] = [];
      for (let round = 0; round < 5; round++) {
        known.push(await time(email));
        unknown.push(await time(`${newName()}@example.com`));
      }
      // A hash takes tens of milliseconds; without one the answer would be there at once.
      expect(median(unknown)).toBeGreaterThan(median(known) / 3);
      expect(median(known)).toBeGreaterThan(median(unknown) / 3);
    });

    it("is limited for an address that fails too often, and for no other", async () => {
      const { email } = company.admin;
      const wrong = { email, password: "wrong password" };
      const address = "198.51.100.7";
      const attempts = Array.from({ length: 25 }, () => platform.call(signIn, wrong, { address }));
      const outcomes = (await Promise.all(attempts)).map(({ outcome }) => outcome);
      expect(outcomes).toContain("SIGN_IN_FAILED");
      const limited = await platform.call(signIn, { email, password: PASSWORD }, { address });
      expect(limited).toMatchObject({ status: 429, outcome: "RATE_LIMITED" });
      expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await platform.call(signIn, { email, password: PASSWORD })).outcome).toBe("ok");
    });

    it("ends with sign-out, here and for whoever kept the cookie", async () => {
      const { headers } = company.admin;
      expect((await principal(headers)).outcome).toBe("ok");
      const answer = await platform.call(signOut, {}, { headers });
      expect(answer.headers.getSetCookie()[0]).toMatch(
        /^__Host-tessera_session=;.*Expires=Thu, 01 Jan 1970/,
      );
      expect((await principal(headers)).outcome).toBe("TOKEN_INVALID");
    });

    it("ends after 14 days", async () => {
      const { headers } = company.admin;
      platform.advance(14 * 24 * 3_600_000 + 1_000);
      expect((await principal(headers)).outcome).toBe("TOKEN_INVALID");
    });

    it("ends everywhere else when the password changes", async () => {
      const { email, headers } = company.admin;
      const elsewhere = cookieOf(await platform.call(signIn, { email, password: PASSWORD }));
      expect((await principal(elsewhere)).outcome).toBe("ok");
      const change = (currentPassword: string, newPassword: string) =>
        platform.call(changePassword, { currentPassword, newPassword }, { headers });
      expect((await change("wrong password", "a new password")).outcome).toBe("SIGN_IN_FAILED");
      const short = await change(PASSWORD, "short");
      expect(violatedFields(short)).toEqual(["new_password"]);
      expect((await change(PASSWORD, "a new password")).outcome).toBe("ok");
      expect((await principal(headers)).outcome).toBe("ok");
      expect((await principal(elsewhere)).outcome).toBe("TOKEN_INVALID");
      const again = (password: string) => platform.call(signIn, { email, password });
      expect((await again(PASSWORD)).outcome).toBe("SIGN_IN_FAILED");
      expect((await again("a new password")).outcome).toBe("ok");
    });

    it("is refused to pages of other sites, with and without a session", async () => {
      const { email, headers } = company.admin;
      for (const origin of ["https://evil.example", "null"]) {
        const signingIn = { headers: { origin } };
        const refused = await platform.call(signIn, { email, password: PASSWORD }, signingIn);
        expect(refused).toMatchObject({ status: 403, outcome: "ACCESS_DENIED" });
        expect(refused.headers.getSetCookie()).toEqual([]);
        const acting = { headers: { ...headers, origin } };
        expect((await platform.call(signOut, {}, acting)).outcome).toBe("ACCESS_DENIED");
        const create = OrganizationService.method.createOrganization;
        expect((await platform.call(create, { name: newName() }, acting)).outcome).toBe(
          "ACCESS_DENIED",
        );
      }
      const own = { headers: { ...headers, "sec-fetch-site": "same-origin" } };
      expect((await platform.call(confirmPassword, { password: PASSWORD }, own)).outcome).toBe(
        "ok",
      );
    });

    const invite = async (email: string) => {
      const { headers } = company.admin;
      const method = OrganizationService.method.inviteMember;
      const { body } = await platform.call(method, { email }, { headers });
      expect(body.url).toMatch(/^https:\/\/tessera\.example\/invitation#code=\w{43}$/);
      const invitationCode: string = body.url.split("#code=")[1];
      return { invitationCode, invitationId: body.invitation.invitationId };
    };

    it("of who was invited makes an account, and a session in the organization", async () => {
      const email = `${newName("new")}@example.com`;
      const { invitationCode } = await invite(email);
      const shown = await platform.call(getInvitation, { invitationCode });
      expect(shown.body).toMatchObject({ email, organization: company.name, role: "ROLE_MEMBER" });
      const accept = (password: string) =>
        platform.call(acceptInvitation, { invitationCode, password, displayName: "New" });
      expect(violatedFields(await accept("short"))).toEqual(["password"]);
      const joined = await accept("a password of mine");
      expect(joined.body.organizations).toMatchObject([{ name: company.name }]);
      expect((await principal(cookieOf(joined))).body.email).toBe(email);
      expect((await accept("a password of mine")).outcome).toBe("INVITATION_NOT_FOUND");
    });

    it("of who has an account asks for its password, or is there already", async () => {
      const other = await newCompany(platform);
      const { email, headers } = other.admin;
      const { invitationCode } = await invite(email);
      const first = { invitationCode };
      const wrong = { ...first, password: "wrong password" };
      expect((await platform.call(acceptInvitation, wrong)).outcome).toBe("SIGN_IN_FAILED");
      const stranger = { headers: company.admin.headers };
      expect((await platform.call(acceptInvitation, wrong, stranger)).outcome).toBe(
        "SIGN_IN_FAILED",
      );
      const joined = await platform.call(acceptInvitation, first, { headers });
      expect(joined.outcome).toBe("ok");
      expect(joined.headers.getSetCookie()).toEqual([]);
      expect(joined.body.organizations).toHaveLength(2);
      expect((await principal(headers)).body.organizations).toHaveLength(2);
    });

    it("is not possible with an invitation that expired, was replaced or withdrawn", async () => {
      const accept = (invitationCode: string) =>
        platform.call(acceptInvitation, { invitationCode, password: "a password of mine" });
      const replaced = await invite("first@example.com");
      const withdrawn = await invite("first@example.com");
      const { invitationId } = withdrawn;
      const { headers } = company.admin;
      const remove = OrganizationService.method.deleteInvitation;
      expect((await accept(replaced.invitationCode)).outcome).toBe("INVITATION_NOT_FOUND");
      await platform.call(remove, { invitationId }, { headers });
      expect((await accept(withdrawn.invitationCode)).outcome).toBe("INVITATION_NOT_FOUND");
      const expired = await invite("first@example.com");
      platform.advance(7 * 24 * 3_600_000 + 1);
      expect((await accept(expired.invitationCode)).outcome).toBe("INVITATION_NOT_FOUND");
    });

    it("says who a member is, in each of their organizations", async () => {
      const member = await newMember(platform, company);
      expect((await principal(member.headers)).body).toMatchObject({
        kind: "PRINCIPAL_KIND_SESSION",
        userId: member.userId,
        organizations: [{ name: company.name, role: "ROLE_MEMBER" }],
      });
    });
  });

  it("leaves no password, session or code in the log or in an error", () => {
    expect(platform.leaks()).toEqual([]);
  });
});
