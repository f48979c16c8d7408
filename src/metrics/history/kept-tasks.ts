/** The tasks of an organization, from the tallies that nodes keep in their database. */
import type { MetricsStorage } from "../../storage/metrics/metrics.ts";
import { Yielder } from "../yielder.ts";
import type { TasksAnswer, TasksQuery } from "./history.ts";
import { LEVELS, settledAt } from "./range.ts";
import { historyRows } from "./rows.ts";
import { readTally, TaskTally } from "./task-tally.ts";

/** Endpoints that are told apart in one answer, of all nodes. */
const MAX_ANSWERED_ENDPOINTS = 5_000;

/** Windows up to this length are made of minutes, longer ones of ten minutes. */
const MAX_WINDOW_OF_MINUTES_MS = 3_600_000;

/** Rows of one resolution that cover a time. */
interface Stretch {
  readonly resolutionMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Splits a window that ends now into stretches of few rows: of the coarsest resolution as far
 * as its rows are complete, then of finer ones. It begins with a row of the coarsest, up to one
 * such row early.
 */
export function stretchesOf({
  windowMs,
  nowMs,
}: Pick<TasksQuery, "windowMs" | "nowMs">): readonly Stretch[] {
  const endMs = settledAt(nowMs);
  const levels = windowMs > MAX_WINDOW_OF_MINUTES_MS ? LEVELS : LEVELS.slice(0, -1);
  const stretches: Stretch[] = [];
  let fromMs = endMs - windowMs;
  for (const { resolutionMs } of levels.toReversed()) {
    fromMs -= fromMs % resolutionMs;
    const toMs = endMs - (endMs % resolutionMs);
    if (toMs > fromMs) {
      stretches.push({ resolutionMs, fromMs, toMs });
      fromMs = toMs;
    }
  }
  return stretches;
}

export async function keptTasks(
  storage: Pick<MetricsStorage, "readHistory">,
  query: TasksQuery,
): Promise<TasksAnswer> {
  const tally = new TaskTally(MAX_ANSWERED_ENDPOINTS);
  const yielder = new Yielder();
  const stretches = stretchesOf(query);
  for (const stretch of stretches) {
    const question = {
      ...stretch,
      organizationId: query.organizationId,
      deploymentId: "",
      withCustom: true,
    };
    for await (const { custom } of historyRows(storage, question)) {
      readTally(custom, tally);
      // Twenty characters are read in about the time of a comparison.
      if (yielder.spent(custom.length / 20)) {
        await yielder.rest();
      }
    }
  }
  const toMs = settledAt(query.nowMs);
  return { fromMs: stretches[0]?.fromMs ?? toMs - query.windowMs, toMs, tally };
}
