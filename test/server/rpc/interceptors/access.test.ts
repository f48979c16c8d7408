import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { access } from "../../../../gen/tessera/v1/access_pb.js";
import { AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../../../gen/tessera/v1/deployment_pb.js";
import { LauncherService } from "../../../../gen/tessera/v1/launcher_pb.js";
import { LoginService } from "../../../../gen/tessera/v1/login_pb.js";
import { OperatorService } from "../../../../gen/tessera/v1/operator_pb.js";
import { OrganizationService } from "../../../../gen/tessera/v1/organization_pb.js";
import { TokenService } from "../../../../gen/tessera/v1/token_pb.js";
import { ask, databaseUrl } from "../../../storage/postgres/databases.ts";
import { assemble, CALLERS, expectedOutcome, type Outcome } from "../callers.ts";
import { DATABASES, POSTGRES_SCHEMA } from "../databases.ts";
import { ROWS } from "../methods.ts";
import { TestPlatform } from "../platform.ts";
import type { Row } from "../row.ts";

const SERVICES = [
  AuthService,
  DeploymentService,
  LauncherService,
  LoginService,
  OperatorService,
  OrganizationService,
  TokenService,
];

const nameOf = ({ parent, name }: DescMethod) => `${parent.name}.${name}`;

it("the table has a row for every method of the platform", () => {
  const inTable = new Set<DescMethod>(ROWS.map(({ method }) => method));
  const missing = SERVICES.flatMap(({ methods }) => methods).filter((one) => !inTable.has(one));
  expect(missing.map(nameOf)).toEqual([]);
});

describe.each(DATABASES)("on $database", ({ database, open }) => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  const titled = ROWS.map((row) => {
    const { method, variant } = row;
    return { ...row, title: nameOf(method) + (variant === undefined ? "" : `, ${variant}`) };
  });

  it.each(titled)("$title answers each caller as it should", async (row) => {
    const cast = await assemble(platform);
    const found: Record<string, string> = {};
    for (const caller of CALLERS) {
      const request = await row.request(platform, cast);
      const named = (request as { organization?: unknown }).organization === cast.company.name;
      const isNameless = caller.endsWith("not naming one") && named;
      const message = isNameless ? { ...request, organization: "" } : request;
      const headers = cast.headers[caller];
      found[caller] = (await platform.call(row.method, message, { headers })).outcome;
    }
    expect(found).toEqual(expectedOf(row));
  });

  it("no secret is in the log or in an error", () => {
    expect(platform.secrets.size).toBeGreaterThan(500);
    expect(platform.said.length).toBeGreaterThan(500);
    expect(platform.leaks()).toEqual([]);
  });

  it.runIf(database === "Postgres")("no secret is in the database", async () => {
    const url = await databaseUrl();
    const tables = await ask(
      url,
      "SELECT table_name FROM information_schema.tables WHERE table_schema = $1",
      POSTGRES_SCHEMA,
    );
    const names = tables.map(({ table_name: name }) => String(name));
    expect(names).toContain("audit_events");
    const rows = names.map((name) => ask(url, `SELECT * FROM ${POSTGRES_SCHEMA}."${name}"`));
    const dump = JSON.stringify(await Promise.all(rows));
    expect(dump.length).toBeGreaterThan(100_000);
    expect(platform.leaks(dump)).toEqual([]);
  });
});

function expectedOf({ method, outcome = "ok", except = {} }: Row): Record<string, Outcome> {
  const entries = CALLERS.map((caller): [string, Outcome] => {
    const byAccess = expectedOutcome(getOption(method, access), caller);
    // What is said to callers of the wrong kind is decided before what is right for this method.
    const special = REFUSED.has(byAccess) ? byAccess : except[caller];
    return [caller, special ?? (byAccess === "ok" ? outcome : byAccess)];
  });
  return Object.fromEntries(entries);
}

const REFUSED: ReadonlySet<Outcome> = new Set([
  "TOKEN_MISSING",
  "TOKEN_INVALID",
  "SIGN_IN_REQUIRED",
  "ACCESS_DENIED",
]);
