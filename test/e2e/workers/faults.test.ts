/** A short run of what `npm run faults` does for long, and what its checker finds. */
import { describe, expect, it } from "vitest";
import { judge, type TaskRecord } from "./faults/checker.ts";
import type { Run } from "./faults/ledger.ts";
import { runFaults } from "./faults/rounds.ts";

const SHORT = { silenceMs: 3_000, recoveryMs: 60_000 };

it("loses no task, ends none twice and runs none at once in 20 rounds of faults", async () => {
  const figures = await runFaults({ ...SHORT, rounds: 20, seed: 21 });
  expect(figures).toMatchObject({ lost: [], endedTwice: [], overlaps: [] });
  expect(figures.acknowledged).toBeGreaterThan(20);
}, 240_000);

describe("the checker of faults", () => {
  it.each([
    ["finds tasks that ran at once, when agents that are cut off ignore their fence", true, 40],
    ["finds none when they heed it", false, 6],
  ])(
    "%s",
    async (_, isUnfenced, rounds) => {
      const only = "silence of one";
      const { overlaps } = await runFaults({ ...SHORT, rounds, seed: 7, only, isUnfenced });
      expect(overlaps.length > 0, overlaps.join()).toBe(isUnfenced);
    },
    480_000,
  );

  const run = (name: string, beganMs: number, lastMs: number, hasEnded = true): Run => ({
    ...{ run: name, taskId: "t", attempt: 1, pid: 1, beganMs, lastMs, hasEnded },
  });
  const success = (name: string) =>
    ({ kind: "success", text: JSON.stringify({ run: name, attempt: 1 }) }) as const;
  const gaveUp = { kind: "gave_up", text: "worker_lost" } as const;
  const fine = { isLost: false, isEndedTwice: false, overlapsMs: [] };

  it.each<[string, Omit<TaskRecord, "taskId">, object]>([
    [
      "nothing wrong with a task that ran twice, one after the other",
      {
        before: success("b"),
        outcome: success("b"),
        runs: [run("a", 0, 500, false), run("b", 1_000, 2_000)],
      },
      fine,
    ],
    ["a loss", { before: undefined, outcome: undefined, runs: [] }, { ...fine, isLost: true }],
    [
      "an end that changed",
      {
        before: success("a"),
        outcome: success("b"),
        runs: [run("a", 0, 500), run("b", 1_000, 2_000)],
      },
      { ...fine, isEndedTwice: true },
    ],
    [
      "a success that was given up later",
      { before: success("a"), outcome: gaveUp, runs: [run("a", 0, 500)] },
      { ...fine, isEndedTwice: true },
    ],
    [
      "an end of a run that never ended",
      { before: undefined, outcome: success("a"), runs: [run("a", 0, 500, false)] },
      { ...fine, isEndedTwice: true },
    ],
    [
      "an end of a run that nobody heard of",
      { before: undefined, outcome: success("x"), runs: [run("a", 0, 500)] },
      { ...fine, isEndedTwice: true },
    ],
    [
      "an overlap with the run before, and with the one before that",
      {
        before: undefined,
        outcome: success("c"),
        runs: [run("a", 0, 3_000, false), run("b", 1_000, 1_500, false), run("c", 2_000, 4_000)],
      },
      { ...fine, overlapsMs: [2_000, 1_000] },
    ],
  ])("finds %s", (_, record, verdict) => {
    expect(judge({ taskId: "t", ...record })).toEqual(verdict);
  });
});
