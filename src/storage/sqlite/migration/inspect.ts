/** Says what migrating a SQLite file would do; changes nothing. A node may be running on it. */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { checkSchema, type Migration, pendingAfter, type SchemaReport } from "../../migration.ts";
import { MIGRATIONS } from "../schema.ts";
import { copyPath, roomForCopy } from "./copy.ts";
import { readSchema } from "./migrate.ts";

/** Rejects with a message that says what to do when this program must not use the file. */
export async function inspectSqlite(
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<SchemaReport> {
  const target = migrations.length;
  if (!existsSync(path)) {
    return { version: 0, target, pending: pendingAfter(0, migrations), copy: undefined };
  }
  try {
    using db = new DatabaseSync(path, { readOnly: true });
    const found = readSchema(db);
    checkSchema(found, migrations);
    const { version } = found;
    const pending = pendingAfter(version, migrations);
    const copy =
      version > 0 && pending.length > 0
        ? { path: copyPath(path, version), ...roomForCopy(db, path) }
        : undefined;
    return { version, target, pending, copy };
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    throw new Error(`cannot open the database ${path}: ${reason}`, { cause: err });
  }
}
