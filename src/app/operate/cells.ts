/** The cells of a platform: how they are, and how one is taken out, for `tessera admin cells`. */
import type { CellsSecrets } from "../../config/start.ts";
import { isPostgres } from "../../config/values.ts";
import { closeCell, type ExaminedCell, examineCells } from "../adapters.ts";

/** Rejects where the platform's database does not answer, or is no Postgres. */
export async function listCells(secrets: CellsSecrets): Promise<ExaminedCell[]> {
  refuseSqlite(secrets);
  return examineCells(secrets);
}

/** Has a cell take no new tasks, for good. Rejects where the platform has none of this name. */
export async function closeForGood(secrets: CellsSecrets, name: string): Promise<void> {
  refuseSqlite(secrets);
  await closeCell(secrets, name);
}

function refuseSqlite({ database }: CellsSecrets): void {
  if (!isPostgres(database)) {
    throw new Error(
      "the platform keeps its data in a SQLite file, which has no cells: name its Postgres with DATABASE_URL",
    );
  }
}
