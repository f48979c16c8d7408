/** What tests of cells begin with: databases that are empty, storages over them, and ids of tasks. */
import { beforeEach } from "vitest";
import { CellsStorage } from "../../../src/storage/cells/storage.ts";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { NewTask } from "../../../src/storage/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { DEPLOYMENT, ENDPOINT, NOW_MS, newTask } from "../fixtures.ts";
import { ask } from "../postgres/databases.ts";
import { cellsStorage, databaseUrls, emptyDatabases } from "./databases.ts";

let atMs = NOW_MS;
export const newId = createIdSource(() => {
  atMs += 1;
  return atMs;
});

export async function opened(): Promise<CellsStorage> {
  const storage = await cellsStorage({});
  await storage.start();
  return storage;
}

/** Home and one cell, with the storages of both; `b`: with the other cell, too. */
export async function withCell({ b = false } = {}) {
  const urls = await databaseUrls();
  const of = (url: string) => new PostgresStorage(url, { connections: 4, leaseClock: "caller" });
  const [home, cell] = [of(urls[0]), of(urls[1])];
  const cells = [{ name: "a", storage: cell }, ...(b ? [{ name: "b", storage: of(urls[2]) }] : [])];
  const storage = new CellsStorage({ home, cells });
  await storage.start();
  return { storage, home, cell };
}

/** Has all cells take tasks with keys, which they do only after a while. */
export async function openToKeys(): Promise<void> {
  const [home] = await databaseUrls();
  await ask(home, "UPDATE tessera.cells SET keyed_from_ms = cell");
}

export const placing = { deploymentId: DEPLOYMENT, endpoint: ENDPOINT };

/** A task with an idempotency key. */
export function keyed(taskId: string, idempotencyKey: string): NewTask {
  return newTask(taskId, { idempotency: { key: idempotencyKey, digest: "d" } });
}

/** Has the tests of a file begin with empty databases. */
export function beginEmpty(): void {
  beforeEach(async () => {
    atMs = NOW_MS;
    await emptyDatabases();
  });
}
