/** No token makes anything that is worth more than itself: not by itself, and not by the people that it lets in. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import { TestPlatform, violatedFields } from "../../server/rpc/platform.ts";
import {
  type Company,
  type MadeToken,
  newDeployment,
  newMember,
  newName,
  newToken,
  type TokenOptions,
} from "../../server/rpc/world.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { TokenCalls } from "./calls.ts";

const DAY_MS = 24 * 3_600_000;
const ADDRESS = "198.51.100.1";
const NETWORKS = { allowedNetworks: ["198.51.100.0/24"] };

const { updateToken, rotateToken, getToken } = TokenService.method;
const { inviteMember, updateMember, removeMember, deleteInvitation } = OrganizationService.method;

let platform: TestPlatform;
let calls: TokenCalls;
let company: Company;
beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
});
afterAll(() => platform[Symbol.asyncDispose]());
beforeEach(async () => {
  calls = await TokenCalls.inNewCompany(platform);
  ({ company } = calls);
});

/** A token of the admin, for ten days. */
function adminToken(options: TokenOptions = {}): Promise<MadeToken> {
  const { userId } = company.admin;
  const expiresAtMs = platform.now() + 10 * DAY_MS;
  return newToken(platform, company, { kind: "personal", userId, expiresAtMs, ...options });
}

const call = (
  { headers }: Pick<MadeToken, "headers">,
  method: Parameters<TestPlatform["call"]>[0],
  message: object,
) => platform.call(method, message, { headers, address: ADDRESS });

describe("the end of a token", () => {
  it("is not after that of the token that makes it", async () => {
    const maker = await adminToken();
    const longer = await calls.create({ expiresAt: calls.inDays(11) }, maker.headers);
    expect(longer).toMatchObject({ status: 403, outcome: "ACCESS_DENIED" });
    expect(violatedFields(longer)).toEqual(["expires_at"]);
    expect(longer.body.message).toContain("choose an earlier one");
    expect((await calls.create({ expiresAt: calls.inDays(9) }, maker.headers)).outcome).toBe("ok");
    const bySession = await calls.create({ expiresAt: calls.inDays(500) });
    expect(bySession.outcome).toBe("ok");
  });

  it("is that of the token that makes it, when it is left out", async () => {
    const expiresAtMs = platform.now() + 3 * DAY_MS;
    const { body } = await calls.create(
      { expiresAt: undefined },
      (await adminToken({ expiresAtMs })).headers,
    );
    expect(Date.parse(body.token.expiresAt)).toBe(expiresAtMs);
  });

  it("is not put off by a token beyond its own, and may always be brought forward", async () => {
    const maker = await adminToken();
    const { tokenId } = await adminToken({ expiresAtMs: platform.now() + 5 * DAY_MS });
    const change = (token: object) => call(maker, updateToken, { token });
    const put = (days: number) => change({ tokenId, expiresAt: calls.inDays(days) });
    expect((await put(11)).outcome).toBe("ACCESS_DENIED");
    expect((await put(9)).outcome).toBe("ok");
    const own = { tokenId: maker.tokenId, expiresAt: calls.inDays(11) };
    expect((await change(own)).outcome).toBe("ACCESS_DENIED");
    const long = await adminToken({ expiresAtMs: platform.now() + 500 * DAY_MS });
    const brought = { tokenId: long.tokenId, expiresAt: calls.inDays(400) };
    expect((await change(brought)).outcome).toBe("ok");
    expect((await change({ tokenId: long.tokenId, name: "renamed" })).outcome).toBe("ok");
  });

  it("keeps a token that ends sooner from giving a longer one more, or a new value", async () => {
    const maker = await adminToken();
    const expiresAtMs = platform.now() + 500 * DAY_MS;
    const { tokenId } = await adminToken({ expiresAtMs, ...NETWORKS });
    const freed = { token: { tokenId }, updateMask: "allowedNetworks" };
    expect((await call(maker, updateToken, freed)).outcome).toBe("ACCESS_DENIED");
    expect((await call(maker, rotateToken, { tokenId })).outcome).toBe("ACCESS_DENIED");
    const { body } = await call(maker, getToken, { tokenId });
    expect(body).toMatchObject({ version: 1, ...NETWORKS });
    expect((await call(maker, rotateToken, { tokenId: maker.tokenId })).outcome).toBe("ok");
  });
});

