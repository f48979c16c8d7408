import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { EndpointLoad } from "../../src/pool/demand.ts";
import { decide, firstState, type ScalerState } from "../../src/pool/scaler.ts";

const COOLDOWN_MS = 60_000;

const amount = fc.integer({ min: 0, max: 3_000 });
const fixed = fc.record({
  kind: fc.constantFrom("api" as const, "task" as const),
  concurrency: fc.integer({ min: 1, max: 100 }),
  batchSize: fc.integer({ min: 1, max: 32 }),
});
const load = fc.record({
  running: fc.integer({ min: 0, max: 200 }),
  waiting: amount,
  due: fc.double({ min: 0, max: 10_000, noNaN: true }),
  began: amount,
  meanRunMs: fc.option(fc.double({ min: 0, max: 1e7, noNaN: true }), { nil: undefined }),
  passedMs: fc.integer({ min: 1, max: 30_000 }),
  ready: fc.integer({ min: 0, max: 100 }),
  joined: fc.integer({ min: 0, max: 20 }),
});
const settings = fc
  .record({
    min: fc.integer({ min: 0, max: 100 }),
    above: fc.integer({ min: 0, max: 100 }),
    queueTimeMs: fc.integer({ min: 0, max: 3_600_000 }),
  })
  .map(({ min, above, queueTimeMs }) => ({ min, max: Math.max(1, min + above), queueTimeMs }));
const story = fc.record({
  fixed,
  settings,
  loads: fc.array(load, { minLength: 1, maxLength: 60 }),
});

type Story = typeof story extends fc.Arbitrary<infer Value> ? Value : never;
type Load = Story["loads"][number];

/** All decisions of a story, with the state that each began from. */
function decisions({ fixed, settings, loads }: Story) {
  let state: ScalerState = firstState(0, 0);
  let nowMs = 0;
  let started = 0;
  return loads.map((each) => {
    const before = state;
    nowMs += each.passedMs;
    started += each.began;
    const decision = decide(before, [endpointOf(fixed, each, started)], {
      ...each,
      ...settings,
      nowMs,
    });
    state = decision.state;
    return { before, nowMs, started, load: each, decision };
  });
}

function endpointOf(of: Story["fixed"], each: Load, started: number): EndpointLoad {
  const { running, waiting, due, meanRunMs } = each;
  return { name: "work", ...of, running, waiting, due, started, meanRunMs };
}

it("stays within its bounds, and starts what others leave", () => {
  fc.assert(
    fc.property(story, (given) => {
      const { min, max } = given.settings;
      for (const { decision, load } of decisions(given)) {
        expect(Number.isInteger(decision.workers)).toBe(true);
        expect(decision.workers).toBeGreaterThanOrEqual(min);
        expect(decision.workers).toBeLessThanOrEqual(max);
        expect(decision.local).toBe(Math.max(0, decision.workers - load.joined));
      }
    }),
  );
});

it("never has fewer workers for more load", () => {
  const more = fc.record({ running: amount, waiting: amount, due: amount, began: amount });
  fc.assert(
    fc.property(story, more, (given, plus) => {
      const last = decisions(given).at(-1);
      if (last === undefined) {
        return;
      }
      const { before, nowMs, started, load, decision } = last;
      const larger = {
        ...load,
        running: load.running + plus.running,
        waiting: load.waiting + plus.waiting,
        due: load.due + plus.due,
      };
      const endpoints = [endpointOf(given.fixed, larger, started + plus.began)];
      const facts = { ...load, ...given.settings, nowMs };
      expect(decide(before, endpoints, facts).workers).toBeGreaterThanOrEqual(decision.workers);
    }),
  );
});

it("never has more workers for a longer queue time", () => {
  fc.assert(
    fc.property(story, fc.integer({ min: 0, max: 3_600_000 }), (given, longerMs) => {
      const { queueTimeMs } = given.settings;
      const patient = { ...given.settings, queueTimeMs: queueTimeMs + longerMs };
      const [first] = given.loads;
      const loads = first === undefined ? [] : [first];
      const [short] = decisions({ ...given, loads });
      const [long] = decisions({ ...given, loads, settings: patient });
      expect(long?.decision.workers).toBeLessThanOrEqual(short?.decision.workers ?? 0);
    }),
  );
});

it("does not fall within a minute of a rise, so it never rises, falls and rises within it", () => {
  fc.assert(
    fc.property(story, (given) => {
      let workers = given.settings.min;
      let roseAtMs = Number.NEGATIVE_INFINITY;
      for (const { decision, nowMs } of decisions(given)) {
        if (decision.workers < workers) {
          expect(nowMs - roseAtMs).toBeGreaterThanOrEqual(COOLDOWN_MS);
        }
        if (decision.workers > workers) {
          roseAtMs = nowMs;
        }
        workers = decision.workers;
      }
    }),
  );
});

it("reaches the least number when nothing is left to do", () => {
  const rest = { running: 0, waiting: 0, due: 0, began: 0, passedMs: 1_000, ready: 0, joined: 0 };
  fc.assert(
    fc.property(story, (given) => {
      const { meanRunMs } = given.loads.at(-1) ?? { meanRunMs: undefined };
      // The slots of a load of thousands are forgotten within three minutes, the last worker in five.
      const rests = Array.from({ length: 600 }, () => ({ ...rest, meanRunMs }));
      const all = decisions({ ...given, loads: [...given.loads, ...rests] });
      expect(all.at(-1)?.decision.workers).toBe(given.settings.min);
    }),
    { numRuns: 50 },
  );
});
