import { describe, expect, test } from "vitest";
import { eventLog, type TaskEvent } from "../../src/tasks/event.ts";
import { isFinal, type Task, type TaskFailure } from "../../src/tasks/task.ts";

const QUEUED: Task = {
  deploymentId: "deployment-1",
  taskId: "a",
  endpoint: "work",
  status: "queued",
  priority: 0,
  createdAtMs: 100,
  runAtMs: 100,
  startByMs: undefined,
  startedAtMs: undefined,
  finishedAtMs: undefined,
  expiresAtMs: 1_000,
  attempt: 0,
  failedAttempts: 0,
  worker: undefined,
  returned: [],
  progress: undefined,
  retryOf: undefined,
  key: undefined,
  schedule: undefined,
  tags: undefined,
  failure: undefined,
  trace: undefined,
  lastSequence: 1,
};
const RUNNING: Task = {
  ...QUEUED,
  status: "running",
  startedAtMs: 110,
  attempt: 1,
  lastSequence: 2,
};
const FAILURE: TaskFailure = { reason: "timeout", code: "deadline_exceeded", message: "too slow" };

function state(status: Task["status"], changes: Partial<TaskEvent>): TaskEvent {
  return { sequence: 1, timeMs: 100, attempt: 0, body: { kind: "state", status }, ...changes };
}

function line(sequence: number): TaskEvent {
  const body = { kind: "log", level: "info", message: `line ${sequence}` } as const;
  return { sequence, timeMs: 115, attempt: 1, body };
}

const IS_QUEUED = state("queued", {});
const IS_RUNNING = state("running", { sequence: 2, timeMs: 110, attempt: 1 });

describe("the event log of a task", () => {
  test("begins when the task is queued", () => {
    expect(eventLog({ task: QUEUED, startedSequence: 0, stored: [] }, 0)).toEqual([IS_QUEUED]);
  });

  test("tells that the task runs", () => {
    const history = { task: RUNNING, startedSequence: 2, stored: [] };
    expect(eventLog(history, 0)).toEqual([IS_QUEUED, IS_RUNNING]);
  });

  test("has stored events at their place", () => {
    const task: Task = { ...RUNNING, status: "success", finishedAtMs: 120, lastSequence: 5 };
    const log = eventLog({ task, startedSequence: 2, stored: [line(3), line(4)] }, 0);
    const ended = state("success", { sequence: 5, timeMs: 120, attempt: 1 });
    expect(log).toEqual([IS_QUEUED, IS_RUNNING, line(3), line(4), ended]);
  });

  test("ends with the failure of a task that failed", () => {
    const task: Task = {
      ...RUNNING,
      status: "failure",
      finishedAtMs: 120,
      lastSequence: 3,
      failure: FAILURE,
    };
    const body = { kind: "state", status: "failure", failure: FAILURE } as const;
    const ended: TaskEvent = { sequence: 3, timeMs: 120, attempt: 1, body };
    expect(eventLog({ task, startedSequence: 2, stored: [] }, 2)).toEqual([ended]);
  });

  test("never shows a cancelled task running when it was not", () => {
    const task: Task = { ...QUEUED, status: "cancelled", finishedAtMs: 105, lastSequence: 2 };
    const ended = state("cancelled", { sequence: 2, timeMs: 105 });
    expect(eventLog({ task, startedSequence: 0, stored: [] }, 0)).toEqual([IS_QUEUED, ended]);
  });

  test("has the attempts before the current one from what was stored", () => {
    const back = state("queued", { sequence: 4, timeMs: 120, attempt: 1 });
    const task: Task = { ...QUEUED, startedAtMs: 110, attempt: 1, lastSequence: 4 };
    const stored = [IS_RUNNING, line(3), back];
    expect(eventLog({ task, startedSequence: 0, stored }, 0)).toEqual([IS_QUEUED, ...stored]);
    const again: Task = {
      ...task,
      status: "running",
      startedAtMs: 130,
      attempt: 2,
      lastSequence: 5,
    };
    const second = state("running", { sequence: 5, timeMs: 130, attempt: 2 });
    expect(eventLog({ task: again, startedSequence: 5, stored }, 0)).toEqual([
      IS_QUEUED,
      ...stored,
      second,
    ]);
  });

  test("answers only what comes after a sequence number", () => {
    const task: Task = { ...RUNNING, status: "success", finishedAtMs: 120, lastSequence: 4 };
    const after = (sequence: number) =>
      eventLog({ task, startedSequence: 2, stored: [line(3)] }, sequence).map(
        ({ sequence }) => sequence,
      );
    expect([0, 1, 2, 3, 4, 9].map(after)).toEqual([[1, 2, 3, 4], [2, 3, 4], [3, 4], [4], [], []]);
  });

  test("is complete when the task is final, and only then", () => {
    const statuses = ["queued", "running", "success", "failure", "cancelled"] as const;
    expect(statuses.filter(isFinal)).toEqual(["success", "failure", "cancelled"]);
  });
});
