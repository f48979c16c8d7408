/** Opens the data of a platform for its operator. */
import { existsSync } from "node:fs";
import type { DataConfig, DataSecrets } from "../../config/start.ts";
import { isPostgres } from "../../config/values.ts";
import { createIdSource } from "../../tasks/id.ts";
import { openStorageBesideNodes } from "../adapters.ts";
import { keysPath, openDataFolder } from "../data-folder.ts";
import { openKeys } from "../keys.ts";
import { Administration } from "./administration.ts";

/**
 * Opens the data also while nodes run on it. With `create`, it may be that of
 * a platform that has not started yet.
 */
export async function openAdministration(
  config: DataConfig,
  secrets: DataSecrets,
  { create }: { readonly create: boolean },
): Promise<Administration> {
  const { database, keys } = secrets;
  if (!isPostgres(database) && !create && !existsSync(database)) {
    throw new Error(
      `there is no platform at ${database}: run this where tessera start runs, or name its data with --data or DATABASE_URL`,
    );
  }
  if (create) {
    openDataFolder(config.dataFolder);
  }
  const storage = openStorageBesideNodes(secrets, {
    migration: create ? "create" : "check",
  });
  try {
    await storage.start();
    const { accounts, hosting } = storage;
    if (create) {
      await openKeys(config, secrets, accounts);
    }
    return new Administration({
      accounts,
      hosting,
      keys: keys === undefined ? { path: keysPath(config.dataFolder) } : { env: keys },
      shared: storage.capabilities.shared,
      now: Date.now,
      newId: createIdSource(),
      resources: storage,
    });
  } catch (err) {
    await storage[Symbol.asyncDispose]();
    throw err;
  }
}
