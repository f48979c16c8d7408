import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { MIGRATIONS as POSTGRES } from "../../../src/storage/postgres/schema.ts";
import { MIGRATIONS as SQLITE } from "../../../src/storage/sqlite/schema.ts";
import { readFixture } from "../../storage/released/fixture.ts";
import { run } from "../cli/program.ts";
import { newPostgres } from "./databases.ts";
import { Folder, start } from "./platform.ts";

const TARGET = SQLITE.length;

/** Puts the data of a platform of an earlier version into the folder. */
function putOld(folder: Folder) {
  const { database, stored } = readFixture("sqlite-05");
  mkdirSync(folder.data, { mode: 0o700 });
  const path = join(folder.data, "tessera.db");
  using db = new DatabaseSync(path);
  db.exec(`BEGIN; ${database}; COMMIT`);
  writeFileSync(join(folder.data, "keys.json"), stored.keys ?? "", { mode: 0o600 });
  return { path, copy: `${path}.schema-5.bak`, account: stored.account };
}

describe("tessera admin migrate", () => {
  it("shows what it would do, and does it for a platform that only checks", async () => {
    using folder = new Folder();
    const { path, copy, account } = putOld(folder);
    const env = { TESSERA_DATA: folder.data };
    const refused = await run(["start", "--migrate", "check", "--port", "0"], { env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toBe(
      `tessera: cannot open the database ${path}: its schema has version 5, and this program needs version ${TARGET}: run tessera admin migrate (with --dry-run it shows what that does)\n`,
    );
    const shown = await run(["admin", "migrate", "--dry-run"], { env });
    expect(shown.code, shown.stderr).toBe(0);
    expect(shown.stdout).toMatch(
      /^VERSION +MIGRATION *\n6 +traces *\n7 +due tasks by endpoint *\n/,
    );
    expect(shown.stderr).toContain(
      `Nothing was changed. ${path} has version 5 of the schema, and would have ${TARGET}; it is copied to ${copy} first, which takes `,
    );
    const beside = await run(["admin", "organizations"], { env });
    expect(beside.stderr).toContain("its schema has version 5");
    expect(existsSync(copy)).toBe(false);
    const migrated = await run(["admin", "migrate"], { env });
    expect(migrated.stderr).toBe(
      `Migrated ${path} from version 5 of the schema to ${TARGET}; it is as before in ${copy}\n`,
    );
    const again = await run(["admin", "migrate", "--output", "json"], { env });
    expect(JSON.parse(again.stdout)).toEqual({
      database: path,
      version: TARGET,
      target: TARGET,
      pending: [],
    });
    await using platform = await start(folder, { env: { TESSERA_MIGRATE: "check" } });
    const { email = "", password = "" } = account ?? {};
    expect((await platform.signIn(email, password)).status).toBe(200);
    const serving = await run(["admin", "migrate"], { env });
    expect(serving.stderr).toContain("another tessera process is using it; stop that one");
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
