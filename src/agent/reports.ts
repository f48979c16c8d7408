/**
 * The reports of a worker: lines, output, progress and metrics, by a stream of their own. They
 * are collected for a moment and sent together. While the node cannot be reached, or does not
 * read, they wait within bounds: of progress and metrics the sum is kept, and lines beyond the
 * bound are dropped and counted. What was sent to a stream that broke is not sent again.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReportedLineSchema, ReportRequestSchema } from "../../gen/tessera/v1/worker_pb.js";
import type { CustomChange, CustomDeclaration } from "../metrics/custom-metric.ts";
import {
  type DroppedEvents,
  type ExposedChange,
  type ExposedMetric,
  MAX_LOG_TEXT_CHARACTERS,
  MAX_SERIES_CHANGES_PER_MESSAGE,
  type MetricChange,
} from "../protocol/messages.ts";
import type { SessionAccess } from "./files.ts";
import { RequestQueue } from "./request-queue.ts";

/** Series with changes that wait for a report; changes of further ones are counted as dropped. */
const MAX_WAITING_SERIES = 20_000;

/** Series that programs of a worker expose with changes that wait for a report. */
const MAX_WAITING_EXPOSED = 5_000;
/** Characters of what programs of a worker expose in one report, about: few enough for a node to parse. */
const MAX_REPORTED_EXPOSED_CHARACTERS = 100_000;

/** How long what is reported is collected. */
const REPORT_DELAY_MS = 100;
/** Lines that wait for a report. */
const MAX_WAITING_LINES = 5_000;
/** Characters of the lines that wait. */
const MAX_WAITING_CHARACTERS = 4 * 1024 ** 2;
/** Lines of one report. */
const MAX_REPORTED_LINES = 1_000;
/** Characters of the lines of one report. */
const MAX_REPORTED_CHARACTERS = 512 * 1024;
/** Reports that a node has not read yet. */
const MAX_UNREAD_REPORTS = 8;
/** Characters of what a call says that it does. */
const MAX_PROGRESS_CHARACTERS = 1_000;

type Line = MessageInitShape<typeof ReportedLineSchema>;
type Report = MessageInitShape<typeof ReportRequestSchema>;

export class ReportStream implements Disposable {
  readonly metrics = new MetricChanges();
  #lines: Line[] = [];
  #characters = 0;
  #dropped = 0;
  readonly #progress = new Map<bigint, { readonly fraction: number; readonly message: string }>();
  #queue: RequestQueue<Report> | undefined;
  /** The number of the last report. */
  #sequence = 0n;
  #timer: NodeJS.Timeout | undefined;

  /** Reports to this node from now on. */
  connect({ client, session }: SessionAccess, signal: AbortSignal): void {
    this.disconnect();
    const queue = new RequestQueue<Report>();
    this.#queue = queue;
    queue.send({ session, sequence: this.#sequence });
    client.report(queue, { signal }).catch(() => {
      // Work has the reason, and connects again.
      if (this.#queue === queue) {
        this.disconnect();
      }
    });
    this.flush();
  }

  disconnect(): void {
    this.#queue?.end();
    this.#queue = undefined;
  }

  /** A line that a call logged, or a line of output. */
  line(line: Line): void {
    const { message = "", fieldsJson = "" } = line;
    const length = message.length + fieldsJson.length;
    if (
      this.#lines.length >= MAX_WAITING_LINES ||
      this.#characters + length > MAX_WAITING_CHARACTERS
    ) {
      this.#dropped += 1;
      return;
    }
    this.#characters += length;
    this.#lines.push({ ...line, message: message.slice(0, MAX_LOG_TEXT_CHARACTERS) });
    this.soon();
  }

  progress(id: bigint, fraction: number, message: string): void {
    this.#progress.set(id, { fraction, message: message.slice(0, MAX_PROGRESS_CHARACTERS) });
    this.soon();
  }

  /** Something changed, which is to be reported in a moment. */
  soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush();
      if (this.#isWaiting && this.#queue !== undefined) {
        this.soon();
      }
    }, REPORT_DELAY_MS);
  }

  /** Sends what waits. Returns the number of the last report. */
  flush(): bigint {
    while (this.#isWaiting && this.#queue !== undefined && this.#queue.size < MAX_UNREAD_REPORTS) {
      this.#sequence += 1n;
      this.#queue.send({ sequence: this.#sequence, ...this.#take() });
    }
    return this.#sequence;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.disconnect();
  }

  get #isWaiting(): boolean {
    return (
      this.#lines.length > 0 ||
      this.#progress.size > 0 ||
      this.metrics.size > 0 ||
      this.#dropped > 0
    );
  }

  #take(): Report {
    const progress = [...this.#progress]
      .slice(0, MAX_REPORTED_LINES)
      .map(([id, { fraction, message }]) => ({ id, fraction, message }));
    for (const { id } of progress) {
      this.#progress.delete(id);
    }
    const droppedLines = BigInt(this.#dropped);
    this.#dropped = 0;
    return { lines: this.#takeLines(), progress, metricsJson: this.metrics.take(), droppedLines };
  }

  #takeLines(): Line[] {
    let characters = 0;
    const end = this.#lines.findIndex(({ message = "", fieldsJson = "" }, at) => {
      characters += message.length + fieldsJson.length;
      return at > 0 && (at >= MAX_REPORTED_LINES || characters > MAX_REPORTED_CHARACTERS);
    });
    const lines = this.#lines.splice(0, end < 0 ? this.#lines.length : end);
    this.#characters = this.#lines.reduce(
      (sum, { message = "", fieldsJson = "" }) => sum + message.length + fieldsJson.length,
      0,
    );
    return lines;
  }
}

