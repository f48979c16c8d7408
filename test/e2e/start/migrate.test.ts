import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { MIGRATIONS as POSTGRES } from "../../../src/storage/postgres/schema.ts";
import { MIGRATIONS as SQLITE } from "../../../src/storage/sqlite/schema.ts";
import { run } from "../cli/program.ts";
import { newPostgres } from "./databases.ts";
import { Folder, start } from "./platform.ts";

const TARGET = SQLITE.length;

describe("tessera admin migrate", () => {
  it("shows what it would do, and does it for a platform that only checks", async () => {
    using folder = new Folder();
    const path = join(folder.data, "tessera.db");
    const env = { TESSERA_DATA: folder.data };
    const refused = await run(["start", "--migrate", "check", "--port", "0"], { env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `tessera: cannot open the database ${path}: it is empty: run tessera admin migrate`,
    );
    const shown = await run(["admin", "migrate", "--dry-run"], { env });
    expect(shown.code, shown.stderr).toBe(0);
    expect(shown.stdout).toMatch(/^VERSION +MIGRATION *\n1 +the schema of 0\.1\.0 *\n/);
    expect(shown.stderr).toContain("Nothing was changed.");
    const migrated = await run(["admin", "migrate"], { env });
    expect(migrated.code, migrated.stderr).toBe(0);
    const again = await run(["admin", "migrate", "--output", "json"], { env });
    expect(JSON.parse(again.stdout)).toEqual({
      database: path,
      version: TARGET,
      target: TARGET,
      pending: [],
    });
    await using platform = await start(folder, { env: { TESSERA_MIGRATE: "check" } });
    expect(platform.setupCode).not.toBe("");
    const serving = await run(["admin", "migrate"], { env });
    expect(serving.stderr).toContain("another tessera process is using it; stop that one");
  });

  it("refuses what a version before the first release has written", async () => {
    using folder = new Folder();
    const path = join(folder.data, "tessera.db");
    mkdirSync(folder.data, { mode: 0o700 });
    using db = new DatabaseSync(path);
    db.exec("CREATE TABLE tasks (deployment_id TEXT NOT NULL); PRAGMA user_version = 5");
    db.close();
    const never = `cannot open the database ${path}: a version that was never released has written its schema: run that one, or use another database`;
    const env = { TESSERA_DATA: folder.data };
    for (const args of [
      ["start", "--port", "0"],
      ["admin", "migrate"],
      ["admin", "organizations"],
    ]) {
      const { code, stderr } = await run(args, { env });
      expect(code).not.toBe(0);
      expect(stderr).toContain(never);
    }
  });

  it("makes the schema of an empty Postgres, as a step of its own", async () => {
    using folder = new Folder();
    const database = await newPostgres();
    const env = { TESSERA_DATA: folder.data, DATABASE_URL: database };
    const refused = await run(["start", "--port", "0"], {
      env: { ...env, TESSERA_MIGRATE: "check" },
    });
    expect(refused.stderr).toContain("it is empty: run tessera admin migrate");
    const made = await run(["admin", "migrate", "--output", "json"], { env });
    expect(JSON.parse(made.stdout)).toMatchObject({
      version: 0,
      target: POSTGRES.length,
      migrated: { from: 0, to: POSTGRES.length },
    });
    expect(made.stdout).not.toContain(`:${new URL(database).password}@`);
    await using platform = await start(folder, { database, env: { TESSERA_MIGRATE: "check" } });
    expect(platform.setupCode).not.toBe("");
  });
});
