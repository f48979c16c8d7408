/** Budgets by the API: what is refused, who is told what, and two who change one at once. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { UsageService } from "../../../gen/tessera/v1/usage_pb.js";
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

const { createBudget, listBudgets } = UsageService.method;

let platform: TestPlatform;
let company: Company;
let owner: Person;
let other: Person;
let token: MadeToken;

beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
  company = await newCompany(platform);
  owner = await newMember(platform, company);
  other = await newMember(platform, company);
  const { organizationId } = company;
  const { userId } = owner;
  token = await newToken(platform, company, { kind: "personal", userId, name: "own" });
  const deployment = { organizationId, deploymentId: "app-id", name: "app", authorization: true };
  await platform.accounts.createDeployment({ ...platform.deed(), ...deployment, limit: 10 });
});
afterAll(() => platform[Symbol.asyncDispose]());

const create = (budget: object) =>
  platform.call(
    createBudget,
    { organization: company.name, budget: { measure: "calls", amount: 5, ...budget } },
    { headers: company.admin.headers },
  );

it("refuses what bounds nothing, and says which field it is", async () => {
  for (const [budget, outcome, said] of [
    [{ name: "Ünit" }, "REQUEST_INVALID", "budget.name: must be 1 to 63 lower case letters"],
    [{ name: "-a" }, "REQUEST_INVALID", "budget.name"],
    [{ name: "a", measure: "" }, "REQUEST_INVALID", "budget.measure: must be calls, tasks"],
    [{ name: "a", measure: "gpu-seconds" }, "REQUEST_INVALID", "budget.measure"],
    [{ name: "a", measure: "_x" }, "REQUEST_INVALID", "budget.measure"],
    [{ name: "a", amount: undefined }, "REQUEST_INVALID", "budget.amount: is missing"],
    [{ name: "a", amount: -1 }, "REQUEST_INVALID", "budget.amount"],
    [{ name: "a", amount: "NaN" }, "REQUEST_INVALID", "budget.amount"],
    [{ name: "a", amount: "Infinity" }, "REQUEST_INVALID", "budget.amount"],
    [{ name: "a", amount: 1e15 }, "REQUEST_INVALID", "budget.amount"],
    [{ name: "a", period: 7 }, "REQUEST_INVALID", "budget.period"],
    [{ name: "a", deployment: "gone" }, "DEPLOYMENT_NOT_FOUND", "gone"],
    [{ name: "a", token: "gone" }, "TOKEN_NOT_FOUND", "gone"],
  ] as const) {
    const answer = await create(budget);
    expect([budget, answer.outcome]).toEqual([budget, outcome]);
    expect(answer.text).toContain(said);
  }
  expect((await create({ name: "twice" })).outcome).toBe("ok");
  expect((await create({ name: "twice" })).outcome).toBe("BUDGET_EXISTS");
});

it("is of a month by default, may be 0, and takes any unit", async () => {
  expect((await create({ name: "none", measure: "prompt_tokens", amount: 0 })).body).toMatchObject({
    ...{ name: "none", measure: "prompt_tokens", amount: 0, period: "BUDGET_PERIOD_MONTH" },
    version: 1,
  });
  const scope = { deployment: "app", token: token.tokenId, period: "BUDGET_PERIOD_DAY" };
  const { body } = await create({ name: "narrow", ...scope });
  expect(body).toMatchObject({ ...scope, tokenName: "own" });
  expect(Date.parse(body.periodEnd) - Date.parse(body.periodStart)).toBe(86_400_000);
});

it("tells the name of a personal token to its owner and to admins alone", async () => {
  await create({ name: "personal", token: token.tokenId });
  const told = async ({ headers }: Pick<Person, "headers">): Promise<string | undefined> => {
    const { body } = await platform.call(listBudgets, { organization: company.name }, { headers });
    return body.budgets.find((one: { name: string }) => one.name === "personal").tokenName;
  };
  expect(await told(company.admin)).toBe("own");
  expect(await told(owner)).toBe("own");
  expect(await told(other)).toBeUndefined();
});

it("is changed in REST from the ETag that was read alone: the second of two gets 412", async () => {
  await create({ name: "shared" });
  const path = "/api/v1/budgets/shared";
  const { headers } = company.admin;
  const patch = (ifMatch: string, body: object) =>
    platform.rest("PATCH", path, body, { headers: { ...headers, "if-match": ifMatch } });
  const read = await platform.rest("GET", path, undefined, { headers });
  expect([read.status, read.headers.get("etag")]).toEqual([200, '"1"']);
  const changed = await Promise.all([patch('"1"', { amount: 7 }), patch('"1"', { amount: 8 })]);
  expect(changed.map(({ status }) => status).sort()).toEqual([200, 412]);
  expect((await patch('"1"', { amount: 9 })).outcome).toBe("VERSION_CONFLICT");
  expect((await patch("*", { amount: 0 })).body).toMatchObject({ amount: 0, version: 3 });
  expect((await patch("*", { amount: -1 })).outcome).toBe("REQUEST_INVALID");
  expect((await patch("*", { measure: "tasks" })).outcome).toBe("REQUEST_INVALID");
  const unset = await platform.rest("PATCH", `${path}?update_mask=amount`, {}, { headers });
  expect(unset.outcome).toBe("REQUEST_INVALID");
  expect((await platform.rest("DELETE", path, undefined, { headers })).status).toBe(200);
  expect((await platform.rest("GET", path, undefined, { headers })).outcome).toBe(
    "BUDGET_NOT_FOUND",
  );
});
