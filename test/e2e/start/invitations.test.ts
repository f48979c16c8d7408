import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SmtpServer } from "../../server/mail/smtp-server.ts";
import {
  type Answer,
  administration,
  cookieOf,
  Folder,
  PASSWORD,
  type Platform,
  start,
} from "./platform.ts";

type Headers = Record<string, string>;

const NEW_PASSWORD = "another long password";

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder[Symbol.dispose]());

const reasonOf = ({ json }: Answer): string =>
  /"reason":"([A-Z_]+)"/.exec(JSON.stringify(json))?.[1] ?? "";
const codeOf = (text: unknown): string => /#code=([0-9A-Za-z]+)/.exec(String(text))?.[1] ?? "";

/** What people do by the REST API. */
const invite = (platform: Platform, email: string, by: Headers, organization = "acme") =>
  platform.call("/api/v1/members:invite", { email, organization }, by);
const accept = (platform: Platform, code: string, password: string, headers: Headers = {}) =>
  platform.call("/api/v1/auth:acceptInvitation", { invitation_code: code, password }, headers);
const create = (platform: Platform, name: string, by: Headers) =>
  platform.call("/api/v1/organizations", { name }, by);

const withMail = (server: SmtpServer) => ({
  env: { TESSERA_SMTP_URL: server.url, TESSERA_MAIL_FROM: "tessera@example.com" },
});

describe("an invitation, on a platform that sends mail", () => {
  it("goes by mail to the person alone, who joins by it", async () => {
    await using server = await SmtpServer.listen();
    await using platform = await start(folder, withMail(server));
    const admin = await platform.setUp();
    const invited = await invite(platform, "grace@example.com", admin);
    expect(invited.status).toBe(200);
    expect(invited.json).toMatchObject({ mailed: true });
    expect(invited.json).not.toHaveProperty("url");
    const [mail] = server.mails;
    expect(mail?.to).toEqual(["grace@example.com"]);
    const code = codeOf(mail?.text);
    expect(JSON.stringify(invited.json)).not.toContain(code);
    const asked = await platform.call("/api/v1/auth:getInvitation", { invitation_code: code });
    expect(asked.json).toMatchObject({ organization: "acme", sets_password: true });
    expect((await accept(platform, code, PASSWORD)).status).toBe(200);
    expect((await platform.signIn("grace@example.com")).status).toBe(200);
  });

  it("stays when the mail server does not take it, and can be sent again", async () => {
    await using server = await SmtpServer.listen({ answers: { RCPT: "451 later" } });
    await using platform = await start(folder, withMail(server));
    const admin = await platform.setUp();
    const failed = await invite(platform, "grace@example.com", admin);
    expect(failed.status).toBe(503);
    expect(reasonOf(failed)).toBe("MAIL_FAILED");
    expect(failed.json.message).toContain("invite them again to send another mail");
    expect(JSON.stringify(failed.json)).not.toContain("451");
    const { json } = await platform.call("/api/v1/invitations", undefined, admin);
    expect(json.invitations).toMatchObject([{ email: "grace@example.com" }]);
    server.answers = {};
    expect((await invite(platform, "grace@example.com", admin)).status).toBe(200);
    expect((await accept(platform, codeOf(server.mails[0]?.text), PASSWORD)).status).toBe(200);
  });

  it("is sent at most so often by an organization, which is told to wait", async () => {
    await using server = await SmtpServer.listen();
    await using platform = await start(folder, withMail(server));
    const admin = await platform.setUp();
    for (let count = 0; count < 50; count++) {
      expect((await invite(platform, `person-${count}@example.com`, admin)).status).toBe(200);
    }
    const refused = await invite(platform, "one-more@example.com", admin);
    expect(refused.status).toBe(429);
    expect(reasonOf(refused)).toBe("RATE_LIMITED");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(server.mails).toHaveLength(50);
  });

  it("gives its owner an account that somebody else made before, and tells them", async () => {
    let attacker: Headers;
    {
      await using platform = await start(folder);
      const admin = await platform.setUp();
      const { json } = await invite(platform, "ceo@corp.example", admin);
      attacker = cookieOf(await accept(platform, codeOf(json.url), PASSWORD));
      expect((await create(platform, "corp", admin)).status).toBe(200);
    }
    await using server = await SmtpServer.listen();
    await using platform = await start(folder, withMail(server));
    const admin = cookieOf(await platform.signIn("ada@example.com"));
    expect((await invite(platform, "ceo@corp.example", admin, "corp")).status).toBe(200);
    const code = codeOf(server.mails[0]?.text);
    const asked = await platform.call("/api/v1/auth:getInvitation", { invitation_code: code });
    expect(asked.json).toMatchObject({ sets_password: true });
    // A session of the account does not do: it may be the one of who made it.
    const without = await accept(platform, code, "", attacker);
    expect(without.status).toBe(400);
    const joined = await accept(platform, code, NEW_PASSWORD);
    expect(joined.status).toBe(200);
    expect(joined.json).toMatchObject({ ended_credentials: { password: true, sessions: 1 } });
    expect(await platform.whoIs(attacker)).toBe(401);
    expect((await platform.signIn("ceo@corp.example")).status).toBe(401);
    expect((await platform.signIn("ceo@corp.example", NEW_PASSWORD)).status).toBe(200);
    await expect.poll(() => server.mails.length).toBe(2);
    expect(server.mails[1]).toMatchObject({ to: ["ceo@corp.example"] });
    expect(server.mails[1]?.text).toContain("its password, 1 session,");
  });
});

