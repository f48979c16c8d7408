/** A keeper of files in a folder of the test's own. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import { FileKeeper } from "../../../src/storage/files/keeper.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";

/** Both kinds of endpoints keep their files in `folder`; default: one that goes with the test run. */
export function localFiles(folder = ownFolder(), registry?: Storage) {
  const blobs = new FolderBlobStore(folder);
  const common = { blobs, newId: createIdSource(), now: Date.now };
  const keeper = new FileKeeper({ ...common, ...(registry && { registry }) });
  return { task: keeper, api: keeper };
}

export function ownFolder(): string {
  return mkdtempSync(join(inject("folder"), "files-"));
}
