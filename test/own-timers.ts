/**
 * Fake timers of one test, which counts its own. Test files share a process: what an earlier file has
 * left sets timers meanwhile, and `vi.getTimerCount()` counts those, too.
 */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { vi } from "vitest";

/** The timeouts of the test that runs: whatever it calls, and what that calls later, has its context. */
const running = new AsyncLocalStorage<Set<unknown>>();

/** A test on fake timers. `left` says how many of the timeouts that it has set are still to come. */
export function onOwnTimers(
  test: (left: () => number) => void | Promise<void>,
): () => Promise<void> {
  return async () => {
    // No others: they would lose the context in which they were set.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const own = new Set<unknown>();
    const { setTimeout: set, clearTimeout: clear } = globalThis;
    globalThis.setTimeout = ((callback: (...args: unknown[]) => void, ...rest: unknown[]) => {
      const call = AsyncResource.bind((...args: unknown[]) => {
        own.delete(timer);
        callback(...args);
      });
      const timer = set(call, ...(rest as [number]));
      running.getStore()?.add(timer);
      return timer;
    }) as typeof set;
    globalThis.clearTimeout = (timer) => {
      own.delete(timer);
      clear(timer);
    };
    try {
      await running.run(own, () => test(() => own.size));
    } finally {
      vi.useRealTimers();
    }
  };
}
