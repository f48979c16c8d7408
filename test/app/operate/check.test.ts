import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Check, checkMachine } from "../../../src/app/operate/check.ts";
import { readCheckConfig } from "../../../src/config/start.ts";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { Folder } from "../../e2e/start/platform.ts";
import { FOLLOWS_PREPARED, startPooler, WITHOUT_PGBOUNCER } from "../../pgbouncer.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { type PostgresServer, startPostgres } from "../../postgres.ts";
import { ask } from "../../storage/postgres/databases.ts";

/** What is said of a database, by the names of the checks. */
async function check(env: Readonly<Record<string, string>>): Promise<Map<string, Check>> {
  using folder = new Folder();
  const { config, secrets } = readCheckConfig({ data: folder.path }, env);
  const checks = await checkMachine(config, secrets);
  return new Map(checks.map((each) => [each.name, each]));
}

const OF_POSTGRES = [
  ...["database", "schema", "search_path", "prepared statements", "notifications"],
  ...["clocks", "durability", "replicas"],
];

it.skipIf(noSandbox)(`names the services that need what is not installed${noSandbox}`, async () => {
  using programs = new Folder();
  symlinkSync(kernelSandbox().bubblewrap, join(programs.path, "bwrap"));
  const { detail } = (await check({ PATH: programs.path })).get("sandbox") ?? {};
  expect(detail).toContain("system packages are refused: there is no apt-get and no dpkg-deb");
  expect(detail).toContain("container images are refused: there is no skopeo and no umoci");
});

describe("tessera admin check on Postgres", () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres({ durable: true });
    return () => server[Symbol.asyncDispose]();
  });

  it("says of each thing how it is, and changes nothing", async () => {
    const found = await check({ DATABASE_URL: server.url });
    expect([...found.keys()]).toEqual([...OF_POSTGRES, "disk", "keys", "sandbox", "user"]);
    const results = OF_POSTGRES.map((name) => found.get(name)?.result);
    expect(results, JSON.stringify([...found])).toEqual(OF_POSTGRES.map(() => "ok"));
    expect(found.get("database")?.detail).toMatch(
      /^postgres:\/\/tessera@127.*answers, Postgres \d/,
    );
    expect(found.get("schema")?.detail).toMatch(/^none yet/);
    expect(found.get("notifications")?.detail).toMatch(/^arrive within \d+ ms$/);
    expect(found.get("durability")?.detail).toMatch(/no standby is waited for/);
    expect(found.get("disk")?.result).toBe("ok");
    const schemas = "SELECT 1 FROM pg_namespace WHERE nspname = 'tessera'";
    expect(await ask(server.url, schemas)).toEqual([]);
  });

  it.skipIf(WITHOUT_PGBOUNCER)(`finds what a pooler takes away${WITHOUT_PGBOUNCER}`, async () => {
    await using pooler = await startPooler(server.url, {
      ignore_startup_parameters: "options",
      ...(FOLLOWS_PREPARED && { max_prepared_statements: "0" }),
    });
    await using storage = new PostgresStorage(server.url);
    await storage.start();
    const found = await check({ DATABASE_URL: pooler.url });
    expect(found.get("prepared statements")).toMatchObject({
      result: "warning",
      detail: expect.stringMatching(/max_prepared_statements/),
    });
    expect(found.get("notifications")).toMatchObject({
      result: "warning",
      detail: expect.stringMatching(/DATABASE_DIRECT_URL/),
    });
    const mended = await check({ DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: server.url });
    expect(mended.get("notifications")?.result).toBe("ok");
  });

  it("fails where the database may lose what it acknowledged, or is of a newer version", async () => {
    await using weak = await startPostgres();
    await using storage = new PostgresStorage(weak.url);
    await storage.start();
    await ask(weak.url, "UPDATE tessera.schema_version SET version = 1000");
    const found = await check({ DATABASE_URL: weak.url });
    expect(found.get("durability")).toMatchObject({ result: "failed" });
    expect(found.get("schema")?.detail).toMatch(/version 1000.*run a newer version/);
  });

  it("fails where commits wait for a standby that is not there", async () => {
    await using alone = await startPostgres({
      durable: true,
      settings: { synchronous_standby_names: "other" },
    });
    const found = await check({ DATABASE_URL: alone.url });
    expect(found.get("replicas")).toMatchObject({
      result: "failed",
      detail: "none, and commits wait for other: start a standby",
    });
  });

  it("says why a database cannot be used", async () => {
    const found = await check({ DATABASE_URL: "postgres://me:hidden@127.0.0.1:1/db" });
    expect(found.get("database")).toMatchObject({
      result: "failed",
      detail: expect.stringMatching(/nothing listens there/),
    });
    expect(JSON.stringify([...found])).not.toContain("hidden");
  });
});
