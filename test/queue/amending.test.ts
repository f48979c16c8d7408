import { expect, it } from "vitest";
import { problem } from "../../src/errors.ts";
import { Amending } from "../../src/queue/amending.ts";
import { notFound, type Tasks } from "../../src/queue/tasks.ts";
import type { Changes } from "../../src/queue/waits/changes.ts";
import type { DeleteOutcome } from "../../src/storage/storage.ts";
import type { TaskStatus } from "../../src/tasks/task.ts";

/** Deletes the task "a", whose deletions the storage answers one after the other. */
function amending(status: TaskStatus, answers: readonly (DeleteOutcome | Error)[]) {
  const left = [...answers];
  const forgotten: string[] = [];
  const published: string[] = [];
  const stopped: string[] = [];
  const amending = new Amending({
    deploymentId: "deployment-1",
    storage: {
      deleteTasks: async () => {
        const answer = left.shift();
        if (answer instanceof Error || answer === undefined) {
          throw answer;
        }
        return [answer];
      },
      updateTask: async () => undefined,
    },
    maintenance: { expirer: { expect() {} } },
    now: () => 0,
    tasks: {
      find: async () => {
        if (forgotten.length > 0) {
          throw notFound("a", {}, 0);
        }
        return { taskId: "a", status };
      },
      forget: (taskId: string) => void forgotten.push(taskId),
    } as unknown as Tasks,
    changes: { publish: (taskId: string) => void published.push(taskId) } as unknown as Changes,
    queue: {
      submit: () => Promise.reject(new Error("nothing is submitted here")),
      cancel: async ({ taskId }) => void stopped.push(taskId),
      requeued() {},
    },
  });
  return { amending, forgotten, published, stopped };
}

it("stops a task that was started before it could be deleted, if it is asked to", async () => {
  const raced = amending("queued", ["running", "deleted"]);
  await raced.amending.delete({ taskId: "a" }, true);
  expect(raced.stopped).toEqual(["a"]);
  const asked = amending("queued", ["running"]);
  await expect(asked.amending.delete({ taskId: "a" }, false)).rejects.toMatchObject({
    reason: "TASK_ALREADY_STARTED",
  });
  expect([asked.stopped, asked.forgotten]).toEqual([[], []]);
});

it("asks to stop a running task first", async () => {
  const running = amending("running", ["deleted"]);
  await running.amending.delete({ taskId: "a" }, true);
  expect(running.stopped).toEqual(["a"]);
});

it("says that somebody else has deleted a task meanwhile", async () => {
  const { amending: amended } = amending("success", ["not_found"]);
  await expect(amended.delete({ taskId: "a" }, false)).rejects.toThrow("was deleted on");
});

it("answers nobody from memory when it is not known whether the task was deleted", async () => {
  const lost = problem("STORAGE_UNAVAILABLE", "the connection broke");
  const { amending: amended, forgotten, published } = amending("success", [lost, "not_found"]);
  await expect(amended.delete({ taskId: "a" }, false)).rejects.toBe(lost);
  expect([forgotten, published]).toEqual([["a"], ["a"]]);
  // One that another call has deleted, whose hint did not come.
  expect(await amended.deleteAll(["b"])).toEqual(["not_found"]);
  expect([forgotten, published]).toEqual([
    ["a", "b"],
    ["a", "b"],
  ]);
});
