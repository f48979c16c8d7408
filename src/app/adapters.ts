/**
 * The adapters: the only file that names concrete databases, blob stores and
 * trace exporters. Everything else works on their ports.
 */
import type { BlobsConfig } from "../config/blobs.ts";
import type { SmtpSecrets } from "../config/mail.ts";
import type { StartConfig } from "../config/start.ts";
import type { TracingConfig, TracingSecrets } from "../config/tracing.ts";
import { type CellAddress, isPostgres } from "../config/values.ts";
import type { BucketReader } from "../hosting/models/bucket.ts";
import type { Log } from "../log/log.ts";
import type { Mailer } from "../server/mail/mailer.ts";
import type { BackupSource, CopyProgress } from "../storage/backup.ts";
import { FolderBlobStore } from "../storage/blobs/folder.ts";
import { PostgresBlobStore } from "../storage/blobs/postgres.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { CellChange } from "../storage/cells/cell.ts";
import { closeCell as close } from "../storage/cells/close.ts";
import { type ExaminedCell, examineCells as examine } from "../storage/cells/examine.ts";
import { refuseCell, refuseCells } from "../storage/cells/identity.ts";
import { CellsStorage } from "../storage/cells/storage.ts";
import type { Migrated, MigrationMode, SchemaReport } from "../storage/migration.ts";
import type { Notifier } from "../storage/notifier.ts";
import { PostgresBackup } from "../storage/postgres/backup.ts";
import { inspectPostgres } from "../storage/postgres/migration/inspect.ts";
import { newSessionName } from "../storage/postgres/node-session.ts";
import { type NotifierState, PostgresNotifier } from "../storage/postgres/notifier.ts";
import { PostgresStorage } from "../storage/postgres/storage.ts";
import { addressOf } from "../storage/postgres-address.ts";
import { copyDatabase, SqliteBackup } from "../storage/sqlite/backup.ts";
import { inspectSqlite } from "../storage/sqlite/migration/inspect.ts";
import { SqliteStorage } from "../storage/sqlite/storage.ts";
import type { Storage } from "../storage/storage.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { version } from "../version.ts";
import { withOptionalPackages } from "./optional-packages.ts";

export type { CellChange } from "../storage/cells/cell.ts";
export type { ExaminedCell } from "../storage/cells/examine.ts";
export { examinePostgres } from "../storage/postgres/examine.ts";
export type { NotifierState } from "../storage/postgres/notifier.ts";
export { examineSqlite } from "../storage/sqlite/integrity.ts";

/** Database connections of a process that only administers. */
const MAX_ADMIN_CONNECTIONS = 2;

/** Where a platform's data is. */
export interface DatabaseAddress {
  readonly database: string;
  /** Leads to the same Postgres without a pooler; undefined: `database` does. */
  readonly directDatabase: string | undefined;
}

/** What a database tells of itself while it is used. */
interface StorageReports {
  /** Something is weaker than it could be. */
  readonly onWarning: (message: string) => void;
  readonly onNotifierState: (state: NotifierState) => void;
  /** Something has become of a cell. */
  readonly onCell: (name: string, change: CellChange) => void;
}

/** How a storage migrates its schema when it starts. */
interface MigrationOptions {
  readonly migration: MigrationMode;
  /** Whether a SQLite file is copied before. Default true. */
  readonly copies?: boolean;
  readonly onMigrated?: (migrated: Migrated) => void;
}

/** The storage of a node; the notifier is undefined where one node alone uses the database. */
export function openStorage(
  {
    database,
    directDatabase: directUrl,
    cells,
  }: DatabaseAddress & { readonly cells: readonly CellAddress[] },
  { onWarning, onNotifierState: onState, onCell, ...migration }: StorageReports & MigrationOptions,
): { readonly storage: Storage; readonly notifier: Notifier | undefined } {
  if (!isPostgres(database)) {
    return { storage: new SqliteStorage(database, migration), notifier: undefined };
  }
  const name = newSessionName();
  const check = cells.length === 0 ? refuseCells : undefined;
  const home = new PostgresStorage(database, {
    ...{ session: { name }, directUrl, onWarning, ...migration },
    ...(check && { check }),
  });
  const notify = (channel: string): Promise<void> => home.notify(channel);
  const listening = { notify, onState, session: name };
  const notifier = new PostgresNotifier(directUrl ?? database, listening);
  if (cells.length === 0) {
    return { storage: home, notifier };
  }
  const configured = cells.map((cell) => ({
    name: cell.name,
    storage: new PostgresStorage(cell.database, { onWarning, ...migration }),
  }));
  return { storage: new CellsStorage({ home, cells: configured, onChange: onCell }), notifier };
}

