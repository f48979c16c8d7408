/** SQLite databases for tests: in memory, and in a folder of their own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import type { TestDatabase } from "../contract.ts";

export class TestFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "tessera-storage-"));

  file(name = "tasks.db"): string {
    return join(this.path, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export async function openSqlite(path: string): Promise<SqliteStorage> {
  const storage = new SqliteStorage(path);
  await storage.start();
  return storage;
}

export async function memoryDatabase(): Promise<TestDatabase> {
  return {
    open: () => openSqlite(":memory:"),
    async [Symbol.asyncDispose]() {},
  };
}

export async function fileDatabase(): Promise<TestDatabase> {
  const folder = new TestFolder();
  return {
    open: () => openSqlite(folder.file()),
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]();
    },
  };
}
