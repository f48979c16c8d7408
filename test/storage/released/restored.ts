/** Databases as released versions left them, each made from its fixture. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import { PostgresBlobStore } from "../../../src/storage/blobs/postgres.ts";
import type { BlobStore } from "../../../src/storage/blobs.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "../postgres/databases.ts";
import { openSqlite, TestFolder } from "../sqlite/databases.ts";
import { shapeOfPostgres, shapeOfSqlite } from "./dump.ts";
import { type Fixture, readFixture } from "./fixture.ts";

export interface Restored extends AsyncDisposable {
  readonly fixture: Fixture;
  /** Opens it with this version of the program, which upgrades it. */
  open(): Promise<Storage>;
  readonly blobs: BlobStore;
  /** One statement on it; its rows. */
  ask(text: string): Promise<Record<string, unknown>[]>;
  /** Its tables, columns and indexes, one a line. */
  shape(): Promise<string[]>;
  readonly kind: "sqlite" | "postgres";
  /** Those of a database that this version has made. */
  newShape(): Promise<string[]>;
}

/** The path of a file made from the fixture, in the folder. */
export function restoreFile(folder: TestFolder, { database }: Fixture): string {
  const path = folder.file("tessera.db");
  using db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; BEGIN; ${database}; COMMIT`);
  return path;
}

export function restoreSqlite(name: string): Restored {
  const fixture = readFixture(name);
  const folder = new TestFolder();
  const path = restoreFile(folder, fixture);
  for (const [file, base64] of Object.entries(fixture.blobs)) {
    const target = join(folder.path, "blobs", file);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, Buffer.from(base64, "base64"));
  }
  return {
    fixture,
    blobs: new FolderBlobStore(join(folder.path, "blobs")),
    open: () => openSqlite(path),
    async ask(text) {
      using db = new DatabaseSync(path);
      return db.prepare(text).all();
    },
    kind: "sqlite",
    shape: async () => shapeOfSqlite(path),
    async newShape() {
      const made = folder.file("new.db");
      await (await openSqlite(made))[Symbol.asyncDispose]();
      return shapeOfSqlite(made);
    },
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]();
    },
  };
}

export async function restorePostgres(name: string): Promise<Restored> {
  const fixture = readFixture(name);
  const [url, schema] = [await databaseUrl(), newSchema()];
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`CREATE SCHEMA ${schema}; SET search_path = ${schema}; ${fixture.database}`);
  await client.end();
  return {
    fixture,
    blobs: new PostgresBlobStore(url, { schema }),
    open: () => openPostgres({ schema, leaseClock: "caller" }),
    ask: (text) => ask(url, text.replace(/\bFROM /, `FROM ${schema}.`)),
    kind: "postgres",
    shape: () => shapeOfPostgres(url, schema),
    async newShape() {
      const made = newSchema();
      await (await openPostgres({ schema: made }))[Symbol.asyncDispose]();
      const shape = await shapeOfPostgres(url, made);
      await ask(url, `DROP SCHEMA ${made} CASCADE`);
      return shape;
    },
    async [Symbol.asyncDispose]() {
      await ask(url, `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    },
  };
}
