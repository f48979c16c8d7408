/**
 * Data of a platform that is not all there: a file that was copied without its
 * write-ahead log, blobs that were left behind, a restore that broke off. A node
 * that started on it would look like a new platform, or like one without its last
 * tasks.
 */
import { existsSync, readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { BackupConfig, DataSecrets } from "../config/start.ts";
import { isPostgres } from "../config/values.ts";
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

/** Pause before a store is looked at again that had no blob which the database names. */
const BLOBS_LOOK_INTERVAL_MS = 5_000;

interface BlobsLook {
  readonly storage: Pick<Storage, "findBlobs">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly log: Log;
  /** The store has none of a few blobs that the database names, or has one again. */
  onLacking(lacking: boolean): void;
  /** Ends the look. */
  readonly signal: AbortSignal;
}

/**
 * Tells of a store that lacks blobs which the database names, and looks again until it has one:
 * a store that has none of a few is not the one that belongs to the database.
 */
export async function tellOfMissingBlobs(look: BlobsLook): Promise<void> {
  const { storage, blobs, log, onLacking, signal } = look;
  const named = await storage.findBlobs();
  const lacking: string[] = [];
  for (const blobId of named) {
    if (await lacks(blobs, blobId)) {
      lacking.push(blobId);
    }
  }
  if (lacking.length > 0) {
    log.error(
      { blobIds: lacking },
      "the database names artifacts and files of tasks that are not in the store of large files: deployments cannot start, and results are missing. Put them back beside the database, name their place with --blobs, or restore a backup (tessera admin restore)",
    );
  }
  if (lacking.length === 0 || lacking.length < named.length) {
    return;
  }
  onLacking(true);
  void untilThere(blobs, lacking, signal).then(
    () => onLacking(false),
    () => {
      // The node ends.
    },
  );
}

async function untilThere(
  blobs: Pick<BlobStore, "read">,
  lacking: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(BLOBS_LOOK_INTERVAL_MS, undefined, { signal });
    for (const blobId of lacking) {
      if (!(await lacks(blobs, blobId))) {
        return;
      }
    }
  }
}

async function lacks(blobs: Pick<BlobStore, "read">, blobId: string): Promise<boolean> {
  try {
    for await (const _ of blobs.read(blobId)) {
      return false;
    }
    return false;
  } catch (err) {
    // What needs a store that does not answer now reports it.
    return err instanceof BlobMissing;
  }
}
