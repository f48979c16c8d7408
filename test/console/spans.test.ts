import { describe, expect, it } from "vitest";
import { alikeText, spansOf, timingText } from "../../src/console/app/pages/tasks/spans.ts";
import { attemptsOf, returnedAttempt, withReturned } from "../../src/tasks/attempt.ts";
import type { ReturnedAttempt, Task } from "../../src/tasks/task.ts";

/** A time, so many seconds after the submit. */
const at = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** Each span with its seconds. */
const shown = (task: Parameters<typeof spansOf>[0], now: number) =>
  spansOf(task, now * 1_000).map(({ kind, fromMs, toMs, isOpen }) => [
    kind,
    fromMs / 1_000,
    toMs / 1_000,
    isOpen,
  ]);

const failure = { reason: "FAILURE_REASON_ERROR" as const, message: "no" };

describe("the timing of a task in words", () => {
  const told = (task: Parameters<typeof spansOf>[0]): string => timingText(spansOf(task, 100_000));

  it("is its wait and its run where one attempt was enough", () => {
    const attempts = [{ number: 1, startedAt: at(0), endedAt: at(0.312) }];
    expect(told({ createdAt: at(0), finishedAt: at(0.312), attempts })).toBe(
      "Queued 0 ms · ran 312 ms",
    );
  });

  it("sums what its attempts and the pauses between them took", () => {
    const attempts = [
      { number: 1, startedAt: at(1), endedAt: at(2), failure, retryAt: at(4) },
      { number: 2, startedAt: at(6), endedAt: at(9) },
    ];
    expect(told({ createdAt: at(0), finishedAt: at(9), attempts })).toBe(
      "Queued 3 s · ran 4 s in 2 attempts · backoff 2 s",
    );
  });

  it("says what goes on, and what has not begun", () => {
    const attempts = [{ number: 1, startedAt: at(40) }];
    expect(told({ createdAt: at(0), attempts })).toBe("Queued 40 s · running for 1 min");
    expect(told({ createdAt: at(70) })).toBe("Queued for 30 s");
    expect(told({ createdAt: at(70), runAt: at(160) })).toBe("Waiting for 30 s");
  });
});

describe("the spans of a task", () => {
  it("are its wait, each attempt, and the pauses between", () => {
    const task = {
      createdAt: at(0),
      finishedAt: at(9),
      attempts: [
        { number: 1, startedAt: at(1), endedAt: at(2), failure, retryAt: at(4) },
        { number: 2, startedAt: at(6), endedAt: at(9) },
      ],
    };
    expect(shown(task, 100)).toEqual([
      ["queued", 0, 1, false],
      ["attempt", 1, 2, false],
      ["pause", 2, 4, false],
      ["queued", 4, 6, false],
      ["attempt", 6, 9, false],
    ]);
  });

  it("end now where they go on", () => {
    const task = { createdAt: at(0), attempts: [{ number: 1, startedAt: at(1) }] };
    expect(shown(task, 5)).toEqual([
      ["queued", 0, 1, false],
      ["attempt", 1, 5, true],
    ]);
    expect(shown({ createdAt: at(0) }, 5)).toEqual([["queued", 0, 5, true]]);
    const failed = {
      createdAt: at(0),
      attempts: [{ number: 1, startedAt: at(0), endedAt: at(2), failure, retryAt: at(9) }],
    };
    expect(shown(failed, 5).at(-1)).toEqual(["pause", 2, 5, true]);
    expect(shown(failed, 12).slice(-2)).toEqual([
      ["pause", 2, 9, false],
      ["queued", 9, 12, true],
    ]);
  });

  it("of a task for later begin with its time", () => {
    const task = { createdAt: at(0), runAt: at(8) };
    expect(shown(task, 5)).toEqual([["scheduled", 0, 5, true]]);
    expect(shown(task, 10)).toEqual([
      ["scheduled", 0, 8, false],
      ["queued", 8, 10, true],
    ]);
  });

  it("tell of the attempts that are not kept", () => {
    const task = {
      createdAt: at(0),
      finishedAt: at(1_000),
      attempts: [
        { number: 5, startedAt: at(4), endedAt: at(5), failure, retryAt: at(6) },
        { number: 986, startedAt: at(900), endedAt: at(1_000), failure },
      ],
    };
    const spans = spansOf(task, 0);
    expect(spans.map(({ kind, leftOut }) => leftOut ?? kind)).toEqual([
      4,
      "attempt",
      980,
      "attempt",
    ]);
  });

  it("of a task with 1,000 attempts are those that the platform keeps of it, and what is between", () => {
    const failure = { reason: "error", code: "internal", message: "no".repeat(2_000) } as const;
    let returned: readonly ReturnedAttempt[] = [];
    for (let number = 1; number < 1_000; number += 1) {
      const peakMemoryBytes = Number.MAX_SAFE_INTEGER;
      const times = { nowMs: number * 2 + 1, runAtMs: undefined };
      const facts = { number, worker: "w", ...times, failure, peakMemoryBytes };
      const record = { startedAtMs: number * 2, ...returnedAttempt(facts) };
      returned = withReturned(returned, record);
    }
    expect(JSON.stringify(returned).length).toBeLessThan(32_768);
    const task = { attempt: 1_000, startedAtMs: 2_000, finishedAtMs: 2_001, status: "failure" };
    const attempts = attemptsOf({ ...task, worker: "w", returned } as unknown as Task);
    const spans = spansOf(
      {
        ...{ createdAt: at(0), finishedAt: at(2_001) },
        attempts: attempts.map(({ number, startedAtMs, endedAtMs = 0 }) => ({
          ...{ number, startedAt: at(startedAtMs), endedAt: at(endedAtMs) },
        })),
      },
      0,
    );
    const numbers = attempts.map(({ number }) => number);
    expect([numbers.length, numbers[4], numbers[5], numbers.at(-1)]).toEqual([21, 5, 985, 1_000]);
    expect(spans.flatMap(({ leftOut }) => leftOut ?? [])).toEqual([979]);
    expect(spans.filter(({ kind }) => kind === "attempt")).toHaveLength(21);
  });

  it("of a task that never started are its wait until its end", () => {
    expect(shown({ createdAt: at(0), finishedAt: at(3) }, 50)).toEqual([["queued", 0, 3, false]]);
  });
});

it("an error of all attempts is told once, and that some are not shown", () => {
  const attempt = (number: number, message: string) => ({ number, failure: { message } });
  const [first, second] = [attempt(1, "no disk"), attempt(2, "no disk")];
  expect(alikeText({ attempts: [first, second] })).toBe("All 2 attempts:");
  expect(alikeText({ attempts: [first, attempt(9, "no disk")] })).toBe("All 2 shown attempts:");
  expect(alikeText({ attempts: [first, attempt(2, "no room")] })).toBe("");
  expect(alikeText({ attempts: [first] })).toBe("");
});
