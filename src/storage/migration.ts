/**
 * Migrations of the schema, for both databases: forward-only lists to which a version of the
 * program appends. A database remembers the digest of each migration that made it, so that a
 * program with other statements under the same number does not work on it.
 *
 * Nodes of one version run on the schema of the next: a release only expands (adds tables,
 * columns with a default, indexes), and what is no longer used is removed a release later, by a
 * contraction. Each migration says which programs may use what it leaves (`usableFrom`), in
 * versions of the schema that they know, and the database remembers that, too: a program that
 * finds a newer schema goes on, or says that it cannot.
 */
import { createHash } from "node:crypto";

export interface Migration {
  /** What it brings, in a few words. */
  readonly name: string;
  readonly sql: string;
  /** The oldest schema whose programs can use the one that it leaves. Default: as before it. */
  readonly usableFrom?: number;
}

/** A migration as the database remembers it. */
interface AppliedMigration {
  /** Its number, counted from 1. */
  readonly version: number;
  readonly name: string;
  /** SHA-256 of its statements, in hexadecimal. */
  readonly digest: string;
  readonly usableFrom: number;
}

/** What a program does about a schema that is older than its own. */
export type MigrationMode =
  /** Migrates it. */
  | "auto"
  /** Refuses to start. */
  | "check"
  /** Makes an empty database's, and refuses an older one. */
  | "create";

/** What a database says of its schema. */
export interface SchemaState {
  /** How many migrations were applied; 0 for an empty database. */
  readonly version: number;
  readonly applied: readonly AppliedMigration[];
}

/** A migration that was done. */
export interface Migrated {
  readonly from: number;
  readonly to: number;
  /** The copy of the database from before; undefined where none was made. */
  readonly copy: string | undefined;
}

/** What migrating a database would do. */
export interface SchemaReport {
  /** The version that its schema has; 0 for an empty database. */
  readonly version: number;
  /** The version that this program needs. */
  readonly target: number;
  readonly pending: readonly {
    readonly version: number;
    readonly name: string;
    /** The oldest schema whose programs can go on using the database after it. */
    readonly usableFrom: number;
  }[];
  /** The copy that would be made before; undefined where none would be. */
  readonly copy:
    | { readonly path: string; readonly neededBytes: number; readonly freeBytes: number }
    | undefined;
}

/** Thrown when this program must not use the schema. The message says what to do. */
export class SchemaRefused extends Error {}

/** A migration that only adds: programs that know the schema before it can use the one after it. */
export function expand(name: string, sql: string): Migration {
  return { name, sql };
}

/** A migration that removes what programs need that know only schemas before `usableFrom`. */
export function contract(name: string, usableFrom: number, sql: string): Migration {
  return { name, sql, usableFrom };
}

export function digestOf(sql: string): string {
  return createHash("sha256").update(sql).digest("hex");
}

/** The migrations as a database remembers them after they were all applied. */
export function numbered(migrations: readonly Migration[]): AppliedMigration[] {
  let oldest = 1;
  return migrations.map(({ name, sql, usableFrom = oldest }, index) => {
    oldest = usableFrom;
    return { version: index + 1, name, digest: digestOf(sql), usableFrom };
  });
}

/** The migrations that a schema of this version lacks. */
export function pendingAfter(version: number, migrations: readonly Migration[]) {
  return numbered(migrations)
    .slice(version)
    .map(({ version, name, usableFrom }) => ({ version, name, usableFrom }));
}

/** Throws `SchemaRefused` when the database's schema is not one that `migrations` lead to. */
export function checkSchema(
  { version, applied }: SchemaState,
  migrations: readonly Migration[],
): void {
  const known = numbered(migrations);
  if (version > 0 && applied.length === 0) {
    throw new SchemaRefused(
      "a version that was never released has written its schema: run that one, or use another database",
    );
  }
  for (const { digest, version, name } of applied) {
    const own = known[version - 1];
    if (own !== undefined && own.digest !== digest) {
      throw new SchemaRefused(
        `migration ${version} (${name}) of its schema was another one than this program's: a version that was never released has written it; run that one, or use another database`,
      );
    }
  }
  if (version <= known.length) {
    return;
  }
  const usableFrom = applied.find((one) => one.version === version)?.usableFrom;
  if (usableFrom === undefined || usableFrom > known.length) {
    const needed = usableFrom === undefined ? "" : ` and needs a program that knows ${usableFrom}`;
    throw new SchemaRefused(
      `its schema has version ${version}${needed}, this program knows versions up to ` +
        `${known.length}: run a newer version of tessera, or use another database`,
    );
  }
}

/** Throws `SchemaRefused` unless the mode lets the program migrate from this version. */
export function checkMode(mode: MigrationMode, from: number, to: number): void {
  if (mode === "check" && from === 0) {
    throw new SchemaRefused(
      "it is empty: run tessera admin migrate, or tessera start without --migrate check",
    );
  }
  if (mode === "check" || (mode === "create" && from > 0)) {
    throw new SchemaRefused(
      `its schema has version ${from}, and this program needs version ${to}: run tessera admin migrate (with --dry-run it shows what that does)`,
    );
  }
}
