/**
 * Validates the shape of the metric changes that a worker sends. Whether the
 * service declared them is checked later (`deployments/counts.ts`).
 */

import type { Attachments } from "../../protocol/attachments.ts";
import {
  type DroppedEvents,
  type ExposedChange,
  type ExposedMetric,
  MAX_CHANGES_BYTES,
  MAX_SERIES_CHANGES_PER_MESSAGE,
  type MetricChange,
  type WorkerMessage,
} from "../../protocol/messages.ts";
import { MAX_BUCKETS, MAX_LABELS, MAX_METRICS } from "../../sdk/metric-rules.ts";
import {
  isAggregator,
  isExposedLabel,
  isExposedName,
  isExposedValue,
  MAX_EXPOSED_BUCKETS,
  MAX_EXPOSED_HELP_CHARACTERS,
  MAX_EXPOSED_LABELS,
} from "../exposition/rules.ts";
import { type Fields, isFields, listOf, parseJson, textOf } from "./untrusted.ts";

type MetricsMessage = Extract<WorkerMessage, { readonly type: "metrics" }>;

/** Values in the changes of series that a worker sends together. */
const MAX_CHANGES_VALUES = MAX_SERIES_CHANGES_PER_MESSAGE * (MAX_BUCKETS + MAX_LABELS + 10);

/** Metrics of its programs that an agent reports together. */
const MAX_EXPOSED_METRICS = MAX_SERIES_CHANGES_PER_MESSAGE;

/** The changes stand in the header, or as JSON text in an attachment. */
export function readMetrics(message: Fields, attachments: Attachments): MetricsMessage | undefined {
  const text = attachments.take(message.changes, MAX_CHANGES_BYTES);
  const sent = text ? parseJson(text, MAX_CHANGES_VALUES) : message.changes;
  const changes = listOf(sent, MAX_SERIES_CHANGES_PER_MESSAGE, readChange);
  const dropped = listOf(message.dropped, MAX_METRICS, readDrop);
  return changes && dropped && { type: "metrics", changes, dropped };
}

/**
 * What an agent reports of the programs in its worker; the names, labels and values become text in
 * the format of Prometheus. Undefined for anything else.
 */
export function readExposed(
  message: Fields,
): Pick<MetricsMessage, "exposed" | "unread"> | undefined {
  const exposed = listOf(message.exposed ?? [], MAX_EXPOSED_METRICS, readExposedMetric);
  const unread = countOf(message.unread ?? 0);
  return exposed === undefined || unread === undefined ? undefined : { exposed, unread };
}

function readExposedMetric(metric: unknown): ExposedMetric | undefined {
  if (!isFields(metric)) {
    return undefined;
  }
  const { name, kind, help, aggregator } = metric;
  const buckets = listOf(metric.buckets ?? [], MAX_EXPOSED_BUCKETS, finiteOf);
  const isRight =
    typeof name === "string" &&
    isExposedName(name) &&
    (kind === "counter" || kind === "gauge" || kind === "histogram") &&
    typeof help === "string" &&
    help.length <= MAX_EXPOSED_HELP_CHARACTERS &&
    (aggregator === undefined || isAggregator(aggregator));
  if (!isRight || buckets === undefined || !isRising(buckets)) {
    return undefined;
  }
  const changes = listOf(metric.changes, MAX_SERIES_CHANGES_PER_MESSAGE, (change) =>
    readExposedChange(change, kind === "histogram" ? buckets.length + 1 : undefined),
  );
  if (changes === undefined) {
    return undefined;
  }
  const negative = kind === "counter" && changes.some(({ value = 0 }) => value < 0);
  return negative
    ? undefined
    : {
        ...{ name, kind, help, changes },
        ...(kind === "histogram" && { buckets }),
        ...(aggregator !== undefined && { aggregator }),
      };
}

function readExposedChange(
  change: unknown,
  countsExpected: number | undefined,
): ExposedChange | undefined {
  if (!isFields(change)) {
    return undefined;
  }
  const labels = listOf(change.labels, 2 * MAX_EXPOSED_LABELS, textOf);
  const counts = listOf(change.counts, MAX_EXPOSED_BUCKETS + 1, countOf);
  const value = finiteOf(change.value);
  if (
    labels === undefined ||
    labels.length % 2 !== 0 ||
    !labels.every((text, at) => (at % 2 === 0 ? isExposedLabel(text) : isExposedValue(text))) ||
    labels.some((text, at) => at % 2 === 0 && at > 0 && text <= (labels[at - 2] as string)) ||
    (change.value !== undefined && value === undefined) ||
    (change.counts !== undefined && counts === undefined) ||
    counts?.length !== countsExpected
  ) {
    return undefined;
  }
  return { labels, ...(value !== undefined && { value }), ...(counts && { counts }) };
}

function isRising(bounds: readonly number[]): boolean {
  return bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] as number));
}

function finiteOf(value: unknown): number | undefined {
  return Number.isFinite(value) ? (value as number) : undefined;
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
