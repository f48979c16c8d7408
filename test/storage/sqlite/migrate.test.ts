import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Migrated } from "../../../src/storage/migration.ts";
import { expand } from "../../../src/storage/migration.ts";
import { copyBefore, roomForCopy } from "../../../src/storage/sqlite/migration/copy.ts";
import { migrate } from "../../../src/storage/sqlite/migration/migrate.ts";
import { MIGRATIONS } from "../../../src/storage/sqlite/schema.ts";
import { type SqliteOptions, SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { key, newTask } from "../fixtures.ts";
import { shapeOfSqlite } from "../released/dump.ts";
import { readFixture } from "../released/fixture.ts";
import { restoreFile } from "../released/restored.ts";
import { TestFolder } from "./databases.ts";

const OLD = readFixture("sqlite-05");

/** Opens the file as a start does, and closes it; answers what it migrated. */
async function start(path: string, options: SqliteOptions = {}): Promise<Migrated | undefined> {
  let migrated: Migrated | undefined;
  await using storage = new SqliteStorage(path, {
    ...options,
    onMigrated: (what) => {
      migrated = what;
    },
  });
  await storage.start();
  return migrated;
}

/** Runs SQL on the file; the rows of the last statement. */
function sql(path: string, text: string) {
  using db = new DatabaseSync(path);
  return db.prepare(text).all();
}

/** Opens the file with another list of migrations, as another version of the program does. */
function startVersion(path: string, migrations: typeof MIGRATIONS): Migrated | undefined {
  using db = new DatabaseSync(path);
  return migrate(db, { mode: "auto", migrations, copyBeside: path });
}

describe("migrating a SQLite database", () => {
  test("copies it beside first, for its owner alone, as it was", async () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    const before = shapeOfSqlite(path);
    const copy = `${path}.schema-5.bak`;
    expect(await start(path)).toEqual({ from: 5, to: MIGRATIONS.length, copy });
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(shapeOfSqlite(copy)).toEqual(before);
    expect(sql(copy, "PRAGMA user_version")).toEqual([{ user_version: 5 }]);
    const tasks = "SELECT task_id, status, result FROM tasks ORDER BY task_id";
    expect(sql(copy, tasks)).toEqual(sql(path, tasks));
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("keeps the copies of the three newest versions", async () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    for (const version of [1, 2, 3, 4]) {
      writeFileSync(`${path}.schema-${version}.bak`, "");
    }
    writeFileSync(`${path}.schema-note.bak`, "");
    await start(path);
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".bak"))).toEqual([
      "tessera.db.schema-3.bak",
      "tessera.db.schema-4.bak",
      "tessera.db.schema-5.bak",
      "tessera.db.schema-note.bak",
    ]);
  });

  test("copies nothing when nothing is migrated, or none is wanted", async () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    expect(await start(path, { copies: false })).toEqual({ from: 5, to: MIGRATIONS.length });
    expect(await start(path)).toBeUndefined();
    expect(await start(folder.file("new.db"))).toMatchObject({ from: 0 });
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".bak"))).toEqual([]);
  });

  test("says how much room a copy needs where there is too little, and leaves nothing", () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    const files = readdirSync(folder.path).filter((name) => !/-(?:shm|wal)$/.test(name));
    using db = new DatabaseSync(path);
    const { neededBytes } = roomForCopy(db, path);
    const left = 64 * 1024 ** 2;
    const room = { neededBytes, freeBytes: neededBytes + left - 1 };
    expect(() => copyBefore(db, path, 5, room)).toThrow(
      /for which 65 MiB have to be free and 64 MiB are: free some, or make a backup elsewhere and run tessera admin migrate --no-copy$/,
    );
    expect(readdirSync(folder.path).filter((name) => !/-(?:shm|wal)$/.test(name))).toEqual(files);
    expect(copyBefore(db, path, 5, { neededBytes, freeBytes: neededBytes + left })).toBe(
      `${path}.schema-5.bak`,
    );
  });

  test("leaves the database as it was when a migration fails", () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    const before = shapeOfSqlite(path);
    const broken = [...MIGRATIONS, expand("broken", "CREATE TABLE a (b); CREATE TABLE a (b)")];
    expect(() => startVersion(path, broken)).toThrow("table a already exists");
    expect(shapeOfSqlite(path)).toEqual(before);
    expect(sql(path, "PRAGMA user_version")).toEqual([{ user_version: 5 }]);
  });

  test("is refused where it is only checked, with what to run", async () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    await expect(start(path, { migration: "check" })).rejects.toThrow(
      `cannot open the database ${path}: its schema has version 5, and this program needs version ${MIGRATIONS.length}: run tessera admin migrate`,
    );
    await expect(start(folder.file("new.db"), { migration: "check" })).rejects.toThrow(
      "it is empty: run tessera admin migrate",
    );
    expect(sql(path, "PRAGMA user_version")).toEqual([{ user_version: 5 }]);
    expect(existsSync(`${path}.schema-5.bak`)).toBe(false);
    await start(path);
    await start(path, { migration: "check" });
  });

  test("is left to the node by who works beside it, except in an empty database", async () => {
    using folder = new TestFolder();
    const beside = { ownsQueue: false, migration: "create" } as const;
    await expect(start(restoreFile(folder, OLD), beside)).rejects.toThrow(
      "its schema has version 5",
    );
    expect(await start(folder.file("new.db"), beside)).toMatchObject({ from: 0 });
  });

  test("remembers what was applied, and refuses a file that others have made", async () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, OLD);
    await start(path);
    const rows = sql(path, "SELECT version, usable_from FROM schema_migrations");
    expect(rows).toEqual(MIGRATIONS.map((_, index) => ({ version: index + 1, usable_from: 1 })));
    sql(path, "UPDATE schema_migrations SET digest = 'another' WHERE version = 2");
    await expect(start(path)).rejects.toThrow(
      "migration 2 (large files) of its schema was another one than this program's: a version that was never released has written it; run that one, or restore a copy or a backup from before",
    );
  });

  test("remembers it also of a file that was current before anything was remembered", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    await start(path);
    sql(path, "DROP TABLE schema_migrations");
    expect(await start(path, { migration: "check" })).toBeUndefined();
    expect(await start(path)).toBeUndefined();
    expect(sql(path, "SELECT version FROM schema_migrations")).toHaveLength(MIGRATIONS.length);
  });

  test("lets this version go on with what a later one has expanded", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    await start(path);
    const later = [...MIGRATIONS, expand("later", "ALTER TABLE tasks ADD COLUMN later TEXT")];
    const [from, to] = [MIGRATIONS.length, later.length];
    expect(startVersion(path, later)).toMatchObject({ from, to });
    await using storage = new SqliteStorage(path);
    await storage.start();
    await storage.submitTasks({ tasks: [newTask("a")] });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
    expect(sql(path, "PRAGMA user_version")).toEqual([{ user_version: to }]);
    expect(await storage.describeDatabase()).toMatchObject({ schemaVersion: to });
  });

  test("completes a file of the first version that a later one has taken for complete", async () => {
    using folder = new TestFolder();
    const path = restoreFile(folder, readFixture("sqlite-01-first"));
    // What later versions did before this was mended.
    using db = new DatabaseSync(path);
    for (const { sql } of MIGRATIONS.slice(1)) {
      db.exec(sql);
    }
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    db.close();
    const version = MIGRATIONS.length;
    const copy = `${path}.schema-${version}.bak`;
    expect(await start(path)).toEqual({ from: version, to: version, copy });
    await start(folder.file("fresh.db"));
    expect(shapeOfSqlite(path)).toEqual(shapeOfSqlite(folder.file("fresh.db")));
    expect(await start(path)).toBeUndefined();
  });
});
