/** A node that measures, with a clock that a test moves. */
import type { HistoryAnswer, HistorySeries } from "../../../src/metrics/history/history.ts";
import { KeptHistory } from "../../../src/metrics/history/kept.ts";
import { MEASURE_NAMES, type MeasureName } from "../../../src/metrics/history/measures.ts";
import { Recorder } from "../../../src/metrics/history/recorder.ts";
import { type DeploymentMetrics, Metrics } from "../../../src/metrics/metrics.ts";
import { parseSelector } from "../../../src/metrics/selector/parse.ts";
import type { MetricsStorage } from "../../../src/storage/metrics/metrics.ts";

export const TICK_MS = 10_000;

export class Clock {
  nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }
}

export class MeasuringNode implements AsyncDisposable {
  readonly metrics: Metrics;
  readonly recorder: Recorder;
  readonly errors: unknown[] = [];
  readonly #organizationId: string;

  constructor(
    storage: MetricsStorage,
    { clock, organizationId }: { readonly clock: Clock; readonly organizationId: string },
  ) {
    const now = () => clock.nowMs;
    this.#organizationId = organizationId;
    this.metrics = new Metrics({ node: "n", now });
    const onError = (err: unknown) => void this.errors.push(err);
    this.recorder = new Recorder({ metrics: this.metrics, storage, now, onError });
  }

  deployment(deploymentId: string): DeploymentMetrics {
    const organizationId = this.#organizationId;
    const names = { organization: "acme", deployment: deploymentId };
    return this.metrics.deployment({ organizationId, deploymentId, ...names });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.recorder[Symbol.asyncDispose]();
  }
}

export interface Asked {
  readonly deploymentId?: string;
  readonly measures?: readonly MeasureName[];
  readonly selectors?: readonly string[];
  readonly lengthMs?: number;
  readonly maxPoints?: number;
}

/** Reads what was kept, up to now. */
export function ask(
  storage: MetricsStorage,
  { clock, organizationId }: { readonly clock: Clock; readonly organizationId: string },
  {
    deploymentId,
    measures = MEASURE_NAMES,
    selectors = [],
    lengthMs = 60_000,
    maxPoints = 0,
  }: Asked = {},
): Promise<HistoryAnswer> {
  // When every node has stored the interval that ended now.
  const nowMs = clock.nowMs + 2_000;
  return new KeptHistory(storage).read({
    organizationId,
    deployment: deploymentId === undefined ? undefined : { deploymentId },
    measures,
    selectors: selectors.map(parseSelector),
    range: { startMs: nowMs - lengthMs, endMs: nowMs, maxPoints, nowMs },
    signal: new AbortController().signal,
  });
}

/** The values of a series. */
export function valuesOf(
  answer: HistoryAnswer,
  ...named: [name: string, statistic?: HistorySeries["statistic"]]
): readonly number[] | undefined {
  return seriesOf(answer, ...named)?.values;
}

/** The statistic of a series over the whole range. */
export function wholeOf(
  answer: HistoryAnswer,
  ...named: [name: string, statistic?: HistorySeries["statistic"]]
): number | undefined {
  return seriesOf(answer, ...named)?.whole;
}

const seriesOf = (
  { series }: HistoryAnswer,
  name: string,
  statistic?: HistorySeries["statistic"],
): HistorySeries | undefined =>
  series.find(
    (one) => one.name === name && (statistic === undefined || one.statistic === statistic),
  );
