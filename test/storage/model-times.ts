/** What the reference model knows of keys that take turns by the seconds that their tasks run. */

/** How long the last tasks ran, together, and how many these are. */
interface Runs {
  readonly runMs: number;
  readonly runs: number;
}

/** An endpoint whose keys have been claimed by seconds. */
interface Endpoint {
  /** What the least served had of the keys that could start. */
  timeMs: number;
  /** Of all keys. */
  last: Runs;
  readonly keys: Map<string, Runs & { readonly hadMs: number }>;
  /** What has ended since the last claim. */
  ended: { readonly key: string; readonly runMs: number }[];
}

/** A key that may start, for one claim. */
export interface Contender {
  readonly key: string;
  /** How long those of its tasks have run that still do. */
  readonly running: readonly number[];
  /** Tasks that it starts in this claim, so far. */
  started: number;
}

const RUNS_KNOWN = 32;

const recent = ({ runMs, runs }: Runs): Runs =>
  runs > RUNS_KNOWN
    ? { runMs: Math.floor(runMs / 2), runs: Math.floor(runs / 2) }
    : { runMs, runs };

export class KeyTimes {
  readonly #endpoints = new Map<string, Endpoint>();

  /** True while what keys of the endpoint have had is kept. */
  has(endpoint: string): boolean {
    return (this.#endpoints.get(endpoint)?.keys.size ?? 0) > 0;
  }

  forget(endpoint: string): void {
    this.#endpoints.delete(endpoint);
  }

  /** An attempt of a key has ended. */
  ran(endpoint: string, key: string, runMs: number): void {
    const known = this.#endpoints.get(endpoint);
    if (known?.keys.has(key)) {
      known.ended.push({ key, runMs: Math.max(0, runMs) });
    }
  }

  /** A suspect of a key starts. */
  begin(endpoint: string, key: string): void {
    const { keys, timeMs } = this.#of(endpoint);
    if (!keys.has(key)) {
      keys.set(key, { hadMs: timeMs, runMs: 0, runs: 0 });
    }
  }

  /** A claim begins: what has ended is counted. */
  settle(endpoint: string): void {
    const known = this.#of(endpoint);
    const sum = (of: Runs, ended: Endpoint["ended"]): Runs => ({
      runMs: ended.reduce((ms, one) => ms + one.runMs, of.runMs),
      runs: of.runs + ended.length,
    });
    for (const [key, ended] of Map.groupBy(known.ended, (one) => one.key)) {
      const before = known.keys.get(key) ?? { hadMs: 0, runMs: 0, runs: 0 };
      const hadMs = ended.reduce((ms, one) => ms + one.runMs, before.hadMs);
      known.keys.set(key, { hadMs, ...recent(sum(before, ended)) });
    }
    known.last = recent(sum(known.last, known.ended));
    known.ended = [];
  }

  /** The key whose task is next, of those that may start, in the order of their turns. */
  next(endpoint: string, contenders: readonly Contender[]): Contender | undefined {
    const began = (one: Contender): number => {
      const { keys, last } = this.#of(endpoint);
      const own = keys.get(one.key);
      const known = own && own.runs > 0 ? own : last;
      const meanMs = known.runs > 0 ? Math.floor(known.runMs / known.runs) : 0;
      const missing = one.running.length * meanMs - soFar(one);
      return this.#had(endpoint, one) + Math.max(0, missing) + one.started * meanMs;
    };
    return contenders.toSorted((a, b) => began(a) - began(b) || a.started - b.started)[0];
  }

  /** A claim ends, which could start these. */
  close(endpoint: string, contenders: readonly Contender[]): void {
    const known = this.#of(endpoint);
    const had = contenders.map((one) => this.#had(endpoint, one));
    for (const [at, one] of contenders.entries()) {
      if (one.started > 0) {
        const before = known.keys.get(one.key) ?? { runMs: 0, runs: 0 };
        known.keys.set(one.key, { ...before, hadMs: (had[at] ?? 0) - soFar(one) });
      }
    }
    known.timeMs = had.length > 0 ? Math.min(...had) : known.timeMs;
  }

  /** Nobody has had less than the least served. */
  #had(endpoint: string, one: Contender): number {
    const { keys, timeMs } = this.#of(endpoint);
    return Math.max(timeMs, (keys.get(one.key)?.hadMs ?? 0) + soFar(one));
  }

  #of(endpoint: string): Endpoint {
    const none = { timeMs: 0, last: { runMs: 0, runs: 0 }, keys: new Map(), ended: [] };
    const known = this.#endpoints.get(endpoint) ?? none;
    this.#endpoints.set(endpoint, known);
    return known;
  }
}

function soFar({ running }: Contender): number {
  return running.reduce((sum, ms) => sum + ms, 0);
}
