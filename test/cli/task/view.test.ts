import { describe, expect, it } from "vitest";
import { eventText, stateJson, stateText } from "../../../src/cli/task/view.ts";
import type { TaskLogEvent } from "../../../src/client/index.ts";
import { readEvent, readState } from "../../../src/client/state.ts";

const FLAKY = { reason: "error", code: "internal", message: "flaky" };
const AT = "2026-01-31T12:00:00Z";

it("an event says why an attempt went back to the queue, and when the next may start", () => {
  const said = (state: object): string => {
    const event = readEvent({ sequence: 3, time: AT, attempt: 1, state });
    return event ? eventText(event) : "";
  };
  expect(said({ status: "queued", failure: FLAKY, retry_at: "2026-01-31T12:00:03Z" })).toBe(
    "2026-01-31T12:00:00.000Z  queued: attempt 1 failed: flaky (error); next at 2026-01-31 12:00:03Z",
  );
  const stopped = { reason: "interrupted", code: "unavailable", message: "the node was stopped" };
  expect(said({ status: "queued", failure: stopped })).toBe(
    "2026-01-31T12:00:00.000Z  queued: attempt 1 was interrupted: the node was stopped (interrupted)",
  );
  expect(said({ status: "queued" })).toBe("2026-01-31T12:00:00.000Z  queued");
});

it("a task is shown with each attempt that failed, and without what a terminal would obey", () => {
  const attempt = { worker: "host/w", node: "host", started_at: AT, ended_at: AT };
  const text = stateText(
    readState({
      task_id: "a",
      status: "running",
      created_at: AT,
      attempt: 2,
      attempts: [
        { ...attempt, number: 1, failure: { ...FLAKY, message: "fl\u001b[2Jaky" }, retry_at: null },
        { ...attempt, number: 2, ended_at: null, failure: null, retry_at: null },
      ],
    }),
  );
  expect(text).toContain("\n2026-01-31 12:00:00Z  attempt 1 failed: fl");
  expect(text).toContain("on host");
  expect(text).not.toContain("\u001b");
  expect(text).not.toContain("attempt 2");
});

it("a task that is queued is shown with the reason", () => {
  const queued = { task_id: "a", status: "queued", created_at: AT };
  const message = "its worker is busy; 3 tasks are before it";
  const state = readState({ ...queued, queued_reason: { code: "workers_busy", message } });
  expect(stateText(state)).toContain(`queued because`);
  expect(stateText(state)).toContain(message);
  expect(stateJson(state)).toMatchObject({ queued_reason: { code: "workers_busy", message } });
});

it("a task of a server that tells no attempts is shown as before", () => {
  const state = readState({ task_id: "a", status: "queued", created_at: AT });
  expect(state.attempts).toEqual([]);
  expect(stateText(state)).not.toContain("attempt");
});

const line = (number: number, attempt = 1): TaskLogEvent => ({
  sequence: number,
  time: new Date("2026-01-02T03:04:05Z"),
  attempt,
  type: "log",
  level: "info",
  message: `line ${number}`,
  fields: {},
  line: number,
});

describe("a line of a task's log", () => {
  it("follows how many are left out since the one before", () => {
    expect(eventText(line(201), line(200))).toBe("2026-01-02T03:04:05.000Z  info: line 201");
    expect(eventText(line(1_501), line(200))).toBe(
      "… 1300 lines left out …\n2026-01-02T03:04:05.000Z  info: line 1501",
    );
  });

  it("misses none at the beginning of an attempt, and where lines have no numbers", () => {
    expect(eventText(line(900))).not.toContain("left out");
    expect(eventText(line(1, 2), line(900))).not.toContain("left out");
    expect(eventText({ ...line(5), line: 0 } as TaskLogEvent, line(1))).not.toContain("left out");
  });
});
