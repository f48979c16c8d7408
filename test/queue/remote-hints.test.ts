import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RemoteHints } from "../../src/queue/remote-hints.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function withWorkers(size: number, shared = true) {
  const hinted: string[] = [];
  const dispatcher = { hint: (endpoint: string) => void hinted.push(endpoint) };
  const remoteHints = new RemoteHints({ dispatcher, pool: { size }, shared });
  return { remoteHints, hinted };
}

it("looks for tasks at once where there are workers, or no other node", () => {
  for (const { remoteHints, hinted } of [withWorkers(1), withWorkers(0, false)]) {
    remoteHints.hint("work");
    expect(hinted).toEqual(["work"]);
  }
});

it("leaves tasks to the node that took them where a worker would have to be started", () => {
  const { remoteHints, hinted } = withWorkers(0);
  remoteHints.hint("work");
  remoteHints.hint("work");
  expect(hinted).toEqual([]);
  vi.advanceTimersByTime(3_000);
  expect(hinted).toEqual(["work"]);
  remoteHints.hint("work");
  remoteHints[Symbol.dispose]();
  vi.advanceTimersByTime(10_000);
  expect(hinted).toEqual(["work"]);
});
