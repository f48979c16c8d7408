/** The fence of a worker that is cut off, by a clock of the test. */
import { afterEach, describe, expect, test } from "vitest";
import { Fence } from "../../src/agent/fence.ts";

const SILENCE_MS = 15_000;

const fences: Fence[] = [];

afterEach(() => {
  for (const fence of fences.splice(0)) {
    fence[Symbol.dispose]();
  }
});

function open(silenceMs = SILENCE_MS) {
  const clock = { ms: 1_000_000 };
  const said: string[] = [];
  const fence = new Fence({
    silenceMs,
    now: () => clock.ms,
    sinceMs: clock.ms,
    onAbort: () => said.push("abort"),
    onOver: () => said.push("over"),
  });
  fences.push(fence);
  const at = (sinceStartMs: number): void => {
    clock.ms = 1_000_000 + sinceStartMs;
    fence.look();
  };
  return { fence, said, at };
}

describe("a fence", () => {
  test("takes no new calls after 8 s, aborts after 10 s, and kills before 14 s", () => {
    const { fence, said, at } = open();
    at(7_999);
    expect(fence.isOpen).toBe(true);
    at(8_000);
    expect(fence.isOpen).toBe(false);
    at(9_999);
    expect(said).toEqual([]);
    at(10_000);
    expect(said).toEqual(["abort"]);
    at(12_999);
    expect(fence.isOver).toBe(false);
    at(13_000);
    expect(said).toEqual(["abort", "over"]);
    expect(fence.isOver).toBe(true);
  });

  test("counts from when the acknowledged heartbeat was sent, not from its answer", () => {
    const { fence, at } = open();
    at(7_000);
    fence.acknowledged(1_005_000);
    at(12_999);
    expect(fence.isOpen).toBe(true);
    at(13_000);
    expect(fence.isOpen).toBe(false);
  });

  test("opens again with an answer, and aborts again with the next silence", () => {
    const { fence, said, at } = open();
    at(11_000);
    fence.acknowledged(1_010_900);
    expect(fence.isOpen).toBe(true);
    at(21_000);
    expect(said).toEqual(["abort", "abort"]);
  });

  test("is not moved by an answer to an older heartbeat", () => {
    const { fence, at } = open();
    fence.acknowledged(1_004_000);
    fence.acknowledged(1_001_000);
    at(11_999);
    expect(fence.isOpen).toBe(true);
  });

  test("stays over: a frozen process that wakes hears an old answer too late", () => {
    const { fence, said, at } = open();
    at(4_000);
    // Stopped here for 30 s; the answer was on its way.
    at(34_000);
    fence.acknowledged(1_004_000);
    fence.acknowledged(1_034_000);
    expect(fence.isOpen).toBe(false);
    expect(fence.isOver).toBe(true);
    expect(said).toEqual(["over"]);
  });

  test("of a long limit, takes its last minute and a half for that", () => {
    const hoursMs = 2 * 3_600_000;
    const { fence, said, at } = open(hoursMs);
    at(hoursMs - 84_001);
    expect(fence.isOpen).toBe(true);
    at(hoursMs - 84_000);
    expect(fence.isOpen).toBe(false);
    at(hoursMs - 60_001);
    expect(said).toEqual([]);
    at(hoursMs - 60_000);
    expect(said).toEqual(["abort"]);
    at(hoursMs - 24_000);
    expect(said).toEqual(["abort", "over"]);
  });

  test("heeds the limit of the node that goes on with its session", () => {
    const { fence, said, at } = open(2 * 3_600_000);
    fence.limit(SILENCE_MS);
    at(9_999);
    expect(said).toEqual([]);
    at(13_000);
    expect(said).toEqual(["over"]);
  });
});
