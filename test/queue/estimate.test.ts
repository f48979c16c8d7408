import { describe, expect, it } from "vitest";
import { estimateStart, RunTimes, retryAfter } from "../../src/queue/estimate.ts";

const NOW_MS = 1_750_000_000_000;

function waitMs(position: number, slots: number, running = slots) {
  const question = { position, slots, running, meanRunMs: 600, nowMs: NOW_MS };
  const startMs = estimateStart(question);
  return startMs === undefined ? undefined : startMs - NOW_MS;
}

describe("the mean run time", () => {
  it("is not known before the first run", () => {
    const times = new RunTimes();
    times.add("a", 100);
    expect(times.mean("b")).toBeUndefined();
    expect(times.mean("a")).toBe(100);
  });

  it("is that of all runs at first", () => {
    const times = new RunTimes();
    for (const ranMs of [100, 200, 600]) {
      times.add("a", ranMs);
    }
    expect(times.mean("a")).toBeCloseTo(300);
  });

  it("follows a change within some dozens of runs, and is not thrown by a single one", () => {
    const times = new RunTimes();
    for (let run = 0; run < 100; run++) {
      times.add("a", 100);
    }
    times.add("a", 1_100);
    expect(times.mean("a")).toBeCloseTo(200);
    for (let run = 0; run < 50; run++) {
      times.add("a", 1_000);
    }
    expect(times.mean("a")).toBeGreaterThan(990);
  });
});

describe("the estimated start", () => {
  it("is that of the slot that becomes free for the task", () => {
    expect(waitMs(0, 1)).toBe(600);
    expect(waitMs(4, 1)).toBe(3_000);
    expect(waitMs(0, 3)).toBe(200);
    expect(waitMs(5, 3)).toBe(1_200);
  });

  it("is now for a task that a free slot waits for", () => {
    expect(waitMs(0, 3, 2)).toBe(0);
    expect(waitMs(1, 3, 2)).toBe(200);
    expect(waitMs(1, 3, 0)).toBe(0);
  });

  it("is unknown without a measured run or without slots", () => {
    const unmeasured = { position: 0, slots: 1, running: 1, meanRunMs: undefined, nowMs: NOW_MS };
    expect(estimateStart(unmeasured)).toBeUndefined();
    expect(waitMs(0, 0)).toBeUndefined();
  });
});

describe("how long a caller waits whom a full queue refused", () => {
  const ask = (queueLimit: number, meanRunMs?: number) =>
    retryAfter({ queueLimit, slots: 2, meanRunMs });

  it("is the time in which one task of a short queue starts", () => {
    expect(ask(10, 60_000)).toBe(30_000);
  });

  it("is the time in which a hundredth of a long queue drains", () => {
    expect(ask(10_000, 1_000)).toBe(50_000);
  });

  it("is at least a second and at most ten minutes", () => {
    expect(ask(10, 1)).toBe(1_000);
    expect(ask(1_000_000, 60_000)).toBe(600_000);
  });

  it("is in whole milliseconds, however long the runs were", () => {
    expect(ask(1, 4_807.514_878)).toBe(2_404);
  });

  it("is five seconds before anything was measured", () => {
    expect(ask(10)).toBe(5_000);
  });
});
