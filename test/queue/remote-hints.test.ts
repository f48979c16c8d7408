import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { OthersFirst } from "../../src/queue/remote-hints.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function withWorkers(size: number, shared = true) {
  const hinted: string[] = [];
  const dispatcher = { hint: (endpoint: string) => void hinted.push(endpoint) };
  const othersFirst = new OthersFirst({ dispatcher, pool: { size }, shared });
  return { othersFirst, hinted };
}

it("looks for tasks at once where there are workers, or no other node", () => {
  for (const { othersFirst, hinted } of [withWorkers(1), withWorkers(0, false)]) {
    othersFirst.hint("work");
    expect(hinted).toEqual(["work"]);
  }
});

it("leaves tasks to the node that took them where a worker would have to be started", () => {
  const { othersFirst, hinted } = withWorkers(0);
  othersFirst.hint("work");
  othersFirst.hint("work");
  expect(hinted).toEqual([]);
  vi.advanceTimersByTime(3_000);
  expect(hinted).toEqual(["work"]);
  othersFirst.hint("work");
  othersFirst[Symbol.dispose]();
  vi.advanceTimersByTime(10_000);
  expect(hinted).toEqual(["work"]);
});
