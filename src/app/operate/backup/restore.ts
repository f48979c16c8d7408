/**
 * `tessera admin restore`: makes a platform of a backup, in an empty data folder.
 *
 * Nothing of the file is believed: contents go to blobs by their checked ids and to
 * one fixed path, each is checked while it is written, and the whole is checked
 * before any of it counts. The database is written under another name
 * (`….restoring`), begins its new epoch there, and is renamed last. Until then there
 * is no platform: a restore that fails removes what it wrote, and one that was
 * killed leaves that name, at which `tessera start` refuses to start.
 *
 * On Postgres the database was restored by its own tools; what is not in it is
 * written, and then the new epoch begins.
 */
import { createWriteStream, existsSync, readdirSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { parseKeys, writeKeysFile } from "../../../auth/keys-file.ts";
import type { BackupConfig, DataSecrets } from "../../../config/start.ts";
import { isPostgres } from "../../../config/values.ts";
import {
  type DatabaseAddress,
  openBlobs,
  openLocalBlobs,
  openStorageBesideNodes,
  shownDatabase,
} from "../../adapters.ts";
import { keysPath, openDataFolder, restoringPath } from "../../data-folder.ts";
import { type BackupAbout, BackupError } from "./format.ts";
import { type BackupEntry, BackupReader } from "./reader.ts";
import { BackupSeal } from "./seal.ts";
import type { BackupRequest } from "./take.ts";
import { syncFolder } from "./writer.ts";

interface BackupRestored {
  readonly about: Pick<BackupAbout, "createdAt" | "version" | "database">;
  readonly files: number;
  /** Tasks that were running, and are queued again. */
  readonly requeued: number;
  /** Whether the keys were written to the data folder; else `TESSERA_KEYS` has them. */
  readonly keysWritten: boolean;
}

/** Rejects with a message that says what to do; then nothing of the backup is left. */
export async function restoreBackup(request: BackupRequest): Promise<BackupRestored> {
  const { config, secrets, passphrase, file } = request;
  refuseOccupied(config, secrets);
  await using reader = await BackupReader.open(file);
  const { about } = reader;
  refuseOtherKind(about, secrets);
  const seal = await BackupSeal.of(passphrase, about.salt);
  const keys = seal.unseal(about.keys);
  parseKeys(keys, "the backup");
  if (isPostgres(secrets.database)) {
    await refusePostgres(request);
  }
  await using undo = new AsyncDisposableStack();
  const { dataFolder } = config;
  removeOnFailure(undo, existsSync(dataFolder) ? [] : [dataFolder]);
  openDataFolder(dataFolder);
  const files = await writeEntries(reader, request, undo);
  seal.checkMac(reader.end.index, reader.end.mac);
  const keysWritten = secrets.keys === undefined;
  if (keysWritten) {
    removeOnFailure(undo, [keysPath(dataFolder)]);
    writeKeysFile(keysPath(dataFolder), keys, "the backup");
    await syncFolder(dataFolder);
  }
  const requeued = await beginEpoch(request);
  if (!isPostgres(secrets.database)) {
    await rename(restoringPath(secrets.database), secrets.database);
    await syncFolder(dirname(secrets.database));
  }
  // All is in its place.
  undo.move();
  return { about, files, requeued, keysWritten };
}

function refuseOccupied({ dataFolder, blobs }: BackupConfig, { database }: DataSecrets): void {
  const refuse = (what: string): never => {
    throw new Error(
      `${what}: a restore begins with nothing, so that no two platforms are mixed. Name an empty folder with --data, or move what is there away`,
    );
  };
  if (hasEntries(dataFolder)) {
    refuse(`the data folder ${dataFolder} is not empty`);
  }
  if (!isPostgres(database)) {
    const there = [database, `${database}-wal`, restoringPath(database)].find((path) =>
      existsSync(path),
    );
    if (there !== undefined) {
      refuse(`${there} exists`);
    }
  }
  if (blobs.kind === "folder" && hasEntries(blobs.folder)) {
    refuse(`the folder ${blobs.folder} for large files is not empty`);
  }
}

function hasEntries(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0;
}

function refuseOtherKind(about: BackupAbout, { database }: DataSecrets): void {
  if (about.database === "sqlite" && isPostgres(database)) {
    throw new BackupError(
      "the backup has a SQLite database, and DATABASE_URL names Postgres: leave --database and DATABASE_URL out",
    );
  }
  if (about.database === "postgres" && !isPostgres(database)) {
    throw new BackupError(
      "the backup is of a platform on Postgres, whose database is not in it: restore the database with pg_restore or pgBackRest first, and name it with DATABASE_URL",
    );
  }
}

/** The database has to be there before the keys, and no node may run on it. */
async function refusePostgres({ secrets, now }: BackupRequest): Promise<void> {
  const { database } = secrets;
  await using storage = openStorageBesideNodes(secrets, { migration: "auto" });
  await storage.start();
  if (await storage.accounts.needsSetup()) {
    throw new Error(
      `there is no platform in ${shownDatabase(database)}: restore the database with pg_restore or pgBackRest first`,
    );
  }
  const nodes = await storage.hosting.listNodes({ nowMs: now() });
  if (nodes.length > 0) {
    throw new Error(
      `nodes run on ${shownDatabase(database)}, or did so less than half a minute before it was copied: stop them all, wait half a minute, and restore again`,
    );
  }
}

/** Writes the database and the blobs; resolves with the number of blobs. */
async function writeEntries(
  reader: BackupReader,
  request: BackupRequest,
  undo: AsyncDisposableStack,
): Promise<number> {
  const { config, secrets, onProgress } = request;
  await using blobs = await openBlobs(
    { blobs: config.blobs, database: secrets.database },
    openLocalBlobs(config.dataFolder),
  );
  let isStarted = false;
  let files = 0;
  for await (const entry of reader.entries()) {
    if (entry.kind === "database") {
      await writeDatabase(restoringPath(secrets.database), entry, undo);
    } else {
      if (!isStarted) {
        removeOnFailure(undo, config.blobs.kind === "folder" ? [config.blobs.folder] : []);
        await blobs.start();
        isStarted = true;
      }
      // A bucket that was not lost may have it already: the same bytes under the same id.
      await blobs.write(entry.blobId, entry.content);
      files += 1;
    }
    onProgress({
      what: entry.kind === "database" ? "database" : "files",
      files,
      bytes: reader.readBytes,
    });
  }
  return files;
}

async function writeDatabase(
  path: string,
  { content }: BackupEntry,
  undo: AsyncDisposableStack,
): Promise<void> {
  removeOnFailure(undo, [path, `${path}-wal`, `${path}-shm`, `${path}-lock`]);
  await pipeline(content, createWriteStream(path, { flags: "wx", mode: 0o600 }));
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function beginEpoch({ secrets, now }: BackupRequest): Promise<number> {
  const { database } = secrets;
  const restored = isPostgres(database) ? database : restoringPath(database);
  const requeued = await beginEpochIn({ ...secrets, database: restored }, now());
  // A program that closes a file that nobody serves has taken its lock.
  await rm(`${restoringPath(database)}-lock`, { force: true });
  return requeued;
}

async function beginEpochIn(address: DatabaseAddress, nowMs: number): Promise<number> {
  await using storage = openStorageBesideNodes(address, { migration: "auto", copies: false });
  await storage.start();
  return await storage.beginEpoch({ nowMs });
}

function removeOnFailure(undo: AsyncDisposableStack, paths: readonly string[]): void {
  for (const path of paths) {
    undo.defer(() => rm(path, { recursive: true, force: true }));
  }
}
