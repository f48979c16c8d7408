/**
 * Runs work of which nobody knows how long it takes, such as matching text
 * against a pattern that somebody else wrote, and ends it when its time is up:
 * it holds up all that the node does. A regular expression is ended, too.
 *
 * A limit costs some 70 µs, because a thread watches the time
 * (https://nodejs.org/api/vm.html, `timeout`).
 */
import { createContext, Script } from "node:vm";

const pending: { work: () => void } = { work: () => {} };
const context = createContext(pending);
const script = new Script("work()");

/** What came of it in time; undefined when it was ended. Rethrows what the work throws. */
export function withinTime<Result>(
  limitMs: number,
  work: () => Result,
): { readonly result: Result } | undefined {
  let done: { readonly result: Result } | undefined;
  pending.work = () => {
    done = { result: work() };
  };
  try {
    script.runInContext(context, { timeout: limitMs });
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") {
      throw err;
    }
  } finally {
    pending.work = () => {};
  }
  return done;
}
