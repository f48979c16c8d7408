import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { OperatorService } from "../../../gen/tessera/v1/operator_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform, violatedFields } from "../../server/rpc/platform.ts";
import {
  type Company,
  newCompany,
  newDeployment,
  newMember,
  newName,
  newToken,
  type Person,
} from "../../server/rpc/world.ts";

const organization = OrganizationService.method;
const deployment = DeploymentService.method;

describe.each(DATABASES)("on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let admin: Person;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
    admin = company.admin;
  });

  const call = (
    method: Parameters<TestPlatform["call"]>[0],
    message: object,
    { headers }: Pick<Person, "headers"> = admin,
  ) => platform.call(method, message, { headers });

  describe("an organization", () => {
    it("belongs to who creates it, and its name to nobody else", async () => {
      const name = newName();
      const made = await call(organization.createOrganization, { name, displayName: "Ours" });
      expect(made.body).toMatchObject({ name, displayName: "Ours", role: "ROLE_ADMIN" });
      const again = await call(organization.createOrganization, { name });
      expect(again).toMatchObject({ status: 409, outcome: "ORGANIZATION_EXISTS" });
      const { body } = await call(organization.listOrganizations, {});
      const names = body.organizations.map((one: { name: string }) => one.name);
      expect(names).toEqual([company.name, name].sort());
    });

    it("is not created by who belongs to a hundred", async () => {
      const { userId } = admin;
      for (let count = 1; count < 100; count++) {
        await platform.accounts.createOrganization({
          ...platform.deed(),
          organizationId: platform.newId(),
          name: newName(),
          displayName: "",
          userId,
        });
      }
      const answer = await call(organization.createOrganization, { name: newName() });
      expect(answer).toMatchObject({ status: 429, outcome: "LIMIT_REACHED" });
    });

    it.each(["", "-a", "a-", "A", "a.b", "a b", "a".repeat(64), "www", "api", "xn--80ak6aa92e"])(
      "cannot be called %j",
      async (name) => {
        const answer = await call(organization.createOrganization, { name });
        expect(answer).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
        expect(violatedFields(answer)).toEqual(["name"]);
      },
    );

    it("has to be named by who belongs to several", async () => {
      await call(organization.createOrganization, { name: newName() });
      const answer = await call(organization.listMembers, {});
      expect(answer.outcome).toBe("REQUEST_INVALID");
      expect(violatedFields(answer)).toEqual(["organization"]);
      const { outcome } = await call(organization.listMembers, { organization: company.name });
      expect(outcome).toBe("ok");
    });

    it("changes only what its admins may change", async () => {
      const update = (fields: object, updateMask?: string) =>
        call(organization.updateOrganization, {
          organization: { name: company.name, ...fields },
          ...(updateMask !== undefined && { updateMask }),
        });
      expect((await update({ displayName: "Acme" })).body.displayName).toBe("Acme");
      for (const mask of ["monitoringEnabled", "name", "nothing"]) {
        const answer = await update({ monitoringEnabled: true }, mask);
        expect(answer.outcome).toBe("REQUEST_INVALID");
        expect(violatedFields(answer)).toEqual(["update_mask"]);
      }
      const ignored = await update({ monitoringEnabled: true, displayName: "B" });
      expect(ignored.body).not.toHaveProperty("monitoringEnabled");
      expect((await update({})).outcome).toBe("REQUEST_INVALID");
      const { body } = await update({}, "displayName");
      expect(body).not.toHaveProperty("displayName");
    });

    it("asks for monitoring tokens by an admin, once, and the operator sees who asked", async () => {
      const member = await newMember(platform, company);
      const operator = await newMember(platform, await newCompany(platform));
      const asOperator = { userId: operator.userId, operator: true };
      await platform.accounts.setOperator({ ...platform.deed(), ...asOperator });
      const ask = (by?: Person) =>
        call(organization.askForMonitoring, { organization: company.name }, by);
      expect((await ask(member)).outcome).toBe("ADMIN_REQUIRED");
      const { body: asking } = await ask();
      expect(asking).toMatchObject({
        name: company.name,
        monitoringAskedBy: admin.email,
        monitoringAskedAt: expect.stringMatching(/Z$/),
      });
      expect(asking).not.toHaveProperty("monitoringEnabled");
      const { userId } = member;
      await call(organization.updateMember, { userId, role: "ROLE_ADMIN" });
      expect((await ask(member)).body).toMatchObject({ monitoringAskedBy: admin.email });
      const { body: log } = await call(organization.listAuditEvents, {
        action: "organization.ask_for_monitoring",
      });
      expect(log.auditEvents).toMatchObject([{ actor: admin.email, subject: company.name }]);

      const seen = async () => {
        const all = OperatorService.method.listAllOrganizations;
        const { body } = await call(all, { pageSize: 1_000 }, operator);
        return body.organizations.find((one: { name: string }) => one.name === company.name);
      };
      const { monitoringAskedAt } = asking;
      expect(await seen()).toMatchObject({ monitoringAskedBy: admin.email, monitoringAskedAt });
      const { organizationId } = company;
      const answer = { ...platform.deed(), organizationId, monitoringEnabled: true };
      await platform.accounts.updateOrganization(answer);
      expect(await seen()).toMatchObject({ monitoringEnabled: true });
      expect(await seen()).not.toHaveProperty("monitoringAskedBy");
      expect((await ask()).body).not.toHaveProperty("monitoringAskedAt");
    });
  });

  describe("members", () => {
    it("are listed page by page, by address", async () => {
      for (let count = 0; count < 4; count++) {
        await newMember(platform, company);
      }
      const emails: string[] = [];
      let pageToken = "";
      do {
        const { body } = await call(organization.listMembers, { pageSize: 2, pageToken });
        expect(body.members.length).toBeLessThanOrEqual(2);
        emails.push(...body.members.map(({ email }: { email: string }) => email));
        pageToken = body.nextPageToken ?? "";
      } while (pageToken !== "");
      expect(emails).toHaveLength(5);
      expect(emails).toEqual([...emails].sort());
    });

    it("are not invited twice, nor under what is no address", async () => {
      const { email } = await newMember(platform, company);
      const invite = (address: string) => call(organization.inviteMember, { email: address });
      expect(await invite(email.toUpperCase())).toMatchObject({
        status: 409,
        outcome: "MEMBER_EXISTS",
      });
      for (const address of ["ada", "a@b@c", "a b@c.example", "ada@example.com\n"]) {
        const refused = await invite(`${address} x`);
        expect(refused.outcome).toBe("REQUEST_INVALID");
        expect(violatedFields(refused)).toEqual(["email"]);
      }
      await invite("new@example.com");
      await invite("New@Example.com");
      const { body } = await call(organization.listInvitations, {});
      expect(body.invitations).toHaveLength(1);
      expect(JSON.stringify(body)).not.toContain("code=");
    });

    it("have a role that holds at once, and the last admin keeps it", async () => {
      const { adminId, member } = {
        adminId: admin.userId,
        member: await newMember(platform, company),
      };
      const give = (userId: string, role: string, by = admin) =>
        call(organization.updateMember, { userId, role }, by);
      expect((await give(adminId, "ROLE_MEMBER")).outcome).toBe("LAST_ADMIN");
      expect((await call(organization.leaveOrganization, {})).outcome).toBe("LAST_ADMIN");
      expect((await call(organization.removeMember, { userId: adminId })).outcome).toBe(
        "LAST_ADMIN",
      );
      expect((await give(member.userId, "ROLE_UNSPECIFIED")).outcome).toBe("REQUEST_INVALID");
      expect((await call(organization.listAuditEvents, {}, member)).outcome).toBe("ADMIN_REQUIRED");
      expect((await give(member.userId, "ROLE_ADMIN")).body.role).toBe("ROLE_ADMIN");
      expect((await call(organization.listAuditEvents, {}, member)).outcome).toBe("ok");
      expect((await give(adminId, "ROLE_MEMBER", member)).outcome).toBe("ok");
      expect((await call(organization.listAuditEvents, {})).outcome).toBe("ADMIN_REQUIRED");
    });

    it("who are removed see nothing any more, at once", async () => {
      const member = await newMember(platform, company);
      const { organizationId } = company;
      const own = { kind: "personal", userId: member.userId } as const;
      const { headers } = await newToken(platform, { organizationId }, own);
      expect((await call(organization.listMembers, {}, member)).outcome).toBe("ok");
      const list = TokenService.method.listTokens;
      expect((await platform.call(list, {}, { headers })).outcome).toBe("ok");
      const { userId } = member;
      expect((await call(organization.removeMember, { userId })).outcome).toBe("ok");
      const answer = await call(organization.listMembers, { organization: company.name }, member);
      expect(answer.outcome).toBe("ORGANIZATION_NOT_FOUND");
      expect((await call(organization.listMembers, {}, member)).outcome).toBe(
        "ORGANIZATION_NOT_FOUND",
      );
      expect((await platform.call(list, {}, { headers })).outcome).toBe("TOKEN_INVALID");
      expect((await call(organization.removeMember, { userId })).outcome).toBe("MEMBER_NOT_FOUND");
    });
  });

  describe("a deployment", () => {
    it("is created, read, changed and deleted under a name of its organization", async () => {
      const made = await call(deployment.createDeployment, { name: "app", authorization: true });
      expect(made.body).toMatchObject({
        name: "app",
        organization: company.name,
        authorization: true,
        createdBy: admin.email,
      });
      const again = await call(deployment.createDeployment, { name: "app" });
      expect(again).toMatchObject({ status: 409, outcome: "DEPLOYMENT_EXISTS" });
      const change = (fields: object, updateMask?: string) =>
        call(deployment.updateDeployment, {
          deployment: { name: "app", ...fields },
          ...(updateMask !== undefined && { updateMask }),
        });
      expect((await change({})).outcome).toBe("REQUEST_INVALID");
      expect((await change({ authorization: true }, "name")).outcome).toBe("REQUEST_INVALID");
      const opened = await change({}, "authorization");
      expect(opened.body).not.toHaveProperty("authorization");
      expect((await call(deployment.deleteDeployment, { deployment: "app" })).outcome).toBe("ok");
      for (const method of [deployment.getDeployment, deployment.deleteDeployment]) {
        expect((await call(method, { deployment: "app" })).outcome).toBe("DEPLOYMENT_NOT_FOUND");
      }
    });

    it.each(["", "a.b", "A", "-", "a".repeat(64), "x/y"])("cannot be called %j", async (name) => {
      const answer = await call(deployment.createDeployment, { name });
      expect(answer.outcome).toBe("REQUEST_INVALID");
      expect(violatedFields(answer)).toEqual(["name"]);
    });

    it("is listed with the others, by name", async () => {
      const names = ["c", "a", "b"];
      for (const name of names) {
        await call(deployment.createDeployment, { name });
      }
      const first = await call(deployment.listDeployments, { pageSize: 2 });
      const { nextPageToken: pageToken } = first.body;
      const second = await call(deployment.listDeployments, { pageSize: 2, pageToken });
      const listed = [...first.body.deployments, ...second.body.deployments];
      expect(listed.map(({ name }: { name: string }) => name)).toEqual(["a", "b", "c"]);
      const elsewhere = await newCompany(platform);
      const refused = await call(deployment.listDeployments, { pageToken }, elsewhere.admin);
      expect(violatedFields(refused)).toEqual(["page_token"]);
    });

    it("takes itself out of the tokens that named it when it is deleted", async () => {
      const name = await newDeployment(platform, company);
      const made = await call(TokenService.method.createToken, {
        name: "caller",
        access: ["TOKEN_ACCESS_PROTECTED_ENDPOINT"],
        deployments: [name],
        expiresAt: "2099-01-01T00:00:00Z",
      });
      const headers = { authorization: `Bearer ${made.body.value}` };
      const me = () => platform.rest("GET", "/api/v1/me", undefined, { headers });
      expect((await me()).body.deployments).toEqual([name]);
      await call(deployment.deleteDeployment, { deployment: name });
      expect((await me()).body).toMatchObject({ deployments: [] });
    });
  });

  it("the audit log is listed newest first, page by page, and tells who and from where", async () => {
    await call(organization.inviteMember, { email: "new@example.com" });
    const { headers } = admin;
    const first = await platform.call(organization.listAuditEvents, { pageSize: 1 }, { headers });
    expect(first.body.auditEvents[0]).toMatchObject({
      action: "invitation.create",
      actor: admin.email,
      address: expect.stringMatching(/^10\./),
      subject: "new@example.com",
    });
    const { nextPageToken: pageToken } = first.body;
    const rest = await call(organization.listAuditEvents, { pageToken });
    const actions = rest.body.auditEvents.map(({ action }: { action: string }) => action);
    expect(actions).toContain("organization.create");
    expect(actions).not.toContain("invitation.create");
  });

  it("the audit log is filtered by actor, action, subject and time, and so are its pages", async () => {
    // what other tests did is earlier than this by more than a millisecond
    platform.advance(1_000);
    const begin = new Date(platform.now());
    await call(organization.inviteMember, { email: "one@example.com" });
    await call(organization.inviteMember, { email: "two@example.com" });
    const subjects = async (filter: object) => {
      const { outcome, body } = await call(organization.listAuditEvents, filter);
      expect(outcome).toBe("ok");
      return body.auditEvents.map(({ subject }: { subject: string }) => subject);
    };
    expect(await subjects({ action: "invitation" })).toEqual([
      "two@example.com",
      "one@example.com",
    ]);
    expect(await subjects({ action: "invitation.create", subject: "one@example.com" })).toEqual([
      "one@example.com",
    ]);
    expect(await subjects({ timeFrom: begin })).toHaveLength(2);
    expect(await subjects({ timeBefore: begin, action: "invitation" })).toEqual([]);
    expect(await subjects({ actor: admin.email, timeFrom: begin })).toHaveLength(2);
    expect(await subjects({ actor: "nobody@example.com" })).toEqual([]);
    const first = await call(organization.listAuditEvents, { action: "invitation", pageSize: 1 });
    const { nextPageToken: pageToken } = first.body;
    expect(await subjects({ action: "invitation", pageToken })).toEqual(["one@example.com"]);
    expect(await call(organization.listAuditEvents, { pageToken })).toMatchObject({ status: 400 });
    expect(await call(organization.listAuditEvents, { action: "%" })).toMatchObject({
      status: 400,
    });
  });

  it("no secret is in the log or in an error", () => {
    expect(platform.leaks()).toEqual([]);
  });
});
