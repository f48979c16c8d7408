import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { Changes } from "../../../src/queue/waits/changes.ts";
import { waitFor } from "../../../src/queue/waits/wait.ts";
import type { Task } from "../../../src/tasks/task.ts";

const QUEUED: Task = {
  deploymentId: "d",
  taskId: "t",
  endpoint: "e",
  status: "queued",
  priority: 0,
  runAtMs: 0,
  startByMs: undefined,
  createdAtMs: 0,
  startedAtMs: undefined,
  finishedAtMs: undefined,
  expiresAtMs: 1,
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
const DONE: Task = { ...QUEUED, status: "success" };

function waiting(options: {
  signal?: AbortSignal;
  waitMs?: number;
  read?: () => Task | Promise<Task>;
  endsOnly?: boolean;
}) {
  const changes = new Changes(1);
  const task = waitFor({
    changes,
    taskId: "t",
    waitMs: options.waitMs ?? 60_000,
    signal: options.signal,
    endsOnly: options.endsOnly ?? false,
    read: options.read ?? (() => Promise.resolve(QUEUED)),
    enough: ({ status }) => status === "success",
  });
  return { changes, task };
}

/** True when nobody listens: the one place there is can be taken. */
function isFree(changes: Changes): boolean {
  try {
    changes.listen("t", { onChange() {}, onClose() {} })();
    return true;
  } catch {
    return false;
  }
}

describe("waiting for a task", () => {
  test("for its end, does not read it at changes that are no end", async () => {
    let [reads, now] = [0, QUEUED];
    const read = () => {
      reads += 1;
      return now;
    };
    const { changes, task } = waiting({ endsOnly: true, read });
    changes.hear({ taskId: "t", live: true });
    changes.announceMore("t");
    changes.publish("t", { ...QUEUED, status: "running" });
    expect(reads).toBe(1);
    now = DONE;
    changes.hear({ taskId: "t" });
    expect([await task, reads]).toEqual([DONE, 2]);
  });

  test("ends when its time is over, also one that begins while the node shuts down", async () => {
    const { task } = waiting({ waitMs: 1 });
    expect(await task).toBe(QUEUED);
    const changes = new Changes(1);
    changes.close();
    const enough = () => false;
    const late = { changes, taskId: "t", waitMs: 1, signal: undefined, read: () => QUEUED, enough };
    expect(await waitFor(late)).toBe(QUEUED);
  });

  test("ends with the change that was waited for", async () => {
    const { changes, task } = waiting({});
    changes.publish("t", QUEUED);
    changes.publish("t", DONE);
    expect(await task).toBe(DONE);
    expect(isFree(changes)).toBe(true);
  });

  test.each([
    ["that is read", () => Promise.resolve(DONE)],
    ["that is known at once", () => DONE],
  ])("notices a change %s, which came before it had looked", async (_, read) => {
    const { changes, task } = waiting({ read });
    expect(await task).toBe(DONE);
    expect(isFree(changes)).toBe(true);
  });

  test("ends when its time is over, with the task as it is", async () => {
    const { changes, task } = waiting({ waitMs: 1 });
    expect(await task).toBe(QUEUED);
    expect(isFree(changes)).toBe(true);
  });

  test("ends when the caller goes", async () => {
    const caller = new AbortController();
    const { changes, task } = waiting({ signal: caller.signal });
    caller.abort();
    expect(await task).toBe(QUEUED);
    expect(isFree(changes)).toBe(true);
  });

  test("ends with the others of the same connection, but not twice", async () => {
    const connection = new AbortController();
    const { signal } = connection;
    const reads: string[] = [];
    const wait = (name: string) =>
      waiting({
        signal,
        read() {
          reads.push(name);
          return QUEUED;
        },
      });
    const ended = wait("ended");
    ended.changes.publish("t", DONE);
    expect(await ended.task).toBe(DONE);
    const [one, other] = [wait("one"), wait("other")];
    expect(getEventListeners(signal, "abort").length).toBe(1);
    connection.abort();
    expect(await Promise.all([one.task, other.task])).toEqual([QUEUED, QUEUED]);
    expect([one, other].map(({ changes }) => isFree(changes))).toEqual([true, true]);
    expect(reads).toEqual(["ended", "one", "other", "one", "other"]);
  });

  test("does not begin for a caller who has already gone", async () => {
    const { changes, task } = waiting({ signal: AbortSignal.abort() });
    expect(await task).toBe(QUEUED);
    expect(isFree(changes)).toBe(true);
  });

  test("ends with SHUTTING_DOWN when the node stops", async () => {
    const { changes, task } = waiting({});
    changes.close();
    await expect(task).rejects.toMatchObject({ reason: "SHUTTING_DOWN" });
    expect(isFree(changes)).toBe(true);
  });

  test("is refused when as many wait as may", async () => {
    const { changes, task } = waiting({});
    expect(() => changes.listen("other", { onChange() {}, onClose() {} })).toThrow(
      /already waiting/,
    );
    changes.publish("t", DONE);
    await task;
  });
});
