/** The cells of a platform, for `tessera admin cells`. */
import type { CellsSecrets } from "../../config/start.ts";
import { isPostgres } from "../../config/values.ts";
import { type ExaminedCell, examineCells } from "../adapters.ts";

/** Rejects where the platform's database does not answer, or is no Postgres. */
export async function listCells(secrets: CellsSecrets): Promise<ExaminedCell[]> {
  if (!isPostgres(secrets.database)) {
    throw new Error(
      "the platform keeps its data in a SQLite file, which has no cells: name its Postgres with DATABASE_URL",
    );
  }
  return examineCells(secrets);
}
