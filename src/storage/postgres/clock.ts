/**
 * The database's clock, by which nodes judge each other's heartbeats. Its
 * offset is queried every minute; in between, this process's monotonic clock
 * advances it, so that other queries need no query of the time first. The
 * monotonic clock stops while a machine sleeps; the wall clock shows that, and
 * the offset is queried again. Whether a node lives is a matter of seconds.
 * Leases need exact times, so their statements use the database's clock
 * directly.
 */
import { prepared, type Session } from "./session.ts";

/**
 * Age at which the reading of the database's clock is renewed: in that time two clocks drift
 * apart by a few milliseconds at most.
 */
const CLOCK_ASK_INTERVAL_MS = 60_000;

/**
 * How far the machine's two clocks may move apart before the database's clock is read again:
 * it slept, or somebody set its time.
 */
const MAX_CLOCK_DRIFT_MS = 1_000;

const CLOCK = prepared(
  "clock",
  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms",
);

interface Asked {
  readonly atMs: number;
  /** How far the wall clock was ahead of the monotonic clock. */
  readonly aheadMs: number;
  readonly answer: Promise<number>;
}

export class DatabaseClock {
  readonly #session: Pick<Session, "query">;
  #asked: Asked | undefined;

  constructor(session: Pick<Session, "query">) {
    this.#session = session;
  }

  /** The database's time in milliseconds since 1970. Rejects when the database does not respond. */
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

  /** Queries the offset to this process's monotonic clock. */
  async #ask(): Promise<number> {
    const beganMs = performance.now();
    const [row] = await this.#session.query(CLOCK);
    return Number(row?.now_ms) - (beganMs + performance.now()) / 2;
  }
}

function isStale(asked: Asked, nowMs: number, aheadMs: number): boolean {
  return (
    nowMs - asked.atMs > CLOCK_ASK_INTERVAL_MS ||
    Math.abs(aheadMs - asked.aheadMs) > MAX_CLOCK_DRIFT_MS
  );
}