describe("an invitation, on a platform that sends no mail", () => {
  it("shows its link in the first organization, and in others if the operator allows it", async () => {
    await using platform = await start(folder);
    const admin = await platform.setUp();
    const first = await invite(platform, "grace@example.com", admin);
    expect(first.json.url).toContain(`${platform.started.url}/invitation#code=`);
    expect((await create(platform, "globex", admin)).status).toBe(200);
    const refused = await invite(platform, "heidi@example.com", admin, "globex");
    expect(refused.status).toBe(400);
    expect(reasonOf(refused)).toBe("INVITATION_LINKS_DISABLED");
    expect(refused.json.message).toContain(
      "tessera admin invitation-links enable --organization globex",
    );
    const { json } = await platform.call(
      "/api/v1/invitations?organization=globex",
      undefined,
      admin,
    );
    expect(json).toEqual({ invitations: [] });
    await using operator = await administration(folder);
    await operator.setInvitationLinks("globex", true);
    const allowed = await invite(platform, "heidi@example.com", admin, "globex");
    expect(allowed.json.url).toContain("/invitation#code=");
  });

  it("shows it for a person with an account, who has to prove it", async () => {
    await using platform = await start(folder);
    const admin = await platform.setUp();
    const first = await invite(platform, "grace@example.com", admin);
    const grace = cookieOf(await accept(platform, codeOf(first.json.url), PASSWORD));
    await create(platform, "globex", admin);
    const second = await invite(platform, "grace@example.com", admin, "globex");
    const code = codeOf(second.json.url);
    const asked = await platform.call("/api/v1/auth:getInvitation", { invitation_code: code });
    expect(asked.json).not.toHaveProperty("sets_password");
    expect((await accept(platform, code, "a wrong password")).status).toBe(401);
    expect((await accept(platform, code, "", grace)).status).toBe(200);
  });
});

describe("an organization", () => {
  it("is created by an admin while there is one, and by the operator from then on", async () => {
    await using platform = await start(folder);
    const admin = await platform.setUp();
    const { json } = await invite(platform, "grace@example.com", admin);
    const grace = cookieOf(await accept(platform, codeOf(json.url), PASSWORD));
    const byMember = await create(platform, "by-member", grace);
    expect([byMember.status, reasonOf(byMember)]).toEqual([403, "ADMIN_REQUIRED"]);
    // Also when they come together, there are two in the end.
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, count) => create(platform, `made-${count}`, admin)),
    );
    const made = answers.filter(({ status }) => status === 200);
    expect(made).toHaveLength(1);
    const refused = answers.find(({ status }) => status !== 200);
    expect([refused?.status, refused && reasonOf(refused)]).toEqual([403, "OPERATOR_REQUIRED"]);
    expect(refused?.json.message).toContain("tessera admin create-organization");
    await using operator = await administration(folder);
    await operator.createOrganization({ name: "third", adminEmail: "grace@example.com" });
    expect(await operator.organizations()).toMatchObject([
      { name: "acme", invitationLinksEnabled: true },
      { invitationLinksEnabled: false },
      { name: "third", members: 1 },
    ]);
    await expect(
      operator.createOrganization({ name: "fourth", adminEmail: "nobody@example.com" }),
    ).rejects.toThrow("there is no person with the e-mail address nobody@example.com");
  });

  it.each([
    ["anyone", [200, 200]],
    ["admins", [403, 200]],
    ["operator", [403, 403]],
  ])("is created by %s, if the operator says so", async (who, expected) => {
    await using platform = await start(folder, { env: { TESSERA_ORGANIZATION_CREATORS: who } });
    const admin = await platform.setUp();
    const { json } = await invite(platform, "grace@example.com", admin);
    const grace = cookieOf(await accept(platform, codeOf(json.url), PASSWORD));
    for (const name of ["second", "third"]) {
      const statuses = [
        (await create(platform, `${name}-of-member`, grace)).status,
        (await create(platform, `${name}-of-admin`, admin)).status,
      ];
      // Who has created one is the admin of one.
      expect(statuses).toEqual(expected);
    }
  });
});
