/** The name of a person, as they change it and others read it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform, violatedFields } from "../../server/rpc/platform.ts";

import { type Company, newCompany, newMember } from "../../server/rpc/world.ts";

const { acceptInvitation, changeDisplayName, getCurrentPrincipal, setUp } = AuthService.method;
const { createOrganization, listAuditEvents, listMembers, updateOrganization } =
  OrganizationService.method;

/** Names that text may have and a name may not. */
const REFUSED = ["\0", "Ada\nLovelace", "\u001b[31mAda", "Ada\u0085"];

describe.each(DATABASES)("a person's name on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
  });

  const change = (displayName: string, headers: Readonly<Record<string, string>>) =>
    platform.call(changeDisplayName, { displayName }, { headers });
  const nameOf = async (headers: Readonly<Record<string, string>>) =>
    (await platform.call(getCurrentPrincipal, {}, { headers })).body.displayName;

  it("is what they say from then on, to themselves and to others", async () => {
    const { admin, name: organization } = company;
    const grace = await newMember(platform, company);
    expect(await nameOf(admin.headers)).toBeUndefined();
    for (const name of ["Ada", "<script>alert(1)</script>", "\u202eאדה לאבלייס", "𝔸".repeat(100)]) {
      const { body } = await change(name, admin.headers);
      expect(body).toMatchObject({ displayName: name, email: admin.email, userId: admin.userId });
      expect(await nameOf(admin.headers)).toBe(name);
      const { headers } = grace;
      const { members } = (await platform.call(listMembers, { organization }, { headers })).body;
      expect(
        members.find(({ userId }: { userId: string }) => userId === admin.userId),
      ).toMatchObject({ displayName: name });
    }
    expect(await nameOf(grace.headers)).toBeUndefined();
    expect((await change("  Ada ", admin.headers)).body).toMatchObject({ displayName: "Ada" });
    expect((await change(" ", admin.headers)).outcome).toBe("ok");
    expect(await nameOf(admin.headers)).toBeUndefined();
  });

  it("is bounded, and one line of text", async () => {
    const { headers } = company.admin;
    for (const name of [...REFUSED, "x".repeat(101)]) {
      const answer = await change(name, headers);
      expect([answer.outcome, ...violatedFields(answer)]).toEqual([
        "REQUEST_INVALID",
        "display_name",
      ]);
    }
    expect(await nameOf(headers)).toBeUndefined();
  });

  it("is so from the beginning, also that of an organization", async () => {
    const { headers } = company.admin;
    const [displayName] = REFUSED;
    const { name } = company;
    const password = "a long password";
    for (const [method, request] of [
      [setUp, { organization: "one", email: "a@b.example", displayName, password }],
      [createOrganization, { name: `${name}-two`, displayName }],
      [updateOrganization, { organization: { name, displayName } }],
    ] as const) {
      const { outcome } = await platform.call(method, request, { headers });
      expect(outcome, method.name).toBe("REQUEST_INVALID");
    }
    const { body } = await platform.call(
      OrganizationService.method.inviteMember,
      { organization: name, email: `new@${name}.example` },
      { headers },
    );
    const invitationCode = String(body.url).split("#code=")[1];
    const join = (chosen: string) =>
      platform.call(acceptInvitation, { invitationCode, displayName: chosen, password });
    expect((await join("\0")).outcome).toBe("REQUEST_INVALID");
    expect((await join("Joan")).body).toMatchObject({ displayName: "Joan" });
  });

  it("is in the audit log with every change", async () => {
    const { admin, name: organization } = company;
    await change("Ada", admin.headers);
    const path = "/api/v1/auth:changeDisplayName";
    const { headers } = admin;
    const answer = await platform.rest("POST", path, { display_name: "Ada L." }, { headers });
    expect(answer.body).toMatchObject({ kind: "session", display_name: "Ada L." });
    const { auditEvents } = (
      await platform.call(listAuditEvents, { organization, action: "display_name" }, { headers })
    ).body;
    expect(auditEvents).toMatchObject([
      { action: "display_name.change", actor: admin.email, details: { display_name: "Ada L." } },
      { action: "display_name.change", actor: admin.email, details: { display_name: "Ada" } },
    ]);
  });
});
