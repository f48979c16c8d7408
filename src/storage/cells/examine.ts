/** How home and the cells of a platform are, for its operator. Changes nothing. */
import { HOME_CELL } from "../../tasks/id.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import {
  CellRefused,
  identityFault,
  identityOf,
  type KnownCell,
  knownCells,
  refuseCell,
  unnamed,
} from "./identity.ts";

/** A database that is to be examined; its address is as it may be shown. */
interface Examined {
  readonly database: string;
  readonly storage: PostgresStorage;
}

/**
 * `up`: it answers; `away`: it does not; `refused`: it answers and is not what it was named as; `new`: no
 * node has started with it yet; `closed`: it answers, and takes no new tasks; `empty`: it is closed, and
 * nothing is left in it; `unnamed`: the platform has it, and the setting does not name it.
 */
export type CellState = "up" | "away" | "refused" | "new" | "closed" | "empty" | "unnamed";

export interface ExaminedCell {
  readonly name: string;
  /** Undefined for a new one. */
  readonly number: number | undefined;
  /** Without user and password; empty for one that is not named. */
  readonly database: string;
  readonly state: CellState;
  /** Why it is not up, and what to do. */
  readonly detail: string;
  /** Of its tasks; undefined where it does not answer. */
  readonly queued: number | undefined;
  readonly running: number | undefined;
  readonly sizeBytes: number | undefined;
}

/** Rejects where home does not answer, or is none. */
export async function examineCells({
  home,
  cells,
}: {
  readonly home: Examined;
  readonly cells: readonly (Examined & { readonly name: string })[];
}): Promise<ExaminedCell[]> {
  await using resources = new AsyncDisposableStack();
  resources.use(home.storage);
  await home.storage.start();
  const [identity, known] = await home.storage.beside(async (db) => {
    await refuseCell(db);
    return [await identityOf(db), await knownCells(db)] as const;
  });
  const all = [
    { name: "home", number: HOME_CELL, ...shown(home), ...(await countsOf(home.storage)) },
  ];
  const found = await Promise.all(
    cells.map(async (cell): Promise<ExaminedCell> => {
      const own = known.find(({ name }) => name === cell.name);
      const number = own?.number;
      const facts = { name: cell.name, number, database: cell.database };
      resources.use(cell.storage);
      if (own?.isEmptied) {
        const detail = "nothing is left in it: leave it out of TESSERA_CELLS";
        return { ...facts, state: "empty", detail, ...UNKNOWN };
      }
      try {
        await cell.storage.start();
        const found = await cell.storage.beside((db) => identityOf(db));
        const named = { platformId: identity?.platformId ?? "", name: cell.name };
        const fault = found && identityFault(found, named);
        if (fault !== undefined) {
          throw fault;
        }
        if (found === undefined && number !== undefined) {
          throw new CellRefused(
            "its database is empty: name the right one, or restore it from its backup",
          );
        }
        return { ...facts, ...stateOf(own), ...(await countsOf(cell.storage)) };
      } catch (err) {
        const state = err instanceof CellRefused ? "refused" : "away";
        const detail = err instanceof Error ? err.message : String(err);
        return { ...facts, state, detail, ...UNKNOWN };
      }
    }),
  );
  const lacking = known.filter(
    ({ name, isEmptied }) => !isEmptied && cells.every((cell) => cell.name !== name),
  );
  return [
    ...all,
    ...found,
    ...lacking.map(({ name, number }): ExaminedCell => {
      const detail = unnamed([name]);
      return { name, number, database: "", state: "unnamed", detail, ...UNKNOWN };
    }),
  ];
}

/** How a cell is that answers. */
function stateOf(known: KnownCell | undefined): Pick<ExaminedCell, "state" | "detail"> {
  if (known === undefined) {
    return { state: "new", detail: "no node has started with it yet" };
  }
  return known.closedFromMs === undefined
    ? { state: "up", detail: "" }
    : { state: "closed", detail: "it takes no new tasks, and is to be named until it is empty" };
}

const UNKNOWN = { queued: undefined, running: undefined, sizeBytes: undefined };

function shown({ database }: Examined): Pick<ExaminedCell, "database" | "state" | "detail"> {
  return { database, state: "up", detail: "" };
}

async function countsOf(
  storage: PostgresStorage,
): Promise<Pick<ExaminedCell, "queued" | "running" | "sizeBytes">> {
  const { queued, running, sizeBytes } = await storage.describeDatabase();
  return { queued, running, sizeBytes };
}
