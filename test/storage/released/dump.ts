/** Databases as SQL statements that make them again, and their shape for comparing two. */
import { DatabaseSync } from "node:sqlite";
import pg from "pg";

/** Statements that make a SQLite database with its rows and its `user_version`. */
export function dumpSqlite(path: string): string {
  using db = new DatabaseSync(path, { readOnly: true });
  const made = db
    .prepare(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'table' DESC, rowid",
    )
    .all() as { type: string; name: string; sql: string }[];
  const rows = made
    .filter(({ type }) => type === "table")
    .flatMap(({ name }) => {
      const columns = db.prepare(`SELECT name FROM pragma_table_info('${name}')`).all();
      const quoted = columns.map((column) => `quote("${column.name}")`).join(" || ', ' || ");
      const found = db.prepare(`SELECT ${quoted} AS row FROM ${name}`).all();
      return found.map(({ row }) => `INSERT INTO ${name} VALUES (${row});`);
    });
  const tables = made.filter(({ type }) => type === "table").map(({ sql }) => `${sql};`);
  const others = made.filter(({ type }) => type !== "table").map(({ sql }) => `${sql};`);
  const version = db.prepare("PRAGMA user_version").get()?.user_version;
  return [...tables, ...rows, ...others, `PRAGMA user_version = ${version};`].join("\n");
}

/** Tables with their columns, indexes and views, one a line, sorted. */
export function shapeOfSqlite(path: string): string[] {
  using db = new DatabaseSync(path, { readOnly: true });
  const columns = db
    .prepare(
      `SELECT 'column ' || m.name || '.' || c.name || ' ' || upper(c.type) || ' ' || c."notnull"
         || ' ' || coalesce(c.dflt_value, '-') || ' ' || c.pk AS line
       FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')`,
    )
    .all();
  const others = db
    .prepare(
      "SELECT type || ' ' || name || ' ' || sql AS line FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL",
    )
    .all();
  return [...columns, ...others].map(({ line }) => String(line).replace(/\s+/g, " ")).sort();
}

const TABLES = `
  SELECT c.oid, c.relname AS name, c.relkind AS kind, c.relpersistence AS persistence,
    coalesce(array_to_string(c.reloptions, ', '), '') AS options
  FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'v')
  ORDER BY c.relkind, c.relname`;

const COLUMNS = `
  SELECT quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attstorage <> t.typstorage AND a.attstorage = 'e' THEN ' STORAGE EXTERNAL' ELSE '' END
    || CASE WHEN l.collname = 'C' THEN ' COLLATE "C"' ELSE '' END
    || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
    || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;

const KEYS = `
  SELECT 'ALTER TABLE ' || conrelid::regclass || ' ADD CONSTRAINT ' || quote_ident(conname) || ' '
    || pg_get_constraintdef(oid) AS line
  FROM pg_constraint WHERE conrelid = $1 AND contype IN ('p', 'u') ORDER BY conname`;

const INDEXES = `
  SELECT pg_get_indexdef(indexrelid) AS line FROM pg_index i
  WHERE indrelid = $1
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid) ORDER BY 1`;

interface PostgresTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The statement that makes it, and those of its keys and indexes. */
  readonly statements: readonly string[];
  readonly kind: "r" | "v";
}

async function postgresTables(client: pg.Client, schema: string): Promise<PostgresTable[]> {
  await client.query(`SET search_path = ${schema}`);
  const lines = async (text: string, oid: unknown): Promise<string[]> =>
    (await client.query(text, [oid])).rows.map(({ line }) => String(line));
  const found = await client.query(TABLES, [schema]);
  const tables: PostgresTable[] = [];
  for (const { oid, name, kind, persistence, options } of found.rows) {
    const columns = await lines(COLUMNS, oid);
    const unlogged = persistence === "u" ? "UNLOGGED " : "";
    const made =
      kind === "v"
        ? `CREATE VIEW ${name} AS ${(await lines("SELECT pg_get_viewdef($1::oid) AS line", oid))[0]}`
        : `CREATE ${unlogged}TABLE ${name} (${columns.join(", ")})${options && ` WITH (${options})`};`;
    const others = [...(await lines(KEYS, oid)), ...(await lines(INDEXES, oid))];
    const statements = [made, ...others.map((line) => `${line};`)];
    tables.push({ name, kind, columns, statements });
  }
  return tables;
}

async function connected<Result>(url: string, work: (client: pg.Client) => Promise<Result>) {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Statements that make the tables of a Postgres schema with their rows, in the search path. */
export function dumpPostgres(url: string, schema: string): Promise<string> {
  return connected(url, async (client) => {
    const tables = await postgresTables(client, schema);
    const statements: string[] = [];
    for (const { name, kind, statements: made } of tables) {
      statements.push(...made.map((text) => text.replaceAll(`${schema}.`, "")));
      if (kind === "r") {
        const rows = await client.query(`SELECT json_agg(t)::text AS rows FROM ${name} t`);
        const json = rows.rows[0]?.rows;
        if (json) {
          statements.push(
            `INSERT INTO ${name} SELECT * FROM json_populate_recordset(NULL::${name}, $json$${json}$json$);`,
          );
        }
      }
    }
    return statements.join("\n");
  });
}

/** Tables with their columns, keys, indexes and views, one a line, sorted. */
export function shapeOfPostgres(url: string, schema: string): Promise<string[]> {
  return connected(url, async (client) => {
    const tables = await postgresTables(client, schema);
    return tables
      .flatMap(({ name, columns, statements: [made = "", ...others], kind }) => [
        ...columns.map((column) => `column ${name}.${column}`),
        kind === "v" ? made.replace(/\s+/g, " ") : made.replace(/\(.*?\)(?= WITH|;)/s, ""),
        ...others,
      ])
      .map((line) => line.replaceAll(`${schema}.`, ""))
      .sort();
  });
}
