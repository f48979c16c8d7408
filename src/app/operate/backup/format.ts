/**
 * The format of a backup file: a tar archive (ustar) with regular files only, which
 * `tar -tvf` lists.
 *
 *     tessera-backup.json            what it is of, and the platform's keys, sealed
 *     database/<sha256>              a copy of the SQLite file; none for Postgres
 *     blobs/<blob id>/<sha256>       artifacts and large files of tasks
 *     end.json                       how many entries, a digest and a MAC of the index
 *
 * The names are the index: each has the digest of its content, which is known
 * before the content is written and checked while it is read. The last entry has
 * the digest of all names and sizes, so that no entry can be missing, and a MAC of
 * that digest, so that nobody without the passphrase can make another file of it.
 */
import { isDeepStrictEqual } from "node:util";

/** The version of this format. */
export const BACKUP_FORMAT = 1;

export const ABOUT_NAME = "tessera-backup.json";
export const END_NAME = "end.json";

/** Tar archives are made of blocks; two empty ones end an archive. */
export const TAR_BLOCK_BYTES = 512;

/** Size of `tessera-backup.json` in a backup: keys of 32 rotations take less than 10 KiB. */
export const MAX_ABOUT_BYTES = 64 * 1024;

/** Size of `end.json` in a backup. */
export const MAX_END_BYTES = 4 * 1024;

const DATABASE_NAME = /^database\/([0-9a-f]{64})$/;
const BLOB_NAME = /^blobs\/([0-9a-f-]{32,40})\/([0-9a-f]{64})$/;

/** What a backup is of: the content of `tessera-backup.json`. */
export interface BackupAbout {
  /** RFC 3339. All that was acknowledged before is in the backup. */
  readonly createdAt: string;
  /** The version of the program that made it. */
  readonly version: string;
  readonly database: "sqlite" | "postgres";
  /** Base64url, for the key of the passphrase. */
  readonly salt: string;
  /** The platform's keys, sealed under the passphrase; base64url. */
  readonly keys: string;
}

/** The content of `end.json`. */
export interface BackupEnd {
  readonly entries: number;
  /** SHA-256 of the lines of all entries before it, in hex. */
  readonly index: string;
  /** HMAC-SHA-256 of `index` under the passphrase, in hex. */
  readonly mac: string;
}

export type BackupEntryName =
  | { readonly kind: "database"; readonly sha256: string }
  | { readonly kind: "blob"; readonly blobId: string; readonly sha256: string };

/** Thrown for a backup file that cannot be used; the message says why. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/** The name of an entry. */
export function nameOfEntry(entry: BackupEntryName): string {
  return entry.kind === "database"
    ? `database/${entry.sha256}`
    : `blobs/${entry.blobId}/${entry.sha256}`;
}

/** Reads the name of an entry; undefined for any other name. */
export function parseEntryName(path: string): BackupEntryName | undefined {
  const [, databaseDigest] = DATABASE_NAME.exec(path) ?? [];
  if (databaseDigest !== undefined) {
    return { kind: "database", sha256: databaseDigest };
  }
  const [, blobId, sha256] = BLOB_NAME.exec(path) ?? [];
  return blobId === undefined || sha256 === undefined
    ? undefined
    : { kind: "blob", blobId, sha256 };
}

/** Zeros after the content of an entry, in bytes. */
export function paddingOf(sizeBytes: number): number {
  return (TAR_BLOCK_BYTES - (sizeBytes % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}

/** The line of an entry, of which the digest of the index is made. */
export function indexLine(path: string, sizeBytes: number, sha256: string): string {
  return `${sha256} ${sizeBytes} ${path}\n`;
}

export function formatAbout(about: BackupAbout): Buffer {
  const { createdAt: created_at, version: tessera, database, salt, keys } = about;
  const value = { format: BACKUP_FORMAT, created_at, tessera, database, salt, keys };
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Throws a `BackupError`. */
export function parseAbout(bytes: Buffer): BackupAbout {
  const { format, ...fields } = parseObject(bytes, ABOUT_NAME);
  if (format !== BACKUP_FORMAT) {
    throw new BackupError(
      `the backup has the format ${JSON.stringify(format) ?? "of another program"}, and this version of tessera reads format ${BACKUP_FORMAT}: use the version that made it`,
    );
  }
  const { created_at: createdAt, tessera: version, database, salt, keys } = fields;
  if (database !== "sqlite" && database !== "postgres") {
    throw damaged(ABOUT_NAME);
  }
  return {
    createdAt: textOf(createdAt, /^[0-9TZ:.-]{20,30}$/, ABOUT_NAME),
    version: textOf(version, /^[\w.+-]{1,64}$/, ABOUT_NAME),
    database,
    salt: textOf(salt, /^[\w-]{22}$/, ABOUT_NAME),
    keys: textOf(keys, /^[\w-]+$/, ABOUT_NAME),
  };
}

export function formatEnd(end: BackupEnd): Buffer {
  return Buffer.from(`${JSON.stringify(end)}\n`);
}

/** Throws a `BackupError`. */
export function parseEnd(bytes: Buffer): BackupEnd {
  const { entries, index, mac, ...others } = parseObject(bytes, END_NAME);
  if (!Number.isSafeInteger(entries) || !isDeepStrictEqual(others, {})) {
    throw damaged(END_NAME);
  }
  const digest = /^[0-9a-f]{64}$/;
  return {
    entries: Number(entries),
    index: textOf(index, digest, END_NAME),
    mac: textOf(mac, digest, END_NAME),
  };
}

export function damaged(name: string): BackupError {
  return new BackupError(`${name} in the backup is damaged: use another backup`);
}

function parseObject(bytes: Buffer, name: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(bytes.toString("utf8"))) as Record<string, unknown>;
  } catch {
    throw damaged(name);
  }
}

function textOf(value: unknown, pattern: RegExp, name: string): string {
  if (typeof value !== "string" || !pattern.test(value)) {
    throw damaged(name);
  }
  return value;
}
