/**
 * Whether a database file is whole. A disk or a copy that failed leaves a file that SQLite opens
 * and works on, until a statement meets a page that is not what it was; what is stored until then
 * makes it worse. So a file whose size is less than its header says is refused at every start, and
 * all pages are looked at (`PRAGMA quick_check`) after a crash and by `tessera admin check`.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** The beginning of a database file (https://sqlite.org/fileformat.html, section 1.3). */
const HEADER_BYTES = 100;
/** Where its header has the size of a page, in which 1 stands for 65,536, and their number. */
const AT = { pageSize: 16, pageCount: 28 } as const;

const REMEDY =
  "stop what uses it, keep a copy, and restore a backup (tessera admin restore), or recover what can be read with `sqlite3 FILE .recover`";

export function damaged(what: string): string {
  return `the file is damaged (${what}): ${REMEDY}`;
}

/**
 * What is wrong with the size of a file that has no write-ahead log, in which further pages could
 * be; undefined where nothing is, or where it is no database.
 */
export function faultOfSize(path: string): string | undefined {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0 };
  if (size < HEADER_BYTES) {
    return undefined;
  }
  const header = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(file);
  }
  if (!header.toString("latin1").startsWith("SQLite format 3\0")) {
    return undefined;
  }
  const pageSize = header.readUInt16BE(AT.pageSize);
  const expected = header.readUInt32BE(AT.pageCount) * (pageSize === 1 ? 65_536 : pageSize);
  return size < expected ? damaged(`it has ${size} bytes of ${expected}`) : undefined;
}

/** What is wrong with the pages of a file; undefined where nothing is. Reads all of it. */
export function faultOfPages(db: { readonly all: (sql: string) => readonly object[] }) {
  try {
    const [row] = db.all("PRAGMA quick_check(1)") as readonly { readonly quick_check?: unknown }[];
    return row?.quick_check === "ok"
      ? undefined
      : damaged(String(row?.quick_check).replace(/\s+/g, " "));
  } catch (err) {
    return damaged(err instanceof Error ? err.message : String(err));
  }
}

/** Looks at a file that somebody may be using; undefined where nothing is wrong with it. */
export function examineSqlite(path: string): string | undefined {
  if (!existsSync(path)) {
    return undefined;
  }
  using db = new DatabaseSync(path, { readOnly: true });
  return faultOfPages({ all: (sql) => db.prepare(sql).all() });
}
