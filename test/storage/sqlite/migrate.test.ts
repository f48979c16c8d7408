import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Migrated, MigrationMode } from "../../../src/storage/migration.ts";
import { expand } from "../../../src/storage/migration.ts";
import { copyBefore, roomForCopy } from "../../../src/storage/sqlite/migration/copy.ts";
import { inspectSqlite } from "../../../src/storage/sqlite/migration/inspect.ts";
import { migrate } from "../../../src/storage/sqlite/migration/migrate.ts";
import { MIGRATIONS } from "../../../src/storage/sqlite/schema.ts";
import { type SqliteOptions, SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { key, newTask } from "../fixtures.ts";
import { TestFolder } from "./databases.ts";

/** The migrations of the next version of the program. */
const NEXT = [...MIGRATIONS, expand("later", "ALTER TABLE tasks ADD COLUMN later text")];
const [OLD_VERSION, NEXT_VERSION] = [MIGRATIONS.length, NEXT.length];

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

/** A file of this version, with a task. */
async function oldFile(folder: TestFolder): Promise<string> {
  const path = folder.file("tessera.db");
  await using storage = new SqliteStorage(path);
  await storage.start();
  await storage.submitTasks({ tasks: [newTask("before")] });
  return path;
}

/** Runs SQL on the file; the rows of the last statement. */
function sql(path: string, text: string) {
  using db = new DatabaseSync(path);
  return db.prepare(text).all();
}

/** Tables, indexes and views, as they were made. */
function shapeOf(path: string) {
  return sql(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name");
}

/** Opens the file with another list of migrations, as another version of the program does. */
function startVersion(
  path: string,
  migrations: typeof MIGRATIONS,
  { mode = "auto", copies = true }: { mode?: MigrationMode; copies?: boolean } = {},
): Migrated | undefined {
  using db = new DatabaseSync(path);
  return migrate(db, { mode, migrations, ...(copies && { copyBeside: path }) });
}

describe("migrating a SQLite database", () => {
  test("copies it beside first, for its owner alone, as it was", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    const before = shapeOf(path);
    const copy = `${path}.schema-${OLD_VERSION}.bak`;
    expect(startVersion(path, NEXT)).toEqual({ from: OLD_VERSION, to: NEXT_VERSION, copy });
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(shapeOf(copy)).toEqual(before);
    expect(sql(copy, "PRAGMA user_version")).toEqual([{ user_version: OLD_VERSION }]);
    const tasks = "SELECT task_id, status, result FROM tasks ORDER BY task_id";
    expect(sql(copy, tasks)).toEqual(sql(path, tasks));
    expect(sql(path, tasks)).toHaveLength(1);
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("keeps the copies of the three newest versions", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    const more = [1, 2, 3, 4].map((number) => expand(`${number}`, `CREATE TABLE t${number} (a)`));
    writeFileSync(`${path}.schema-note.bak`, "");
    for (const count of [1, 2, 3, 4]) {
      startVersion(path, [...MIGRATIONS, ...more.slice(0, count)]);
    }
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".bak"))).toEqual([
      `tessera.db.schema-${OLD_VERSION + 1}.bak`,
      `tessera.db.schema-${OLD_VERSION + 2}.bak`,
      `tessera.db.schema-${OLD_VERSION + 3}.bak`,
      "tessera.db.schema-note.bak",
    ]);
  });

  test("copies nothing when nothing is migrated, or none is wanted", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    expect(startVersion(path, NEXT, { copies: false })).toEqual({
      from: OLD_VERSION,
      to: NEXT_VERSION,
    });
    expect(startVersion(path, NEXT)).toBeUndefined();
    expect(await start(folder.file("new.db"))).toMatchObject({ from: 0 });
    expect(await start(folder.file("new.db"))).toBeUndefined();
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".bak"))).toEqual([]);
  });

  test("says how much room a copy needs where there is too little, and leaves nothing", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
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

  test("is told in advance: what is pending, the copy, and its room", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    expect(await inspectSqlite(path, NEXT)).toEqual({
      version: OLD_VERSION,
      target: NEXT_VERSION,
      pending: [{ version: NEXT_VERSION, name: "later", usableFrom: 1 }],
      copy: {
        path: `${path}.schema-${OLD_VERSION}.bak`,
        neededBytes: expect.any(Number),
        freeBytes: expect.any(Number),
      },
    });
    expect(await inspectSqlite(path)).toMatchObject({ pending: [], copy: undefined });
    expect(await inspectSqlite(folder.file("new.db"), NEXT)).toMatchObject({
      version: 0,
      pending: NEXT.map(({ name }) => ({ name })),
      copy: undefined,
    });
    expect(existsSync(folder.file("new.db"))).toBe(false);
  });

  test("leaves the database as it was when a migration fails", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    const before = shapeOf(path);
    const broken = [...NEXT, expand("broken", "CREATE TABLE a (b); CREATE TABLE a (b)")];
    expect(() => startVersion(path, broken)).toThrow("table a already exists");
    expect(shapeOf(path)).toEqual(before);
    expect(sql(path, "PRAGMA user_version")).toEqual([{ user_version: OLD_VERSION }]);
  });

  test("is refused where it is only checked, with what to run", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    expect(() => startVersion(path, NEXT, { mode: "check" })).toThrow(
      `its schema has version ${OLD_VERSION}, and this program needs version ${NEXT_VERSION}: run tessera admin migrate`,
    );
    await expect(start(folder.file("new.db"), { migration: "check" })).rejects.toThrow(
      `cannot open the database ${folder.file("new.db")}: it is empty: run tessera admin migrate`,
    );
    expect(sql(path, "PRAGMA user_version")).toEqual([{ user_version: OLD_VERSION }]);
    expect(existsSync(`${path}.schema-${OLD_VERSION}.bak`)).toBe(false);
    startVersion(path, NEXT);
    expect(startVersion(path, NEXT, { mode: "check" })).toBeUndefined();
    await start(path, { migration: "check" });
  });

  test("is left to the node by who works beside it, except in an empty database", async () => {
    using folder = new TestFolder();
    expect(() =>
      startVersion(folder.file("new.db"), NEXT.slice(0, -1), { mode: "create" }),
    ).not.toThrow();
    expect(() => startVersion(folder.file("new.db"), NEXT, { mode: "create" })).toThrow(
      `its schema has version ${OLD_VERSION}`,
    );
    const beside = { ownsQueue: false, migration: "create" } as const;
    expect(await start(folder.file("other.db"), beside)).toMatchObject({ from: 0 });
  });

  test("remembers what was applied, and refuses a file that others have made", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    const rows = sql(path, "SELECT version, usable_from FROM schema_migrations");
    expect(rows).toEqual(MIGRATIONS.map((_, index) => ({ version: index + 1, usable_from: 1 })));
    sql(path, "UPDATE schema_migrations SET digest = 'another' WHERE version = 1");
    await expect(start(path)).rejects.toThrow(
      "migration 1 (the schema of 0.1.0) of its schema was another one than this program's: a version that was never released has written it; run that one, or use another database",
    );
  });

  test("refuses a file from before anything was remembered, and leaves it as it is", async () => {
    using folder = new TestFolder();
    const path = await oldFile(folder);
    sql(path, "DROP TABLE schema_migrations");
    const before = shapeOf(path);
    for (const version of [1, 5, 22]) {
      using db = new DatabaseSync(path);
      db.exec(`PRAGMA user_version = ${version}`);
      db.close();
      await expect(start(path)).rejects.toThrow(
        "a version that was never released has written its schema: run that one, or use another database",
      );
      await expect(inspectSqlite(path)).rejects.toThrow("never released");
    }
    expect(shapeOf(path)).toEqual(before);
  });

  test("lets this version go on with what a later one has expanded", async () => {
    using folder = new TestFolder();
    const path = folder.file();
    await start(path);
    const [from, to] = [OLD_VERSION, NEXT_VERSION];
    expect(startVersion(path, NEXT)).toMatchObject({ from, to });
    await using storage = new SqliteStorage(path);
    await storage.start();
    await storage.submitTasks({ tasks: [newTask("a")] });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
    expect(sql(path, "PRAGMA user_version")).toEqual([{ user_version: to }]);
    expect(await storage.describeDatabase()).toMatchObject({ schemaVersion: to });
  });
});
