/**
 * A time limit for synchronous work of unknown cost, such as matching a user's
 * regular expression, which would block the whole node. Work that exceeds it is
 * terminated, even inside a regular expression.
 *
 * A limit costs some 70 µs, because a thread watches the time
 * (https://nodejs.org/api/vm.html, `timeout`).
 */
import { createContext, Script } from "node:vm";

const pending: { work: () => void } = { work: () => {} };
const context = createContext(pending);
const script = new Script("work()");

/** The result of the work; undefined when it was terminated. Rethrows what the work throws. */
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
