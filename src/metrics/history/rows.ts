/** Reads rows of metrics over time, a bounded number at once. */
import type {
  HistoryQuestion,
  HistoryValues,
  MetricsStorage,
} from "../../storage/metrics/metrics.ts";

/** Rows of metrics over time that are read at once. */
const MAX_HISTORY_ROWS_PER_READ = 200;

/** The rows that answer a question, by time. Throws when `signal` aborts. */
export async function* historyRows(
  storage: Pick<MetricsStorage, "readHistory">,
  question: Omit<HistoryQuestion, "after" | "limit">,
  signal?: AbortSignal,
): AsyncGenerator<HistoryValues> {
  const limit = MAX_HISTORY_ROWS_PER_READ;
  let rows: readonly HistoryValues[] = [];
  do {
    signal?.throwIfAborted();
    const after = rows.at(-1);
    rows = await storage.readHistory({ ...question, limit, ...(after && { after }) });
    yield* rows;
  } while (rows.length === limit);
}
