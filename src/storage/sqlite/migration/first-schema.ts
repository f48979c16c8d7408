/**
 * Completes files that the very first version has made. Its first migration had no deadlines for
 * the start and no aborts; both were added to the text of that migration later, under the same
 * number, so that later versions took these files for complete and failed on every call.
 */
import type { DatabaseSync } from "node:sqlite";

export const COMPLETION = `
  ALTER TABLE tasks ADD COLUMN start_by_ms INTEGER;
  ALTER TABLE tasks ADD COLUMN abort_requested INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX tasks_start_by ON tasks (start_by_ms)
    WHERE status <= 1 AND start_by_ms IS NOT NULL;
`;

/** Whether the file is one of these, at whatever version it is by now. */
export function isIncomplete(db: DatabaseSync): boolean {
  const columns = db.prepare("SELECT name FROM pragma_table_info('tasks')").all();
  return columns.length > 0 && !columns.some(({ name }) => name === "start_by_ms");
}