/** Asks home and the cells how they are, beside the nodes. */
export function examineCells({
  database,
  directDatabase: directUrl,
  cells,
}: DatabaseAddress & { readonly cells: readonly CellAddress[] }): Promise<ExaminedCell[]> {
  const options = { connections: MAX_ADMIN_CONNECTIONS, migration: "check" as const };
  return examine({
    home: {
      database: addressOf(database),
      storage: new PostgresStorage(database, { ...options, directUrl }),
    },
    cells: cells.map((cell) => ({
      name: cell.name,
      database: addressOf(cell.database),
      storage: new PostgresStorage(cell.database, options),
    })),
  });
}

/** Closes a cell, beside the nodes. */
export async function closeCell(
  { database, directDatabase: directUrl }: DatabaseAddress,
  name: string,
): Promise<void> {
  const options = { connections: MAX_ADMIN_CONNECTIONS, migration: "check", directUrl } as const;
  await using home = new PostgresStorage(database, options);
  await home.start();
  await home.beside((db) => close(db, name));
}

/**
 * The storage for the operator, beside the nodes: it takes no lock on the queue. Commands leave
 * the migration to a start or to `tessera admin migrate`, unless no node can be there.
 */
export function openStorageBesideNodes(
  { database, directDatabase: directUrl }: DatabaseAddress,
  migration: MigrationOptions,
): Storage {
  return isPostgres(database)
    ? new PostgresStorage(database, {
        ...{ connections: MAX_ADMIN_CONNECTIONS, directUrl, check: refuseCell, ...migration },
      })
    : new SqliteStorage(database, { ownsQueue: false, ...migration });
}

/** The storage for `tessera admin migrate`. A SQLite file must be free. */
export function openStorageToMigrate(
  { database, directDatabase: directUrl }: DatabaseAddress,
  migration: Omit<MigrationOptions, "migration">,
): Storage {
  return isPostgres(database)
    ? new PostgresStorage(database, { connections: MAX_ADMIN_CONNECTIONS, directUrl, ...migration })
    : new SqliteStorage(database, migration);
}

/** What migrating a database would do. Changes nothing. */
export function inspectSchema({
  database,
  directDatabase = database,
}: DatabaseAddress): Promise<SchemaReport> {
  return isPostgres(database) ? inspectPostgres(directDatabase) : inspectSqlite(database);
}

/**
 * What a backup reads. A SQLite file is copied first, to `copyPath`, while nodes may
 * run on it; Postgres is left to its own tools.
 */
export async function openBackup(
  database: string,
  copyPath: string,
  onProgress: (progress: CopyProgress) => void,
): Promise<BackupSource> {
  if (isPostgres(database)) {
    return await PostgresBackup.open(database);
  }
  await copyDatabase(database, copyPath, onProgress);
  return new SqliteBackup(database, copyPath);
}

/** The database as it may be shown: without user and password. */
export function shownDatabase(database: string): string {
  return isPostgres(database) ? addressOf(database) : database;
}

/** A store in a folder of this process. */
export function openLocalBlobs(folder: string): BlobStore {
  return new FolderBlobStore(folder);
}

/** The store of large files that is configured; `local` serves where they are only temporary. */
export async function openBlobs(
  { blobs, database }: { readonly blobs: BlobsConfig; readonly database: string },
  local: BlobStore,
): Promise<BlobStore> {
  switch (blobs.kind) {
    case "temporary":
      return local;
    case "folder":
      return new FolderBlobStore(blobs.folder);
    case "postgres":
      return new PostgresBlobStore(database);
    case "s3": {
      // The client takes a moment to load, which nobody else should wait for.
      const { S3BlobStore } = await withOptionalPackages(
        "s3",
        async () => await import("../storage/blobs/s3.ts"),
      );
      return new S3BlobStore(blobs);
    }
  }
}

/** What reads models out of buckets; undefined where nobody may. */
export async function openModelBuckets({
  modelBuckets,
  s3,
}: Pick<StartConfig, "modelBuckets" | "s3">): Promise<(BucketReader & Disposable) | undefined> {
  if (modelBuckets.length === 0) {
    return undefined;
  }
  const { S3Reader } = await withOptionalPackages(
    "s3",
    async () => await import("../hosting/models/s3-reader.ts"),
  );
  return new S3Reader(s3);
}

/** Undefined where no mail is sent. */
export async function openMailer(smtp: SmtpSecrets | undefined): Promise<Mailer | undefined> {
  if (smtp === undefined) {
    return undefined;
  }
  // Most platforms on one machine send none, and need not load it.
  const { SmtpMailer } = await import("../server/mail/smtp.ts");
  return new SmtpMailer(smtp);
}

/** Undefined where nothing is traced. */
export async function openTracing(
  config: TracingConfig | undefined,
  receiver: TracingSecrets | undefined,
  log: Log,
): Promise<Tracing | undefined> {
  if (config === undefined || receiver === undefined) {
    return undefined;
  }
  // It takes a moment to load, which nobody else should wait for.
  const { OtlpTracing } = await withOptionalPackages(
    "tracing",
    async () => await import("../tracing/otlp/otlp.ts"),
  );
  return new OtlpTracing({ ...config, ...receiver, version, log });
}
