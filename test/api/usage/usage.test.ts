import { afterAll, beforeAll, expect, it } from "vitest";
import { UsageKey, UsageService } from "../../../gen/tessera/v1/usage_pb.js";
import { dayOf } from "../../../src/storage/days.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import {
  type Company,
  type MadeToken,
  newCompany,
  newMember,
  newToken,
  type Person,
} from "../../server/rpc/world.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const { getUsage } = UsageService.method;

let platform: TestPlatform;
let company: Company;
let owner: Person;
let other: Person;
const tokens = new Map<string, MadeToken>();

beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
  const { accounts, storage, newId } = platform;
  company = await newCompany(platform);
  owner = await newMember(platform, company);
  other = await newMember(platform, company);
  const { organizationId } = company;
  const personal = { kind: "personal", userId: owner.userId } as const;
  for (const [name, options] of [
    ["of all", {}],
    ["of one", personal],
    ["deleted, of all", {}],
    ["deleted, of one", personal],
  ] as const) {
    const token = await newToken(platform, company, { ...options, name });
    tokens.set(name, token);
    if (name.startsWith("deleted")) {
      const { tokenId } = token;
      await accounts.deleteToken({ ...platform.deed(), organizationId, tokenId });
    }
  }
  const deployment = { organizationId, deploymentId: newId(), name: "app", authorization: true };
  await accounts.createDeployment({ ...platform.deed(), ...deployment, limit: 10 });
  const day = dayOf(platform.now());
  const rows = [...tokens.values()].map(({ tokenId }) => ({
    ...{ deploymentId: deployment.deploymentId, day, endpoint: "work", tokenId },
    ...{ calls: 1, runMs: 0, gpuMs: 0, bytesIn: 0, bytesOut: 0, units: {} },
  }));
  await storage.hosting.addUsage({ recorder: "node", sequence: 1, day, rows });
});
afterAll(() => platform[Symbol.asyncDispose]());

/** The names of tokens that a caller is told, of the four that were used. */
async function namesFor(headers: Readonly<Record<string, string>>): Promise<string[]> {
  const asked = { organization: company.name, groupBy: [UsageKey.TOKEN] };
  const { body } = await platform.call(getUsage, asked, { headers });
  const told: { readonly id: string; readonly name?: string }[] = body.sums.map(
    (sum: { readonly token: { readonly id: string } }) => sum.token,
  );
  expect(told.map(({ id }) => id).sort()).toEqual(
    [...tokens.values()].map(({ tokenId }) => tokenId).sort(),
  );
  return told.flatMap(({ name }) => (name ? [name] : [])).sort();
}

it("tells admins the names of all tokens that were used, also of deleted ones", async () => {
  expect(await namesFor(company.admin.headers)).toEqual([...tokens.keys()].sort());
});

it("tells a person the names of the organization's tokens and of their own", async () => {
  const names = ["deleted, of all", "of all", "of one"];
  expect(await namesFor(owner.headers)).toEqual(names);
  expect(await namesFor(tokens.get("of one")?.headers ?? {})).toEqual(names);
});

it("tells nobody else the name of a personal token, and a token of the organization neither", async () => {
  const names = ["deleted, of all", "of all"];
  expect(await namesFor(other.headers)).toEqual(names);
  expect(await namesFor(tokens.get("of all")?.headers ?? {})).toEqual(names);
});
