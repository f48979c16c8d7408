import { describe, expect, it } from "vitest";
import { type TaskHistory, violations } from "./history.ts";

const run = { taskId: "t", attempt: 1, pid: 1, startedAtMs: 1, endedAtMs: 2 };
const events = (...states: readonly string[]) => {
  let attempt = 0;
  return states.map((status, index) => {
    attempt += status === "running" ? 1 : 0;
    return { sequence: index + 1, attempt, status };
  });
};
const good: TaskHistory = {
  taskId: "t",
  number: 7,
  status: "success",
  attempt: 1,
  events: events("queued", "running", "success"),
  result: { number: 7, taskId: "t", attempt: 1 },
  runs: [run],
  cancelled: false,
};
const again: TaskHistory = {
  ...good,
  attempt: 2,
  events: events("queued", "running", "queued", "running", "success"),
  result: { number: 7, taskId: "t", attempt: 2 },
  runs: [
    { ...run, endedAtMs: undefined },
    { ...run, attempt: 2 },
  ],
};

const kinds = (changes: Partial<TaskHistory>): string[] =>
  violations({ ...good, ...changes }).map(({ kind }) => kind);

describe("the check of a task's history", () => {
  it.each([
    ["a task that succeeded", good],
    ["one that lost a worker before", again],
    [
      "one that was cancelled before it began",
      {
        ...good,
        status: "cancelled",
        attempt: 0,
        events: events("queued", "cancelled"),
        result: undefined,
        runs: [],
        cancelled: true,
      },
    ],
  ])("finds nothing wrong with %s", (_, history) => {
    expect(violations(history)).toEqual([]);
  });

  it.each([
    ["is not there", { status: undefined }],
    ["never ended", { status: "running" }],
  ])("calls a task lost that %s", (_, changes) => {
    expect(kinds(changes)).toEqual(["lost"]);
  });

  it.each([
    ["has two ends in its log", { events: events("queued", "running", "success", "success") }],
    ["ran an attempt twice", { runs: [run, run] }],
    ["ran again after its end", { runs: [run, { ...run, attempt: 2 }] }],
    ["was said to be cancelled", { cancelled: true }],
  ])("says of a task that it ended twice when it %s", (_, changes) => {
    expect(kinds(changes)).toContain("ended twice");
  });

  it.each([
    ["the result of another task", { result: { number: 8, taskId: "t", attempt: 1 } }],
    ["a result that no run explains", { runs: [] }],
    ["a result of a run that did not end", { runs: [{ ...run, endedAtMs: undefined }] }],
    ["a log with a repeated number", { events: [...good.events, ...good.events.slice(2)] }],
    ["a log without its attempt", { events: events("queued", "success") }],
  ])("does not accept %s", (_, changes) => {
    expect(kinds(changes)).toContain("wrong");
  });
});