/**
 * Collects the changes of a service's own metrics until they are reported: those of one series
 * become one change, so that what waits is bounded by the number of series.
 */
class MetricChanges {
  readonly #changes = new Map<string, MetricChange>();
  readonly #dropped = new Map<string, number>();
  readonly #exposed = new ExposedWaiting();
  #unread = 0;

  declare(): void {
    // The node has the manifest.
  }

  workerEnded(): void {
    // The node ends the values of a worker with its session.
  }

  count(_worker: string, { name: metric, kind }: CustomDeclaration, change: CustomChange): void {
    const { endpoint, labels } = change;
    const key = JSON.stringify([metric, endpoint, labels]);
    const before = this.#changes.get(key);
    if (before === undefined && this.#changes.size >= MAX_WAITING_SERIES) {
      this.dropped(metric, 1);
      return;
    }
    this.#changes.set(key, {
      metric,
      ...change,
      ...(kind !== "gauge" && before && merged(before, change)),
    });
  }

  dropped(metric: string, events: number): void {
    this.#dropped.set(metric, (this.#dropped.get(metric) ?? 0) + events);
  }

  countExposed(_worker: string, metric: ExposedMetric): void {
    this.#exposed.add(metric);
  }

  unread(times: number): void {
    this.#unread += times;
  }

  /** Takes what fits in one report, as JSON text; empty when there is nothing. */
  take(): string {
    if (this.size === 0) {
      return "";
    }
    const taken = [...this.#changes].slice(0, MAX_SERIES_CHANGES_PER_MESSAGE);
    for (const [key] of taken) {
      this.#changes.delete(key);
    }
    const changes = taken.map(([, change]) => change);
    const dropped = [...this.#dropped].map(
      ([metric, events]): DroppedEvents => ({
        metric,
        events,
      }),
    );
    this.#dropped.clear();
    const exposed = this.#exposed.take();
    const unread = this.#unread;
    this.#unread = 0;
    return JSON.stringify({
      changes,
      dropped,
      ...(exposed.length > 0 && { exposed }),
      ...(unread > 0 && { unread }),
    });
  }

  get size(): number {
    return this.#changes.size + this.#dropped.size + this.#exposed.size + this.#unread;
  }
}

/** What programs of the worker expose, until it is reported: its changes, as one of each series. */
class ExposedWaiting {
  readonly #metrics = new Map<
    string,
    { metric: ExposedMetric; readonly changes: Map<string, ExposedChange> }
  >();
  #series = 0;

  get size(): number {
    return this.#series;
  }

  /** Changes beyond the bound are left out: a node shows less than waits here. */
  add(metric: ExposedMetric): void {
    const waiting = this.#metrics.get(metric.name) ?? { metric, changes: new Map() };
    this.#metrics.set(metric.name, waiting);
    if (JSON.stringify(waiting.metric.buckets) !== JSON.stringify(metric.buckets)) {
      this.#series -= waiting.changes.size;
      waiting.changes.clear();
    }
    waiting.metric = metric;
    for (const change of metric.changes) {
      const key = JSON.stringify(change.labels);
      const before = waiting.changes.get(key);
      if (before === undefined && this.#series >= MAX_WAITING_EXPOSED) {
        continue;
      }
      this.#series += before === undefined ? 1 : 0;
      const isAdded = metric.kind !== "gauge" && before !== undefined;
      const { value = 0, counts } = change;
      waiting.changes.set(
        key,
        isAdded
          ? {
              ...change,
              ...merged({ value: 0, ...before }, { labels: [], value, ...(counts && { counts }) }),
            }
          : change,
      );
    }
  }

  take(): ExposedMetric[] {
    const taken: ExposedMetric[] = [];
    let left = MAX_REPORTED_EXPOSED_CHARACTERS;
    for (const [name, { metric, changes }] of this.#metrics) {
      const some: ExposedChange[] = [];
      for (const [key, change] of changes) {
        const { labels, counts = [] } = change;
        left -= labels.join("").length + 10 * (labels.length + counts.length + 5);
        if (left < 0 || some.length >= MAX_SERIES_CHANGES_PER_MESSAGE) {
          break;
        }
        some.push(change);
        changes.delete(key);
        this.#series -= 1;
      }
      if (some.length > 0) {
        left -= metric.help.length + 10 * (metric.buckets ?? []).length;
        taken.push({ ...metric, changes: some });
      }
      if (changes.size > 0) {
        break;
      }
      this.#metrics.delete(name);
    }
    return taken;
  }
}

function merged(before: Pick<MetricChange, "value" | "counts">, { value, counts }: CustomChange) {
  return {
    value: before.value + value,
    ...(counts && { counts: counts.map((count, at) => count + (before.counts?.[at] ?? 0)) }),
  };
}
