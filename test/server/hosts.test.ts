import { request } from "node:http";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openSqlite } from "../storage/sqlite/databases.ts";
import { TestPlatform } from "./rpc/platform.ts";
import { type Company, type MadeToken, newCompany, newToken } from "./rpc/world.ts";

let platform: TestPlatform;
let company: Company;
let other: Company;
let token: MadeToken;
beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
  company = await newCompany(platform);
  other = await newCompany(platform);
  const { userId } = company.admin;
  token = await newToken(platform, company, { kind: "personal", userId });
  // An admin of both.
  const { organizationId } = other;
  const invitationId = platform.newId();
  await platform.accounts.invite({
    ...platform.deed(),
    organizationId,
    invitationId,
    digest: "any",
    email: company.admin.email,
    role: "admin",
    expiresAtMs: platform.now() + 60_000,
    limit: 10,
  });
  await platform.accounts.acceptInvitation({ ...platform.deed(), invitationId, userId });
});
afterAll(() => platform[Symbol.asyncDispose]());

async function get(host: string, path: string, headers: Record<string, string>) {
  const req = request(platform.origin + path, { headers: { ...headers, host } });
  req.end();
  const { promise, resolve, reject } = Promise.withResolvers<import("node:http").IncomingMessage>();
  req.once("response", resolve).once("error", reject);
  const res = await promise;
  const body = JSON.parse(await text(res));
  return { status: res.statusCode, body, reason: body.details?.[0]?.debug?.reason };
}

const hostOf = ({ name }: Company): string => `${name}.tessera.example`;

it("the host decides the organization of a session", async () => {
  const { headers } = company.admin;
  const emails = async (host: string) =>
    (await get(host, "/api/v1/members", headers)).body.members.map(
      ({ email }: { email: string }) => email,
    );
  expect(await emails(hostOf(company))).toEqual([company.admin.email]);
  expect(await emails(`${hostOf(other).toUpperCase()}:8443`)).toHaveLength(2);
  const undecided = await get("tessera.example", "/api/v1/members", headers);
  expect(undecided).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
});

it("a person sees only the host's organization in the list there", async () => {
  const { headers } = company.admin;
  const names = async (host: string) =>
    (await get(host, "/api/v1/organizations", headers)).body.organizations.map(
      ({ name }: { name: string }) => name,
    );
  expect(await names("tessera.example")).toHaveLength(2);
  expect(await names(hostOf(other))).toEqual([other.name]);
});

it("a host that contradicts the request is refused", async () => {
  const { headers } = company.admin;
  const path = `/api/v1/members?organization=${company.name}`;
  expect(await get(hostOf(company), path, headers)).toMatchObject({ status: 200 });
  expect(await get(hostOf(other), path, headers)).toMatchObject({
    status: 400,
    reason: "REQUEST_INVALID",
  });
});

it("a token is worth nothing on the host of another organization, whatever it asks for", async () => {
  const { headers } = token;
  for (const path of ["/api/v1/tokens", "/api/v1/me", "/api/v1/organizations"]) {
    expect((await get(hostOf(company), path, headers)).status).toBe(200);
    expect((await get("tessera.example", path, headers)).status).toBe(200);
    expect(await get(hostOf(other), path, headers)).toMatchObject({
      status: 404,
      reason: "ORGANIZATION_NOT_FOUND",
    });
    expect(await get("nobody.tessera.example", path, headers)).toMatchObject({
      status: 404,
      reason: "ORGANIZATION_NOT_FOUND",
    });
  }
});

it("the host counts over HTTP/2, too", async () => {
  const session = connect(platform.origin);
  const status = async (authority: string) => {
    const stream = session.request({
      ":method": "GET",
      ":path": "/api/v1/me",
      ":authority": authority,
      ...token.headers,
    });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingHttpHeaders>();
    stream.once("response", resolve).once("error", reject).resume();
    return (await promise)[":status"];
  };
  expect(await status(hostOf(company))).toBe(200);
  expect(await status(hostOf(other))).toBe(404);
  session.destroy();
});

it("a session is a stranger on the host of an organization that its person is not in", async () => {
  const { headers } = other.admin;
  expect(await get(hostOf(company), "/api/v1/members", headers)).toMatchObject({
    status: 404,
    reason: "ORGANIZATION_NOT_FOUND",
  });
  expect((await get("a.b.tessera.example", "/api/v1/members", headers)).status).toBe(200);
});
