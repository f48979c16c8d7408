import { expect, it } from "vitest";
import { decide, firstState } from "../../src/pool/scaler.ts";

const STEP_MS = 100;
const START_MS = 500;

interface Simulated {
  /** When each task comes. */
  readonly comesAtMs: readonly number[];
  readonly runMs: number;
  readonly queueTimeMs: number;
  readonly min: number;
  readonly max: number;
  /** Whether the run time is known from earlier tasks. */
  readonly known: boolean;
  readonly untilMs: number;
}

/** A node with workers of one slot, decided on every second, by a clock of its own. */
function simulate({ comesAtMs, runMs, untilMs, known, ...target }: Simulated) {
  const coming = comesAtMs.toSorted((one, other) => one - other);
  const due: number[] = [];
  const waitsMs: number[] = [];
  const history: number[] = [];
  /** When each worker is ready, and when its run ends. */
  let workers = Array.from({ length: target.min }, () => ({ readyAtMs: 0, freeAtMs: 0 }));
  let state = firstState(target.min, 0);
  let started = 0;
  let measured = known;
  for (let nowMs = 0; nowMs <= untilMs; nowMs += STEP_MS) {
    while ((coming[0] ?? Number.POSITIVE_INFINITY) <= nowMs) {
      due.push(coming.shift() ?? 0);
    }
    measured ||= workers.some(({ freeAtMs }) => freeAtMs > 0 && freeAtMs <= nowMs);
    for (const worker of workers) {
      if (due.length > 0 && worker.readyAtMs <= nowMs && worker.freeAtMs <= nowMs) {
        waitsMs.push(nowMs - (due.shift() ?? 0));
        worker.freeAtMs = nowMs + runMs;
        started += 1;
      }
    }
    if (nowMs % 1_000 === 0) {
      const running = workers.filter(({ freeAtMs }) => freeAtMs > nowMs).length;
      const decision = decide(
        state,
        [
          {
            ...{ name: "work", kind: "task" as const, concurrency: 1, batchSize: 1 },
            ...{ running, waiting: 0, due: due.length, started },
            meanRunMs: measured ? runMs : undefined,
          },
        ],
        {
          ...target,
          nowMs,
          ready: workers.filter(({ readyAtMs }) => readyAtMs <= nowMs).length,
          joined: 0,
        },
      );
      state = decision.state;
      history.push(decision.workers);
      // The busy ones stay.
      workers = workers
        .toSorted((one, other) => other.freeAtMs - one.freeAtMs)
        .slice(0, decision.workers);
      while (workers.length < decision.workers) {
        workers.push({ readyAtMs: nowMs + START_MS, freeAtMs: 0 });
      }
    }
  }
  return { waitsMs, history, longestMs: Math.max(...waitsMs) };
}

/** How often the number turns from rising to falling or back. */
function turns(history: readonly number[]): number {
  const changes = history
    .slice(1)
    .map((workers, index) => Math.sign(workers - (history[index] ?? 0)))
    .filter((sign) => sign !== 0);
  return changes.slice(1).filter((sign, index) => sign !== changes[index]).length;
}

const at = (count: number, everyMs: number, fromMs = 0): number[] =>
  Array.from({ length: count }, (_, index) => fromMs + index * everyMs);

const base = { runMs: 2_000, queueTimeMs: 5_000, min: 0, max: 1_000, known: true };

it("starts 1,000 tasks of 2 s that come at once within 5 s, with a third as many workers", () => {
  const { waitsMs, history, longestMs } = simulate({
    ...base,
    comesAtMs: at(1_000, 0),
    untilMs: 600_000,
  });
  expect(waitsMs).toHaveLength(1_000);
  expect(longestMs).toBeLessThanOrEqual(base.queueTimeMs);
  expect(Math.max(...history)).toBe(334);
  // It begins at its peak, and only falls.
  expect(turns(history)).toBe(0);
  expect(history.at(-1)).toBe(0);
});

it("takes the run time and a few starts longer where it does not know the run time yet", () => {
  const { waitsMs, history, longestMs } = simulate({
    ...base,
    known: false,
    comesAtMs: at(1_000, 0),
    untilMs: 60_000,
  });
  expect(waitsMs).toHaveLength(1_000);
  expect(longestMs).toBeLessThanOrEqual(base.queueTimeMs + base.runMs + 2_000);
  expect(Math.max(...history)).toBeLessThanOrEqual(340);
});

it("keeps a steady rate within the time, with as many workers as it needs, and stays there", () => {
  const { history, longestMs } = simulate({
    ...base,
    min: 1,
    // Four in a second, of 2 s: eight slots.
    comesAtMs: at(4 * 600, 250),
    untilMs: 600_000,
  });
  expect(longestMs).toBeLessThanOrEqual(base.queueTimeMs);
  const settled = history.slice(120, 600);
  expect(Math.min(...settled)).toBeGreaterThanOrEqual(8);
  expect(Math.max(...history)).toBeLessThanOrEqual(10);
  expect(new Set(settled).size).toBe(1);
});

it("rises for a burst over a steady rate, and falls back once", () => {
  const { history, longestMs } = simulate({
    ...base,
    comesAtMs: [...at(600, 1_000), ...at(300, 0, 200_000)],
    untilMs: 600_000,
  });
  expect(longestMs).toBeLessThanOrEqual(base.queueTimeMs + START_MS);
  expect(history[150]).toBeLessThanOrEqual(4);
  expect(Math.max(...history)).toBeGreaterThan(90);
  expect(history[500]).toBeLessThanOrEqual(4);
  expect(turns(history)).toBeLessThanOrEqual(3);
});
