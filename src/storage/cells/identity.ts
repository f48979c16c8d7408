/**
 * Who is who among the databases of a platform. Each has a row that says which platform it belongs to,
 * and as which cell; home has one for each cell besides. So a database that is named by mistake, twice,
 * or of another platform is known by what is in it, whatever its address is.
 */
import { HOME_CELL, MAX_CELLS } from "../../tasks/id.ts";
import type { PostgresDatabase } from "../postgres/database.ts";
import { type Session, statement } from "../postgres/session.ts";

/** A database that answers and is not what it was named as; the message says why, and what to do. */
export class CellRefused extends Error {}

/**
 * How long after it is known a new cell takes tasks with keys, and one that is closed takes none any more:
 * longer than a node may go on with what it has read of the cells (`KNOWN_FOR_MS`), so that no two nodes
 * look for a key in different cells.
 */
export const KEYED_AFTER_MS = 10_000;

/** How old the list of cells may be when a task with a key is placed. Less than `KEYED_AFTER_MS`. */
export const KNOWN_FOR_MS = 5_000;

/** A cell as home knows it. */
export interface KnownCell {
  readonly number: number;
  readonly name: string;
  /** From then on, by home's clock, it takes tasks with keys. */
  readonly keyedFromMs: number;
  /** From then on, by home's clock, it takes none; undefined: it is open. */
  readonly closedFromMs: number | undefined;
  /** It is closed, and nothing is left in it. */
  readonly isEmptied: boolean;
}

interface Identity {
  readonly platformId: string;
  readonly number: number;
  readonly name: string;
}

const IDENTITY = statement("SELECT platform_id, cell, name FROM cell_identity");

/** What a database says that it is; undefined for one that is no part of a platform with cells. */
export async function identityOf(session: Pick<Session, "query">): Promise<Identity | undefined> {
  const [row] = await session.query(IDENTITY);
  return (
    row && { platformId: String(row.platform_id), number: Number(row.cell), name: String(row.name) }
  );
}

