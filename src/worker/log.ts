/**
 * `ctx.log` of one call. Lines go at once while the worker's budget has room. Beyond it they are
 * held, the last ones in place of the first, and follow at the budget's rate and at the end of the
 * call: a log that is written too fast lacks lines in its middle.
 */
import type { BucketRate, TokenBucket } from "../collections/token-bucket.ts";
import { LOG_LINES_PER_SECOND, linesOf } from "../protocol/log-rate.ts";
import { type LogLevel, MAX_LOG_TEXT_CHARACTERS } from "../protocol/messages.ts";
import type { LogFields, TaskLog } from "../sdk/context.ts";
import type { Channel } from "./channel.ts";

/** Lines that calls may write in one go before they are held back. */
const MAX_LIVE_LINES = 200;
/** Lines that are sent at the ends of calls in one go. */
const MAX_LAST_LINES = 800;

/**
 * How many lines the calls of a worker may send together. Both bounds are at most the burst that
 * the node takes; the greater part of it is for the ends of logs, which go into debt for it.
 */
export const LOG_BUDGET: BucketRate = {
  size: MAX_LIVE_LINES,
  refillMs: 1_000 / LOG_LINES_PER_SECOND,
};

interface Line {
  readonly level: LogLevel;
  readonly message: string;
  /** JSON text of an object; undefined for a line without fields. */
  readonly fieldsJson: string | undefined;
  /** As how many lines it counts. */
  readonly lines: number;
}

export interface CallLogOutlets {
  readonly channel: Channel;
  readonly logBudget: TokenBucket;
}

export class CallLog implements TaskLog {
  readonly debug = this.#writer("debug");
  readonly info = this.#writer("info");
  readonly warn = this.#writer("warn");
  readonly error = this.#writer("error");
  readonly #channel: Channel;
  readonly #budget: TokenBucket;
  readonly #id: number;
  /** Lines that wait for room, oldest first. */
  readonly #held: Line[] = [];
  /** As how many lines they count. */
  #heldLines = 0;
  /** Lines that were left out since the last one that was sent. */
  #skipped = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ channel, logBudget }: CallLogOutlets, id: number) {
    this.#channel = channel;
    this.#budget = logBudget;
    this.#id = id;
  }

  /** Sends the last lines, and drops everything that is logged from now on: the call has ended. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    let first = this.#held.length;
    while (first > 0 && this.#budget.take(this.#held[first - 1]?.lines ?? 0, MAX_LAST_LINES)) {
      first -= 1;
    }
    this.#skipped += first;
    for (const line of this.#held.splice(0).slice(first)) {
      this.#send(line);
    }
  }

  #writer(level: LogLevel) {
    return (message: string, fields?: LogFields): void => this.#write(level, message, fields);
  }

  #write(level: LogLevel, text: unknown, fields: LogFields | undefined): void {
    if (this.#closed) {
      return;
    }
    const message = clip(String(text));
    const json = fields && fieldsJson(fields);
    const lines = linesOf(message.length + (json?.length ?? 0));
    this.#held.push({ level, message, fieldsJson: json, lines });
    this.#heldLines += lines;
    // A function that blocks its event loop gets no turn of the timer.
    this.#sendHeld();
    while (this.#heldLines > MAX_LAST_LINES) {
      this.#takeFirst();
      this.#skipped += 1;
    }
  }

  /** Sends what there is room for, and goes on when there is more. */
  #sendHeld(): void {
    for (let next = this.#held[0]; next; next = this.#held[0]) {
      if (!this.#budget.take(next.lines)) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.#sendHeld();
        }, this.#budget.msUntil(next.lines));
        return;
      }
      this.#takeFirst();
      this.#send(next);
    }
  }

  #takeFirst(): void {
    this.#heldLines -= this.#held.shift()?.lines ?? 0;
  }

  #send({ level, message, fieldsJson }: Line): void {
    this.#channel.send({
      type: "log",
      id: this.#id,
      level,
      message,
      ...(fieldsJson !== undefined && { fieldsJson }),
      ...(this.#skipped > 0 && { skipped: this.#skipped }),
    });
    this.#skipped = 0;
  }
}

function clip(text: string): string {
  return text.length > MAX_LOG_TEXT_CHARACTERS
    ? `${text.slice(0, MAX_LOG_TEXT_CHARACTERS - 1)}…`
    : text;
}

/** The fields as JSON. Fields that JSON cannot carry must not fail the call. */
function fieldsJson(fields: LogFields): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(fields);
  } catch (err) {
    return JSON.stringify({ dropped: clip(`fields that JSON cannot carry: ${err}`) });
  }
  if (json !== undefined && json.length > MAX_LOG_TEXT_CHARACTERS) {
    return JSON.stringify({ dropped: `fields of more than ${MAX_LOG_TEXT_CHARACTERS} characters` });
  }
  return json;
}
