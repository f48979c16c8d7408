import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { TOKEN_PATTERN } from "../../../src/auth/token-format.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { type PlatformAnswer, TestPlatform, violatedFields } from "../../server/rpc/platform.ts";
import {
  type Company,
  newCompany,
  newDeployment,
  newMember,
  newToken,
  type Person,
} from "../../server/rpc/world.ts";
import { DEVELOPER, ENDPOINT, MONITORING, TokenCalls } from "./calls.ts";

const { getToken, listTokens, updateToken, rotateToken } = TokenService.method;

describe.each(DATABASES)("tokens on $database", ({ open }) => {
  let platform: TestPlatform;
  let calls: TokenCalls;
  let company: Company;
  let admin: Person;
  let deployment: string;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    calls = await TokenCalls.inNewCompany(platform);
    ({ company } = calls);
    ({ admin } = company);
    deployment = await newDeployment(platform, company);
  });

  describe("are created", () => {
    it("with the value, which the checksum and the pattern know, and the command to log in", async () => {
      const { body } = await calls.create({ description: "for the pipeline" });
      expect(body.value).toMatch(TOKEN_PATTERN);
      expect(body.token).toMatchObject({
        organization: company.name,
        kind: "TOKEN_KIND_PERSONAL",
        name: "ci",
        description: "for the pipeline",
        access: DEVELOPER,
        version: 1,
        hint: body.value.slice(0, 9),
        createdBy: admin.email,
      });
      expect(body.loginCommand).toBe(
        `tessera cloud login --api-token ${body.value} --endpoint https://tessera.example`,
      );
      expect(await calls.me(body.value)).toMatchObject({
        outcome: "ok",
        body: { kind: "personal_token", organization: company.name, email: admin.email },
      });
    });

    it("for the organization, without a person", async () => {
      const { token, value } = await calls.organizationToken({
        access: ENDPOINT,
        allDeployments: true,
      });
      expect(token).toMatchObject({ kind: "TOKEN_KIND_ORGANIZATION", revealable: true });
      const answer = await calls.me(value);
      expect(answer.body).toMatchObject({ kind: "organization_token", all_deployments: true });
      expect(answer.body).not.toHaveProperty("email");
    });

    it("without a command where they cannot log in", async () => {
      const { body } = await calls.create({ access: ENDPOINT, deployments: [deployment] });
      expect(body).not.toHaveProperty("loginCommand");
      expect(body.token.deployments).toEqual([deployment]);
    });

    const BAD: readonly (readonly [string, object, string])[] = [
      ["no access", { access: [] }, "access"],
      ["no expiry", { expiresAt: undefined }, "expires_at"],
      ["an expiry in the past", { expiresAt: "2020-01-01T00:00:00Z" }, "expires_at"],
      ["no name", { name: "" }, "name"],
      ["a name of spaces", { name: "   " }, "name"],
      ["a name that is too long", { name: "x".repeat(101) }, "name"],
      ["a description that is too long", { description: "x".repeat(1_001) }, "description"],
      ["endpoints without deployments", { access: ENDPOINT }, "deployments"],
      [
        "a list and all",
        { access: ENDPOINT, allDeployments: true, deployments: ["a"] },
        "deployments",
      ],
      ["deployments without endpoints", { deployments: ["a"] }, "deployments"],
      ["a deployment that is no name", { access: ENDPOINT, deployments: ["A b"] }, "deployments.0"],
      ["monitoring together", { access: [...MONITORING, ...DEVELOPER] }, "access"],
      ["personal monitoring", { access: MONITORING }, "access"],
      ["a network that is none", { allowedNetworks: ["10.0.0.0/40"] }, "allowed_networks.0"],
      ["a start after the end", { notBefore: "2090-01-01T00:00:00Z" }, "not_before"],
    ];

    it.each(BAD)("but not with %s", async (_, fields, field) => {
      const answer = await calls.create(fields);
      expect(answer).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
      expect(violatedFields(answer)).toContain(field);
      expect(answer.body.message).toContain(field);
      const { body } = await platform.call(listTokens, {}, { headers: admin.headers });
      expect(body).toEqual({ tokens: [] });
    });

    it("but not with an expiry that is no date", async () => {
      const answer = await platform.rest(
        "POST",
        "/api/v1/tokens",
        { name: "x", access: ["developer_operations"], expires_at: "next week" },
        { headers: admin.headers },
      );
      expect(answer).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
      expect(violatedFields(answer)).toEqual(["expires_at"]);
    });

    it("but not for a deployment that does not exist, or is another organization's", async () => {
      const other = await newDeployment(platform, await newCompany(platform));
      for (const name of ["nothing", other]) {
        const answer = await calls.create({ access: ENDPOINT, deployments: [deployment, name] });
        expect(answer).toMatchObject({ status: 404, outcome: "DEPLOYMENT_NOT_FOUND" });
        expect(answer.body.message).toContain(name);
      }
    });

    it("for monitoring once the operator has enabled it", async () => {
      const fields = { kind: "TOKEN_KIND_ORGANIZATION", access: MONITORING };
      const refused = await calls.create(fields);
      expect(refused).toMatchObject({ status: 400, outcome: "MONITORING_DISABLED" });
      expect(refused.body.message).toContain("operator");
      const { organizationId } = company;
      const enabled = { organizationId, monitoringEnabled: true };
      await platform.accounts.updateOrganization({ ...platform.deed(), ...enabled });
      const { body } = await calls.create(fields);
      expect((await calls.me(body.value)).body.kind).toBe("monitoring_token");
      expect(body.token.monitoringUrl).toBe("https://tessera.example/federate");
    });

    it("but not by tokens with less access", async () => {
      const { headers } = await newToken(platform, company, {
        kind: "personal",
        userId: admin.userId,
        expiresAtMs: platform.now() + 48 * 3_600_000,
      });
      const more = { access: [...DEVELOPER, ...ENDPOINT], allDeployments: true };
      expect((await calls.create(more, headers)).outcome).toBe("ACCESS_DENIED");
      expect((await calls.create({}, headers)).outcome).toBe("ok");
    });
  });

  describe("are listed", () => {
    it("newest first, page by page, by kind, each person their own", async () => {
      const member = await newMember(platform, company);
      const names = ["a", "b", "c"];
      for (const name of names) {
        await calls.organizationToken({ name });
      }
      await calls.create({ name: "mine" });
      const list = (message: object, headers: Record<string, string> = admin.headers) =>
        platform.call(listTokens, message, { headers });
      const shown = ({ body }: PlatformAnswer) =>
        (body.tokens ?? []).map(({ name }: { name: string }) => name);
      expect(shown(await list({}))).toEqual(["mine", "c", "b", "a"]);
      expect(shown(await list({}, member.headers))).toEqual(["c", "b", "a"]);
      expect(shown(await list({ kind: "TOKEN_KIND_PERSONAL" }))).toEqual(["mine"]);
      const first = await list({ pageSize: 3 });
      const { nextPageToken: pageToken } = first.body;
      expect(shown(await list({ pageSize: 3, pageToken }))).toEqual(["a"]);
      for (const message of [
        { pageToken, kind: "TOKEN_KIND_PERSONAL" },
        { pageToken: "AAAA" },
        { pageToken: `${pageToken}x`.slice(3) },
      ]) {
        const refused = await list(message);
        expect(refused.outcome).toBe("REQUEST_INVALID");
        expect(violatedFields(refused)).toEqual(["page_token"]);
      }
      expect((await list({ pageToken }, member.headers)).outcome).toBe("REQUEST_INVALID");
    });
  });

  describe("are updated", () => {
    const update = (token: object, mask?: string) =>
      platform.call(
        updateToken,
        { token, ...(mask !== undefined && { updateMask: mask }) },
        { headers: admin.headers },
      );

    it("in the fields that are set, at once, with a version more", async () => {
      const { token, value } = await calls.organizationToken({
        access: ENDPOINT,
        allDeployments: true,
      });
      const { tokenId } = token;
      expect((await calls.me(value)).body.all_deployments).toBe(true);
      const { body } = await update({ tokenId, name: "renamed", deployments: [deployment] });
      expect(body).toMatchObject({ name: "renamed", deployments: [deployment], version: 2 });
      expect(body).not.toHaveProperty("allDeployments");
      expect((await calls.me(value)).body.deployments).toEqual([deployment]);
    });

    it("in the fields of the mask, also to nothing", async () => {
      const notBefore = calls.inDays(0.5);
      const { token } = await calls.organizationToken({
        description: "long",
        notBefore,
        allowedNetworks: ["10.0.0.0/8"],
      });
      const { tokenId } = token;
      const { body } = await update(
        { tokenId, name: "ignored" },
        "description,notBefore,allowedNetworks",
      );
      expect(body).toMatchObject({ name: "ci" });
      expect(body).not.toHaveProperty("description");
      expect(body).not.toHaveProperty("notBefore");
      expect(body.allowedNetworks).toEqual([]);
    });

    it("but not in fields that do not exist or cannot change, nor in none", async () => {
      const { token } = await calls.organizationToken();
      const { tokenId } = token;
      for (const [mask, named] of [
        ["colour", "colour"],
        ["hint", "hint"],
        ["name,tokenId", "token_id"],
      ] as const) {
        const answer = await update({ tokenId, name: "x" }, mask);
        expect(answer.outcome).toBe("REQUEST_INVALID");
        expect(answer.body.message).toContain(named);
      }
      expect((await update({ tokenId })).outcome).toBe("REQUEST_INVALID");
    });

    it("but not to what could not be created", async () => {
      const { token } = await calls.organizationToken();
      const { tokenId } = token;
      for (const fields of [
        { expiresAt: "2020-01-01T00:00:00Z" },
        { access: ENDPOINT },
        { access: MONITORING },
        { name: "x".repeat(101) },
      ]) {
        expect((await update({ tokenId, ...fields })).outcome).toBe("REQUEST_INVALID");
      }
      const missing = { tokenId, access: ENDPOINT, deployments: ["nothing"] };
      expect((await update(missing)).outcome).toBe("DEPLOYMENT_NOT_FOUND");
      const { body } = await platform.call(getToken, { tokenId }, { headers: admin.headers });
      expect(body.version).toBe(1);
    });

    it("only from the version that the caller has seen", async () => {
      const { token } = await calls.organizationToken();
      const { tokenId } = token;
      expect((await update({ tokenId, name: "b", version: 1 })).body.version).toBe(2);
      const stale = await update({ tokenId, name: "c", version: 1 });
      expect(stale).toMatchObject({ status: 409, outcome: "VERSION_CONFLICT" });
    });

    it("in REST, only from the ETag that the caller has read", async () => {
      const { token } = await calls.organizationToken();
      const path = `/api/v1/tokens/${token.tokenId}`;
      const { headers } = admin;
      const patch = (ifMatch: string, body: object = { name: "b" }) =>
        platform.rest("PATCH", path, body, { headers: { ...headers, "if-match": ifMatch } });
      const read = await platform.rest("GET", path, undefined, { headers });
      expect(read.headers.get("etag")).toBe('"1"');
      const first = await patch('"1"');
      expect([first.status, first.headers.get("etag")]).toEqual([200, '"2"']);
      for (const tag of ['"1"', '"3"', 'W/"2"', '"02"', '"99999999999"', '"two"', '""']) {
        expect(await patch(tag), tag).toMatchObject({ status: 412, outcome: "VERSION_CONFLICT" });
      }
      for (const malformed of ["2", '"2', '"2", "3"', "*2", 'w/"2"']) {
        expect(await patch(malformed), malformed).toMatchObject({
          status: 400,
          outcome: "REQUEST_INVALID",
        });
      }
      expect((await patch('"2"', { name: "c", version: 1 })).outcome).toBe("REQUEST_INVALID");
      expect((await patch('"2"', { name: "c", version: 2 })).body).toMatchObject({ version: 3 });
      expect((await patch("*")).body).toMatchObject({ name: "b", version: 4 });
      expect((await patch("*", { name: "d", version: 1 })).status).toBe(409);
      const gone = { headers: { ...headers, "if-match": '"4"' } };
      const unread = await platform.rest("DELETE", path, undefined, gone);
      expect(unread).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
      expect((await platform.rest("GET", path, undefined, gone)).body.version).toBe(4);
    });

    it("all of many at once, when no version is given", async () => {
      const { token } = await calls.organizationToken();
      const { tokenId } = token;
      const answers = await Promise.all([
        update({ tokenId, name: "b" }),
        update({ tokenId, description: "c" }),
        update({ tokenId, expiresAt: calls.inDays(2) }),
      ]);
      expect(answers.map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok"]);
      const { body } = await platform.call(getToken, { tokenId }, { headers: admin.headers });
      expect(body).toMatchObject({ name: "b", description: "c", version: 4 });
    });

    it("but not by a token, to or from more than its own access", async () => {
      const own = { kind: "personal", userId: admin.userId } as const;
      const { headers, tokenId } = await newToken(platform, company, own);
      const { token } = (await calls.create({ access: ENDPOINT, allDeployments: true })).body;
      const call = (message: object) => platform.call(updateToken, message, { headers });
      const raised = { tokenId, access: [...DEVELOPER, ...ENDPOINT], allDeployments: true };
      expect((await call({ token: raised })).outcome).toBe("ACCESS_DENIED");
      const other = { tokenId: token.tokenId, name: "x" };
      expect((await call({ token: other })).outcome).toBe("ACCESS_DENIED");
      const rotated = { tokenId: token.tokenId };
      expect((await platform.call(rotateToken, rotated, { headers })).outcome).toBe(
        "ACCESS_DENIED",
      );
    });
  });

  it("are in no log and no error", () => {
    expect(platform.leaks()).toEqual([]);
  });
});