export const LOCK = statement(
  "SELECT pg_advisory_xact_lock(hashtextextended('tessera cells ' || current_schema(), 0))",
);
const IDENTIFY = statement(
  "INSERT INTO cell_identity (platform_id, cell, name) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);

/** The id of the platform whose home a database is; it becomes one that has cells. */
export async function identifyHome(home: PostgresDatabase): Promise<string> {
  await refuseCell(home);
  return home.transaction(async (session) => {
    await session.query(LOCK);
    const found = await identityOf(session);
    const platformId = found?.platformId ?? crypto.randomUUID();
    if (found === undefined) {
      await session.query(IDENTIFY, platformId, HOME_CELL, "home");
    }
    return platformId;
  });
}

const CELLS = statement(
  `SELECT cell, name, keyed_from_ms, closed_from_ms, emptied FROM cells ORDER BY keyed_from_ms, cell`,
);

/** The cells that home knows, those that have taken tasks with keys for longest first. */
export async function knownCells(home: Pick<Session, "query">): Promise<KnownCell[]> {
  const rows = await home.query(CELLS);
  return rows.map(({ cell, name, keyed_from_ms: keyedFromMs, closed_from_ms, emptied }) => ({
    number: Number(cell),
    name: String(name),
    keyedFromMs: Number(keyedFromMs),
    closedFromMs: closed_from_ms === null ? undefined : Number(closed_from_ms),
    isEmptied: emptied === true,
  }));
}

/** Refuses a database that is a cell where a platform's home is needed. */
export async function refuseCell(session: Pick<Session, "query">): Promise<void> {
  const found = await identityOf(session);
  if (found !== undefined && found.number !== HOME_CELL) {
    throw new CellRefused(
      `DATABASE_URL leads to cell ${found.name} of a platform: name the platform's home there`,
    );
  }
}

/** Refuses a database that has cells, or is one, to a node that was given none. */
export async function refuseCells(session: Pick<Session, "query">): Promise<void> {
  await refuseCell(session);
  refuseUnnamed(await knownCells(session), []);
}

/** Refuses to go on without cells that have tasks. */
export function refuseUnnamed(known: readonly KnownCell[], named: readonly string[]): void {
  const lacking = known.filter(({ name, isEmptied }) => !(isEmptied || named.includes(name)));
  if (lacking.length > 0) {
    throw new CellRefused(unnamed(lacking.map(({ name }) => name)));
  }
}

/** What is said where a platform has cells that the setting does not name. */
export function unnamed(names: readonly string[]): string {
  const which = names.length === 1 ? `cell ${names[0]}` : `cells ${names.join(", ")}`;
  return `the platform has ${which} with tasks in it: name all of its cells in TESSERA_CELLS, as name=postgres://… with commas between them`;
}

const EMPTY = statement(
  `SELECT NOT EXISTS (SELECT FROM users) AND NOT EXISTS (SELECT FROM organizations)
     AND NOT EXISTS (SELECT FROM live_tasks) AND NOT EXISTS (SELECT FROM finished_tasks) AS is_empty`,
);
const FIND = statement("SELECT cell, beat FROM cells WHERE name = $1");
/** With the one before where all nodes hear of it in time: then no key has a place between the two. */
const ADD = statement(
  `WITH time AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms)
   INSERT INTO cells (cell, name, keyed_from_ms)
   SELECT coalesce($2::integer, (SELECT coalesce(max(cell), 0) + 1 FROM cells)), $1,
     coalesce((SELECT max(keyed_from_ms) FROM cells
       WHERE keyed_from_ms > now_ms + ${KNOWN_FOR_MS} + ${KNOWN_FOR_MS / 5}),
       now_ms + ${KEYED_AFTER_MS})
   FROM time RETURNING cell`,
);

interface Joining {
  readonly home: PostgresDatabase;
  readonly platformId: string;
  readonly name: string;
}

/** Makes a database the cell of this name, or finds that it is it; returns its number. Throws `CellRefused`. */
export async function joinCell(
  database: PostgresDatabase,
  { home, platformId, name }: Joining,
): Promise<number> {
  const found = await identityOf(database);
  const fault = found && identityFault(found, { platformId, name });
  if (fault !== undefined) {
    throw fault;
  }
  // What a transaction throws is taken for an error of its connection, so a refusal is its answer.
  const number = await home.transaction(async (session): Promise<number | CellRefused> => {
    await session.query(LOCK);
    const [known] = await session.query(FIND, name);
    if (known === undefined) {
      if (found === undefined && !(await isEmpty(database))) {
        return new CellRefused(
          `the database of cell ${name} is that of a platform, with people or tasks in it: name an empty one`,
        );
      }
      // Of a home that was restored from a time before it, the cell knows its number.
      const [added] = await session.query(ADD, name, found?.number ?? null);
      return Number(added?.cell);
    }
    if (found === undefined && Number(known.beat) > 0) {
      return new CellRefused(
        `cell ${name} has tasks, and the database that TESSERA_CELLS names for it is empty: name the right one, or restore it from its backup`,
      );
    }
    return Number(known.cell);
  });
  if (number instanceof CellRefused) {
    throw number;
  }
  if (number >= MAX_CELLS) {
    throw new CellRefused(`a platform has at most ${MAX_CELLS - 1} cells: ${name} is one too many`);
  }
  await database.query(IDENTIFY, platformId, number, name);
  const now = await identityOf(database);
  if (now?.number !== number) {
    // Another node has begun with another name for the same database, or home knows another number.
    throw new CellRefused(
      `cell ${name} is number ${number} at home, and its database says ${now?.number} (${now?.name}): each cell needs a database of its own`,
    );
  }
  return number;
}

/** Why a database is not the cell that it was named as; undefined where it is. */
export function identityFault(
  found: Identity,
  { platformId, name }: Pick<Joining, "platformId" | "name">,
): CellRefused | undefined {
  if (found.platformId !== platformId) {
    return new CellRefused(
      `the database of cell ${name} belongs to another platform, as its ${found.number === HOME_CELL ? "home" : `cell ${found.name}`}: name an empty one, or the right one`,
    );
  }
  if (found.number === HOME_CELL) {
    return new CellRefused(
      `the database of cell ${name} is that of DATABASE_URL: a cell needs a database of its own`,
    );
  }
  return found.name === name
    ? undefined
    : new CellRefused(
        `the database of cell ${name} is that of cell ${found.name}, by another address: each cell needs a database of its own`,
      );
}

async function isEmpty(database: PostgresDatabase): Promise<boolean> {
  const [row] = await database.query(EMPTY);
  return row?.is_empty === true;
}
