/**
 * Starts of keys in the reference model: the last ones of each key of endpoints that bound their rate,
 * without those of tasks that have not begun.
 */
import type { RateManifest } from "../../src/protocol/manifest.ts";

/** The rate that steps bound starts by. */
export const RATE: RateManifest = { count: 2, periodMs: 60 };

/** A start of no task; the next claim of the endpoint takes it away. */
interface Unbegun {
  readonly endpoint: string;
  readonly name: string;
  readonly atMs: number;
}

/** `name` is that of a key among those of all endpoints. */
export class KeyStarts {
  readonly #starts = new Map<string, readonly number[]>();
  #unbegun: Unbegun[] = [];

  started(name: string, atMs: number): void {
    const starts = [...(this.#starts.get(name) ?? []), atMs];
    this.#starts.set(name, starts.slice(-RATE.count));
  }

  /** When the next one may start. */
  nextMs(name: string): number {
    const nthLastMs = this.#starts.get(name)?.at(-RATE.count);
    return nthLastMs === undefined ? 0 : overAt(nthLastMs);
  }

  /** An attempt has ended that never began. */
  ended(unbegun: Unbegun): void {
    if (this.#starts.get(unbegun.name)?.includes(unbegun.atMs)) {
      this.#unbegun.push(unbegun);
    }
  }

  /** The endpoint is claimed by its rate. */
  claimed(endpoint: string): void {
    for (const { name, atMs } of this.#unbegun.filter((one) => one.endpoint === endpoint)) {
      const starts = this.#starts.get(name) ?? [];
      const at = starts.indexOf(atMs);
      this.#starts.set(name, at < 0 ? starts : starts.toSpliced(at, 1));
    }
    this.#unbegun = this.#unbegun.filter((one) => one.endpoint !== endpoint);
  }

  /** Forgets what no window holds; answers how many there were of what was most. */
  prune(nowMs: number, limit: number): number {
    const over = [...this.#starts]
      .flatMap(([name, starts]) => starts.map((atMs) => ({ name, atMs })))
      .filter(({ atMs }) => overAt(atMs) <= nowMs)
      .sort((a, b) => a.atMs - b.atMs || (a.name < b.name ? -1 : 1))
      .slice(0, limit);
    for (const { name } of over) {
      this.#starts.set(name, this.#starts.get(name)?.slice(1) ?? []);
    }
    const unbegun = this.#unbegun
      .filter(({ atMs }) => overAt(atMs) <= nowMs)
      .sort((a, b) => a.atMs - b.atMs)
      .slice(0, limit);
    this.#unbegun = this.#unbegun.filter((one) => !unbegun.includes(one));
    return Math.max(over.length, unbegun.length);
  }
}

/** No window that ends later has a start of then. */
function overAt(startMs: number): number {
  return startMs + RATE.periodMs + 1;
}
