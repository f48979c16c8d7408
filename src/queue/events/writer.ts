/**
 * The write-behind of events: one write for all that the running attempts of a deployment
 * reported in a turn of the event loop or, while a write is under way, since it began (group
 * commit). What an attempt reported last, and no write has taken yet, is stored together with its
 * end: the log of a task that has ended lacks nothing that its function said.
 *
 * A storage that does not answer is asked again. What waits for it is bounded: the oldest events
 * of the attempt that reports more are dropped, and its lines have numbers that tell so.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { Attempt, NewEvent, Storage } from "../../storage/storage.ts";

/** Events of one write. */
const MAX_WRITE_EVENTS = 500;

/** Characters of the events of a deployment that wait to be written. */
const MAX_WAITING_EVENT_CHARACTERS = 8 * 1024 ** 2;

/** What an event counts for beside its texts. */
const EVENT_CHARACTERS = 100;

/** Pause before events are offered again to a storage that does not answer. */
const EVENTS_RETRY_PAUSE_MS = 500;

/** What one attempt reported and is not stored. */
export class AttemptEvents {
  readonly attempt: Attempt;
  readonly waiting: NewEvent[] = [];
  /** Settles when the write under way has stored its events of this attempt, or has failed to. */
  underWay: Promise<void> | undefined;
  /** Its lease was lost: the storage takes nothing more from it. */
  isStale = false;
  /** Some were dropped. */
  isLossy = false;

  constructor(attempt: Attempt) {
    this.attempt = attempt;
  }
}

interface EventWriterOptions {
  readonly storage: Pick<Storage, "recordEvents">;
  readonly log: Log;
  /** Events of this task were stored. */
  onStored(taskId: string): void;
}

interface Write {
  readonly of: AttemptEvents;
  readonly events: readonly NewEvent[];
}

export class EventWriter implements Disposable {
  readonly #options: EventWriterOptions;
  readonly #waiting = new Set<AttemptEvents>();
  readonly #stopped = new AbortController();
  #waitingLength = 0;
  #writing: Promise<void> | undefined;

  constructor(options: EventWriterOptions) {
    this.#options = options;
  }

  add(of: AttemptEvents, event: NewEvent): void {
    if (of.isStale) {
      return;
    }
    of.waiting.push(event);
    this.#wait(of, lengthOf(event));
    while (this.#waitingLength > MAX_WAITING_EVENT_CHARACTERS && of.waiting.length > 0) {
      this.#drop(of);
    }
    this.#writing ??= this.#write();
  }

  /** Takes the events of an attempt that no write has stored, to be stored with its end. */
  async takeRest(of: AttemptEvents): Promise<readonly NewEvent[]> {
    // The next write leaves them here, or the end would wait for that one too.
    this.#waiting.delete(of);
    await of.underWay;
    return this.#take(of, of.waiting.length);
  }

  /** Resolves when nothing waits, or is offered any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Stops offering events to a storage that does not answer. */
  [Symbol.dispose](): void {
    this.#stopped.abort();
  }

  async #write(): Promise<void> {
    const { signal } = this.#stopped;
    // At the end of the event loop's turn, so that the events of one turn share a write.
    await new Promise(setImmediate);
    while (this.#waiting.size > 0 && !signal.aborted) {
      const writes = this.#takeWrites();
      const { promise, resolve } = Promise.withResolvers<void>();
      for (const { of } of writes) {
        of.underWay = promise;
      }
      const answered = await this.#store(writes);
      for (const { of } of writes) {
        of.underWay = undefined;
      }
      resolve();
      if (!answered) {
        await sleep(EVENTS_RETRY_PAUSE_MS, undefined, { signal }).catch(() => {
          // The node ends, and what waits is lost.
        });
      }
    }
    this.#writing = undefined;
  }

  #takeWrites(): Write[] {
    const writes: Write[] = [];
    let left = MAX_WRITE_EVENTS;
    for (const of of this.#waiting) {
      const events = this.#take(of, left);
      writes.push({ of, events });
      left -= events.length;
      if (left === 0) {
        break;
      }
    }
    return writes;
  }

  /** Returns whether the storage answered. What it did not answer waits again. */
  async #store(writes: readonly Write[]): Promise<boolean> {
    const { storage, log } = this.#options;
    const events = writes.flatMap(({ of: { attempt }, events }) =>
      events.map((event) => ({ attempt, ...event })),
    );
    try {
      const sequences = await storage.recordEvents({ events });
      this.#stored(writes, sequences);
      return true;
    } catch (err) {
      if (toProblem(err).reason === "STORAGE_UNAVAILABLE") {
        for (const { of, events } of writes) {
          of.waiting.unshift(...events);
          this.#wait(of, sum(events));
        }
        log.warn({ err }, "progress and log lines of tasks could not be stored");
        return false;
      }
      if (writes.length === 1) {
        log.warn({ err, ...writes[0]?.of.attempt }, "progress or log lines were dropped");
        return true;
      }
    }
    // Only the attempt whose events the storage rejects loses them.
    for (const write of writes) {
      await this.#store([write]);
    }
    return true;
  }

  #stored(writes: readonly Write[], sequences: readonly (number | undefined)[]): void {
    let at = 0;
    for (const { of, events } of writes) {
      if (sequences[at] === undefined) {
        of.isStale = true;
        const message =
          "progress or log lines of an attempt were refused: its lease had been lost, or it had ended";
        this.#options.log.warn({ ...of.attempt, events: events.length }, message);
      } else {
        this.#options.onStored(of.attempt.taskId);
      }
      at += events.length;
    }
  }

  #wait(of: AttemptEvents, length: number): void {
    this.#waitingLength += length;
    this.#waiting.add(of);
  }

  #take(of: AttemptEvents, count: number): readonly NewEvent[] {
    const taken = of.waiting.splice(0, count);
    this.#waitingLength -= sum(taken);
    if (of.waiting.length === 0) {
      this.#waiting.delete(of);
    }
    return taken;
  }

  #drop(of: AttemptEvents): void {
    this.#take(of, 1);
    if (!of.isLossy) {
      of.isLossy = true;
      const message = "progress or log lines were dropped: the storage does not keep up";
      this.#options.log.warn({ ...of.attempt }, message);
    }
  }
}

function sum(events: readonly NewEvent[]): number {
  return events.reduce((length, event) => length + lengthOf(event), 0);
}

function lengthOf({ body }: NewEvent): number {
  if (body.kind === "state") {
    return EVENT_CHARACTERS;
  }
  const fields = body.kind === "log" ? (body.fieldsJson?.length ?? 0) : 0;
  return EVENT_CHARACTERS + body.message.length + fields;
}
