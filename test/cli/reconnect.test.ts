import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { followStream, type StreamProgress } from "../../src/cli/reconnect.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("follows anew, without a word, a stream that has begun and is quiet for a minute", async () => {
  const done: string[] = [];
  const clock = { now: () => Date.now(), wait: async () => {} };
  const reads: StreamProgress[] = [];
  const gone = Promise.withResolvers<void>();
  const following = followStream(
    { clock, done: (text) => void done.push(text) },
    new AbortController().signal,
    async (progress) => {
      reads.push(progress);
      if (reads.length === 3) {
        return true;
      }
      progress.onHeader();
      await new Promise((_, reject) => {
        progress.signal.addEventListener("abort", () => reject(progress.signal.reason));
      });
      return false;
    },
  ).then(gone.resolve);
  await vi.advanceTimersByTimeAsync(59_000);
  reads[0]?.onMessage();
  await vi.advanceTimersByTimeAsync(59_000);
  expect(reads).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(reads).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(60_000);
  await following;
  expect([reads.length, done]).toEqual([3, []]);
});
