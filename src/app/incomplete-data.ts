/**
 * Data of a platform that is not all there: a file that was copied without its
 * write-ahead log, blobs that were left behind, a restore that broke off. A node
 * that started on it would look like a new platform, or like one without its last
 * tasks.
 */
import { existsSync, readdirSync } from "node:fs";
import { type BackupConfig, type DataSecrets, isPostgres } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import { BlobMissing, type BlobStore } from "../storage/blobs.ts";
import type { Storage } from "../storage/storage.ts";
import { restoringPath } from "./data-folder.ts";

/** Throws a message that says what to do where a platform's database is missing beside its other data. */
export function refuseIncomplete(
  { dataFolder, blobs }: BackupConfig,
  { database }: DataSecrets,
): void {
  if (isPostgres(database)) {
    return;
  }
  if (existsSync(restoringPath(database))) {
    throw new Error(
      `a restore into ${database} has not ended, or broke off: if none is running, remove ${restoringPath(database)} and all else in ${dataFolder}, and restore again`,
    );
  }
  if (existsSync(database)) {
    return;
  }
  if (existsSync(`${database}-wal`)) {
    throw new Error(
      `the write-ahead log ${database}-wal is there, and its database is not: put the database back, or restore a backup (tessera admin restore)`,
    );
  }
  if (blobs.kind === "folder" && existsSync(blobs.folder) && readdirSync(blobs.folder).length > 0) {
    throw new Error(
      `the files of a platform are in ${blobs.folder}, and its database is not at ${database}: put it back, restore a backup (tessera admin restore), or name another folder with --data`,
    );
  }
}

/**
 * Tells of what a copy lacks. Rejects when all of it is lacking: the database has no
 * platform, and its log, which had one, is gone.
 */
export async function tellOfLosses(
  { warnings = [], accounts }: Pick<Storage, "warnings" | "accounts">,
  log: Log,
): Promise<void> {
  const [first] = warnings;
  if (first !== undefined && (await accounts.needsSetup())) {
    throw new Error(first);
  }
  for (const warning of warnings) {
    log.error({}, warning);
  }
}

/** Tells of a store that lacks a blob which the database names. */
export async function tellOfMissingBlobs(
  storage: Pick<Storage, "findBlob">,
  blobs: Pick<BlobStore, "read">,
  log: Log,
): Promise<void> {
  const blobId = await storage.findBlob();
  if (blobId === undefined) {
    return;
  }
  try {
    for await (const _ of blobs.read(blobId)) {
      return;
    }
  } catch (err) {
    if (err instanceof BlobMissing) {
      log.error(
        { blobId },
        "the database names artifacts and files of tasks that are not in the store of large files: deployments cannot start, and results are missing. Put them back beside the database, name their place with --blobs, or restore a backup (tessera admin restore)",
      );
    }
    // A store that does not answer now is told of by what needs it.
  }
}
