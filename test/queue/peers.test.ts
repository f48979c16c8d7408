import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Peers } from "../../src/queue/peers.ts";
import type { Hint, Notifier } from "../../src/storage/notifier.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function withWorkers(size: number, shared = true) {
  const hinted: string[] = [];
  const peers = new Peers({
    tasks: { forget() {}, forgetAll() {} },
    deploymentId: "deployment-1",
    storage: { requestAbort: () => Promise.resolve(undefined) },
    notifier: shared ? ({ subscribe: () => () => {} } as unknown as Notifier) : undefined,
    pool: { size },
    onQueued: (endpoint) => void hinted.push(endpoint),
    onLost() {},
    onChanged() {},
    onAbort() {},
  });
  return { peers, hinted };
}

it("looks for tasks at once where there are workers, or no other node", () => {
  for (const { peers, hinted } of [withWorkers(1), withWorkers(0, false)]) {
    peers.queued("work");
    expect(hinted).toEqual(["work"]);
  }
});

it("leaves tasks to the node that took them where a worker would have to be started", () => {
  const { peers, hinted } = withWorkers(0);
  peers.queued("work");
  peers.queued("work");
  expect(hinted).toEqual([]);
  vi.advanceTimersByTime(3_000);
  expect(hinted).toEqual(["work"]);
  peers.queued("work");
  peers[Symbol.dispose]();
  vi.advanceTimersByTime(10_000);
  expect(hinted).toEqual(["work"]);
});

it("forgets a task that another node may have deleted, and all of them when hints were lost", () => {
  const forgotten: string[] = [];
  const tell: ((hint: Hint) => void)[] = [];
  using _peers = new Peers({
    deploymentId: "deployment-1",
    tasks: {
      forget: (taskId) => void forgotten.push(taskId),
      forgetAll: () => void forgotten.push("all"),
    },
    storage: { requestAbort: () => Promise.resolve(undefined) },
    notifier: {
      subscribe(listener: (hint: Hint) => void) {
        tell.push(listener);
        return () => {};
      },
    } as unknown as Notifier,
    pool: { size: 1 },
    onQueued() {},
    onLost: () => void forgotten.push("keys"),
    onChanged: ({ taskId }) => expect(forgotten).toEqual([taskId]),
    onAbort() {},
  });
  tell[0]?.({ kind: "changed", taskId: "a" });
  tell[0]?.({ kind: "abort", taskId: "b" });
  tell[0]?.({ kind: "look" });
  expect(forgotten).toEqual(["a", "all", "keys"]);
});
