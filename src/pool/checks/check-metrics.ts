/**
 * Validates the shape of the metric changes that a worker sends. Whether the
 * service declared them is checked later (`deployments/counts.ts`).
 */

import type { Attachments } from "../../protocol/attachments.ts";
import {
  type DroppedEvents,
  MAX_CHANGES_BYTES,
  MAX_SERIES_CHANGES_PER_MESSAGE,
  type MetricChange,
  type WorkerMessage,
} from "../../protocol/messages.ts";
import { MAX_BUCKETS, MAX_LABELS, MAX_METRICS } from "../../sdk/metric-rules.ts";
import { type Fields, isFields, listOf, parseJson, textOf } from "./untrusted.ts";

type MetricsMessage = Extract<WorkerMessage, { readonly type: "metrics" }>;

/** Values in the changes of series that a worker sends together. */
const MAX_CHANGES_VALUES = MAX_SERIES_CHANGES_PER_MESSAGE * (MAX_BUCKETS + MAX_LABELS + 10);

/** The changes stand in the header, or as JSON text in an attachment. */
export function readMetrics(message: Fields, attachments: Attachments): MetricsMessage | undefined {
  const text = attachments.take(message.changes, MAX_CHANGES_BYTES);
  const sent = text ? parseJson(text, MAX_CHANGES_VALUES) : message.changes;
  const changes = listOf(sent, MAX_SERIES_CHANGES_PER_MESSAGE, readChange);
  const dropped = listOf(message.dropped, MAX_METRICS, readDrop);
  return changes && dropped && { type: "metrics", changes, dropped };
}

function readChange(change: unknown): MetricChange | undefined {
  if (!isFields(change)) {
    return undefined;
  }
  const { metric, endpoint, value } = change;
  const labels = listOf(change.labels, MAX_LABELS, textOf);
  const counts = listOf(change.counts, MAX_BUCKETS + 1, countOf);
  if (
    typeof metric !== "string" ||
    (endpoint !== undefined && typeof endpoint !== "string") ||
    labels === undefined ||
    typeof value !== "number" ||
    !Number.isFinite(value) ||
    (change.counts !== undefined && counts === undefined)
  ) {
    return undefined;
  }
  return {
    metric,
    labels,
    value,
    ...(endpoint !== undefined && { endpoint }),
    ...(counts && { counts }),
  };
}

function readDrop(drop: unknown): DroppedEvents | undefined {
  if (!isFields(drop)) {
    return undefined;
  }
  const metric = textOf(drop.metric);
  const events = countOf(drop.events);
  return metric === undefined || events === undefined ? undefined : { metric, events };
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
