/**
 * The reports of a worker: lines, output, progress and metrics, by a stream of their own. They
 * are collected for a moment and sent together. While the node cannot be reached, or does not
 * read, they wait within bounds: of progress and metrics the sum is kept, and lines beyond the
 * bound are dropped and counted. What was sent to a stream that broke is not sent again.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReportedLineSchema, ReportRequestSchema } from "../../gen/tessera/v1/worker_pb.js";
import { MAX_LOG_TEXT_CHARACTERS } from "../protocol/messages.ts";
import type { SessionAccess } from "./files.ts";
import { MetricChanges } from "./metric-changes.ts";
import { RequestQueue } from "./request-queue.ts";

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
