import { expect, test } from "vitest";
import { CallPeaks, type Reading } from "../../src/pool/call-peaks.ts";

let nowMs = 0;
let held: Reading | undefined;
let reads = 0;

function peaks(): CallPeaks {
  nowMs = 0;
  reads = 0;
  held = reading(100);
  return new CallPeaks(
    () => {
      reads += 1;
      return held;
    },
    () => nowMs,
  );
}

/** `highest`: the most that was ever in RAM; `swapped`: what is not in RAM, and is counted. */
const reading = (resident: number, { highest = resident, swapped = 0 } = {}): Reading => ({
  bytes: resident + swapped,
  residentBytes: resident,
  highestBytes: highest,
});

test("a call has the most that was read while it ran, and at its end", () => {
  const of = peaks();
  of.began(1);
  nowMs = 500;
  of.seen(reading(300, { highest: 300, swapped: 50 }));
  nowMs = 1_000;
  held = reading(200, { highest: 300 });
  expect(of.ended(1)).toBe(350);
});

test("what a worker held for a moment is known where it never held as much", () => {
  const of = peaks();
  of.began(1);
  nowMs = 50;
  held = reading(110, { highest: 900, swapped: 5 });
  expect(of.ended(1)).toBe(795 + 110);
});

test("what a worker held before a call is none of the call's", () => {
  const of = peaks();
  held = reading(100, { highest: 900 });
  of.began(1);
  nowMs = 50;
  held = reading(120, { highest: 900 });
  expect(of.ended(1)).toBe(120);
});

test("calls that run together have their memory together", () => {
  const of = peaks();
  of.began(1);
  nowMs = 20;
  of.began(2);
  nowMs = 40;
  held = reading(400);
  expect(of.ended(1)).toBe(400);
  held = reading(150, { highest: 400 });
  nowMs = 60;
  expect(of.ended(2)).toBe(400);
});

test("many short calls cost few readings, and those that fit between two are not known", () => {
  const of = peaks();
  const known: unknown[] = [];
  for (let id = 1; id <= 1_000; id += 1) {
    of.began(id);
    nowMs += 0.1;
    known.push(of.ended(id));
  }
  expect(reads).toBeLessThanOrEqual(22);
  expect(known[0]).toBe(100);
  expect(known[1]).toBeUndefined();
});

test("of a worker that ended by itself nothing is known, and of one that held too much what it held", () => {
  const crashed = peaks();
  crashed.began(1);
  nowMs = 100;
  crashed.seen(reading(300));
  held = undefined;
  nowMs = 150;
  expect(crashed.ended(1)).toBeUndefined();

  const killed = peaks();
  killed.began(1);
  nowMs = 100;
  killed.seen(reading(600));
  killed.close();
  held = undefined;
  nowMs = 150;
  expect(killed.ended(1)).toBe(600);
});

test("a call is not known twice, and not where nothing can be read", () => {
  const of = peaks();
  held = undefined;
  of.began(1);
  held = reading(100);
  nowMs = 100;
  expect(of.ended(1)).toBeUndefined();
  expect(of.ended(2)).toBeUndefined();
});