describe("a deployment with authorization on", () => {
  const { updateDeployment, createDeployment, getDeployment } = DeploymentService.method;
  const CALLER = {
    ...NO_ACCESS,
    developerOperations: true,
    protectedEndpoint: true,
  };
  let name: string;
  beforeEach(async () => {
    name = await newDeployment(platform, company);
  });

  const set = (by: { readonly headers: object }, authorization: boolean) =>
    platform.call(
      updateDeployment,
      { deployment: { name, authorization }, updateMask: "authorization" },
      { headers: { ...by.headers }, address: ADDRESS },
    );

  it.each([
    ["a personal token without protected endpoint access", () => adminToken()],
    ["an organization token without it", () => newToken(platform, company)],
    [
      "a token with it for another deployment",
      async () =>
        newToken(platform, company, {
          access: CALLER,
          deployments: [await newDeployment(platform, company)],
        }),
    ],
  ])("is not opened to everybody by %s", async (_, make) => {
    const token = await make();
    const refused = await set(token, false);
    expect(refused).toMatchObject({ status: 403, outcome: "ACCESS_DENIED" });
    expect(refused.body.message).toContain(`protected endpoint access for ${name}`);
    const byRest = await platform.rest(
      "PATCH",
      `/api/v1/deployments/${name}?update_mask=authorization`,
      { authorization: false },
      { headers: token.headers, address: ADDRESS },
    );
    expect(byRest).toMatchObject({ status: 403, outcome: "ACCESS_DENIED" });
    expect((await call(token, getDeployment, { deployment: name })).body.authorization).toBe(true);
    expect((await set(token, true)).outcome).toBe("ok");
    const message = { deployment: { name, settings: { maxWorkers: 3 } } };
    expect((await call(token, updateDeployment, message)).outcome).toBe("ok");
  });

  it("is opened by a token that may call it, and by people", async () => {
    const { headers } = await newMember(platform, company);
    const openers = [
      { headers },
      await newToken(platform, company, { access: CALLER, deployments: [name] }),
      await newToken(platform, company, { access: CALLER, allDeployments: true }),
    ];
    for (const opener of openers) {
      expect((await set(opener, false)).outcome).toBe("ok");
      // Nothing is given away by what is open already.
      expect((await set(await adminToken(), false)).outcome).toBe("ok");
      expect((await set(await adminToken(), true)).body.authorization).toBe(true);
    }
  });

  it("is none that a token makes: a new one may be open from the start", async () => {
    const made = await call(await adminToken(), createDeployment, { name: newName("app") });
    expect(made.outcome).toBe("ok");
    expect(made.body).not.toHaveProperty("authorization");
  });

  it("does not open by being made anew under its name", async () => {
    const caller = await newToken(platform, company, {
      access: CALLER,
      deployments: [name],
    });
    const { headers } = company.admin;
    await platform.call(
      DeploymentService.method.deleteDeployment,
      { deployment: name },
      { headers },
    );
    const message = { name, authorization: true };
    await platform.call(createDeployment, message, { headers });
    expect((await set(caller, false)).outcome).toBe("ACCESS_DENIED");
  });
});

describe("people", () => {
  it.each([
    ["bound to a network", NETWORKS],
    ["bound to nothing but its end", {}],
    [
      "for everything",
      {
        access: {
          ...NO_ACCESS,
          developerOperations: true,
          protectedEndpoint: true,
        },
        allDeployments: true,
      },
    ],
  ])("are not let in by an admin's token %s, because they would outlive it", async (_, options) => {
    const token = await adminToken(options);
    for (const role of ["ROLE_ADMIN", "ROLE_MEMBER"]) {
      const email = `${newName("new")}@people.example`;
      const refused = await call(token, inviteMember, { email, role });
      expect(refused).toMatchObject({ status: 403, outcome: "ACCESS_DENIED" });
      expect(refused.body.message).toContain("signed in");
    }
    const { body } = await platform.call(
      OrganizationService.method.listInvitations,
      {},
      { headers: company.admin.headers },
    );
    expect(body).toEqual({ invitations: [] });
  });

  it("are not raised by an admin's token, but may be lowered and removed by one", async () => {
    const token = await adminToken(NETWORKS);
    const { userId } = await newMember(platform, company);
    const give = (role: string, by: Pick<MadeToken, "headers">) =>
      platform.call(updateMember, { userId, role }, { headers: by.headers, address: ADDRESS });
    expect((await give("ROLE_ADMIN", token)).outcome).toBe("ACCESS_DENIED");
    const { headers } = company.admin;
    const byAdmin = await platform.call(updateMember, { userId, role: "ROLE_ADMIN" }, { headers });
    expect(byAdmin.body.role).toBe("ROLE_ADMIN");
    expect((await give("ROLE_MEMBER", token)).body.role).toBe("ROLE_MEMBER");
    expect((await call(token, removeMember, { userId })).outcome).toBe("ok");
  });

  it("who were invited by a person can be uninvited by a token", async () => {
    const { headers } = company.admin;
    const message = { email: `${newName("new")}@people.example` };
    const { body } = await platform.call(inviteMember, message, { headers });
    const { invitationId } = body.invitation;
    const token = await adminToken();
    expect((await call(token, deleteInvitation, { invitationId })).outcome).toBe("ok");
  });
});
