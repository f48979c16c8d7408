/** Says what migrating a SQLite file would do; changes nothing. A node may be running on it. */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { checkSchema, pendingAfter, type SchemaReport } from "../../migration.ts";
import { MIGRATIONS } from "../schema.ts";
import { copyPath, roomForCopy } from "./copy.ts";
import { readSchema } from "./migrate.ts";

/** Rejects with a message that says what to do when this program must not use the file. */
export async function inspectSqlite(path: string): Promise<SchemaReport> {
  const target = MIGRATIONS.length;
  if (!existsSync(path)) {
    return { version: 0, target, pending: pendingAfter(0, MIGRATIONS), copy: undefined };
  }
  try {
    using db = new DatabaseSync(path, { readOnly: true });
    const found = readSchema(db);
    checkSchema(found, MIGRATIONS);
    const { version, incomplete } = found;
    const pending = [
      ...(incomplete ? [{ version, name: "what the first version left out", usableFrom: 1 }] : []),
      ...pendingAfter(version, MIGRATIONS),
    ];
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
