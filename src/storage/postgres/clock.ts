/**
 * The time of the database, by which nodes judge each other. It is asked for
 * now and then and reckoned in between by this process's own clock that only
 * moves forward, so that a question about the time does not come before every
 * other. That clock stands still while a machine sleeps, which the machine's
 * other clock shows: then it is asked anew. Who lives is a matter of seconds; leases, where an exact time decides,
 * are timed inside their statements.
 */
import { prepared, type Session } from "./session.ts";

/** In so long, two clocks drift apart by a few milliseconds at most. */
const ASK_EVERY_MS = 60_000;

/** The machine's two clocks have moved apart by more: it slept, or somebody set its time. */
const MAX_DRIFT_MS = 1_000;

const CLOCK = prepared(
  "clock",
  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms",
);

interface Asked {
  readonly atMs: number;
  /** How far the machine's other clock was ahead. */
  readonly aheadMs: number;
  readonly answer: Promise<number>;
}

export class DatabaseClock {
  readonly #session: Pick<Session, "query">;
  #asked: Asked | undefined;

  constructor(session: Pick<Session, "query">) {
    this.#session = session;
  }

  /** Milliseconds since 1970. Rejects when the database does not answer. */
  async now(): Promise<number> {
    const nowMs = performance.now();
    const aheadMs = Date.now() - nowMs;
    if (this.#asked === undefined || isStale(this.#asked, nowMs, aheadMs)) {
      const asked = { atMs: nowMs, aheadMs, answer: this.#ask() };
      this.#asked = asked;
      asked.answer.catch(() => {
        if (this.#asked === asked) {
          this.#asked = undefined;
        }
      });
    }
    return Math.round((await this.#asked.answer) + performance.now());
  }

  /** What to add to this process's clock. */
  async #ask(): Promise<number> {
    const beganMs = performance.now();
    const [row] = await this.#session.query(CLOCK);
    return Number(row?.now_ms) - (beganMs + performance.now()) / 2;
  }
}

function isStale(asked: Asked, nowMs: number, aheadMs: number): boolean {
  return nowMs - asked.atMs > ASK_EVERY_MS || Math.abs(aheadMs - asked.aheadMs) > MAX_DRIFT_MS;
}
