/**
 * `tessera admin backup`: one file with what a platform has stored, made while nodes
 * run on it.
 *
 * The database is copied first, as it is at one moment; the blobs that the copy names
 * follow. Blobs never change, so their later copies fit. One that was deleted
 * meanwhile belonged to something that has expired or was deleted since, which is
 * looked up: its task ends in the restored platform by the same rules. Anything
 * else that is missing or damaged is told, and makes the command fail, with a backup
 * of all the rest.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { parseKeys, readKeysText } from "../../../auth/keys-file.ts";
import type { BackupConfig, DataSecrets } from "../../../config/start.ts";
import { isPostgres } from "../../../config/values.ts";
import type { BackupSource, NamedBlob } from "../../../storage/backup.ts";
import { BlobMissing, type BlobStore } from "../../../storage/blobs.ts";
import { version } from "../../../version.ts";
import { openBackup, openBlobs, openLocalBlobs, shownDatabase } from "../../adapters.ts";
import { keysPath } from "../../data-folder.ts";
import { BackupSeal, newSalt } from "./seal.ts";
import { BackupWriter, ContentDiffers, refuseExisting } from "./writer.ts";

/** Bytes that a backup reads of the database's copy at a time. */
const DATABASE_READ_CHUNK_BYTES = 1024 * 1024;

/** Blobs that a backup could not read and names in its answer; all of them are counted. */
const MAX_NAMED_FAULTS = 20;

/** How far a backup or a restore is; told a few times a second at most by its steps. */
export type BackupProgress = (done: {
  readonly what: "database" | "files";
  readonly files: number;
  readonly bytes: number;
}) => void;

export interface BackupRequest {
  readonly config: BackupConfig;
  readonly secrets: DataSecrets;
  /** The backup file. */
  readonly file: string;
  readonly passphrase: string;
  readonly now: () => number;
  readonly onProgress: BackupProgress;
}

export interface BackupTaken {
  /** Undefined: the database is in the file; else Postgres, as it may be shown. */
  readonly postgres: string | undefined;
  /** The blobs are in the database. */
  readonly blobsInDatabase: boolean;
  readonly sizeBytes: number;
  readonly files: number;
  /** Files that were deleted while the backup was made. */
  readonly expiredFiles: number;
  /** Files that are missing or damaged in the platform itself; the first few ids of them. */
  readonly faultyFiles: number;
  readonly faultyBlobIds: readonly string[];
}

/** Makes a backup. Rejects with a message that says what to do; then there is no file. */
export async function takeBackup(request: BackupRequest): Promise<BackupTaken> {
  const { config, secrets, passphrase, now } = request;
  const file = resolve(request.file);
  const keys = keysOf(config, secrets);
  refuseNoPlatform(secrets.database);
  refuseExisting(file);
  await using resources = new AsyncDisposableStack();
  const writer = resources.use(await BackupWriter.create(file));
  const salt = newSalt();
  const seal = await BackupSeal.of(passphrase, salt);
  const inPostgres = isPostgres(secrets.database);
  await writer.addAbout({
    createdAt: new Date(now()).toISOString(),
    version,
    database: inPostgres ? "postgres" : "sqlite",
    salt,
    keys: seal.seal(keys),
  });
  const copyPath = join(dirname(file), `.${basename(file)}.${randomUUID()}.db`);
  resources.defer(() => rm(copyPath, { force: true }));
  const source = resources.use(await copy(request, copyPath));
  if (!inPostgres) {
    await addDatabase(writer, copyPath);
  }
  const blobsInDatabase = config.blobs.kind === "postgres";
  const found = blobsInDatabase
    ? NOTHING
    : await addBlobs(writer, { source, blobs: await openStore(request, resources), request });
  await writer.finish((index) => seal.macOf(index));
  return {
    ...found,
    postgres: inPostgres ? shownDatabase(secrets.database) : undefined,
    blobsInDatabase,
    sizeBytes: writer.sizeBytes,
  };
}

function keysOf({ dataFolder }: BackupConfig, { keys }: DataSecrets): string {
  if (keys === undefined) {
    return readKeysText(keysPath(dataFolder));
  }
  parseKeys(keys, "TESSERA_KEYS");
  return keys;
}

function refuseNoPlatform(database: string): void {
  if (!isPostgres(database) && !existsSync(database)) {
    throw new Error(
      `there is no platform at ${database}: run this where tessera start runs, or name its data with --data or DATABASE_URL`,
    );
  }
}

function copy({ secrets, onProgress }: BackupRequest, path: string): Promise<BackupSource> {
  return openBackup(secrets.database, path, ({ copiedBytes }) =>
    onProgress({ what: "database", files: 0, bytes: copiedBytes }),
  );
}

async function openStore(
  { config, secrets }: BackupRequest,
  resources: AsyncDisposableStack,
): Promise<BlobStore> {
  const { blobs } = config;
  const store = resources.use(
    await openBlobs({ blobs, database: secrets.database }, openLocalBlobs(config.dataFolder)),
  );
  // A folder is not started: that would make it.
  if (blobs.kind === "s3") {
    await store.start();
  }
  return store;
}

async function addDatabase(writer: BackupWriter, path: string): Promise<void> {
  const read = () => createReadStream(path, { highWaterMark: DATABASE_READ_CHUNK_BYTES });
  const hash = createHash("sha256");
  for await (const chunk of read()) {
    hash.update(chunk);
  }
  const { size } = await stat(path);
  await writer.add({ kind: "database", sha256: hash.digest("hex") }, size, read());
}

type FilesTaken = Pick<BackupTaken, "files" | "expiredFiles" | "faultyFiles" | "faultyBlobIds">;

const NOTHING: FilesTaken = { files: 0, expiredFiles: 0, faultyFiles: 0, faultyBlobIds: [] };

async function addBlobs(
  writer: BackupWriter,
  {
    source,
    blobs,
    request,
  }: {
    readonly source: BackupSource;
    readonly blobs: BlobStore;
    readonly request: BackupRequest;
  },
): Promise<FilesTaken> {
  let [files, expiredFiles, faultyFiles, bytes] = [0, 0, 0, 0];
  const faultyBlobIds: string[] = [];
  for await (const blob of source.listBlobs()) {
    if (await addBlob(writer, blobs, blob)) {
      files += 1;
      bytes += blob.sizeBytes;
      request.onProgress({ what: "files", files, bytes });
    } else if (await source.isNamed(blob.blobId)) {
      faultyFiles += 1;
      if (faultyBlobIds.length < MAX_NAMED_FAULTS) {
        faultyBlobIds.push(blob.blobId);
      }
    } else {
      expiredFiles += 1;
    }
  }
  return { files, expiredFiles, faultyFiles, faultyBlobIds };
}

/** False for a blob that is missing in the store, or damaged. */
async function addBlob(
  writer: BackupWriter,
  blobs: BlobStore,
  { blobId, sizeBytes, sha256 }: NamedBlob,
): Promise<boolean> {
  try {
    await writer.add({ kind: "blob", blobId, sha256 }, sizeBytes, blobs.read(blobId));
    return true;
  } catch (err) {
    if (err instanceof BlobMissing || err instanceof ContentDiffers) {
      return false;
    }
    throw err;
  }
}
