/**
 * A time limit for synchronous work of unknown cost, such as matching a user's
 * regular expression, which would block the whole node. Work that exceeds it is
 * terminated, even inside a regular expression.
 *
 * Only processor time counts: on a busy machine, time that passes says nothing about the work.
 * Work that was terminated while others had the processor begins again, a few times.
 *
 * A limit costs some 70 µs, because a thread watches the time
 * (https://nodejs.org/api/vm.html, `timeout`).
 */
import { createContext, Script } from "node:vm";

/** How often work begins while others have the processor. */
const MAX_ATTEMPTS = 10;

const pending: { work: () => void } = { work: () => {} };
const context = createContext(pending);
const script = new Script("work()");

/**
 * The result of the work; undefined when it takes too long. Rethrows what the work throws.
 *
 * @param work is done from its beginning each time, and changes nothing.
 */
export function withinTime<Result>(
  limitMs: number,
  work: () => Result,
): { readonly result: Result } | undefined {
  let done: { readonly result: Result } | undefined;
  pending.work = () => {
    done = { result: work() };
  };
  const before = process.threadCpuUsage();
  try {
    let attempts = 0;
    do {
      attempt(limitMs);
      attempts += 1;
      // Half: time that passes is always a little more than the processor has worked.
    } while (done === undefined && attempts < MAX_ATTEMPTS && processorMs(before) < limitMs / 2);
  } finally {
    pending.work = () => {};
  }
  return done;
}

function attempt(limitMs: number): void {
  try {
    script.runInContext(context, { timeout: limitMs });
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") {
      throw err;
    }
  }
}

/** Processor time that this thread has had since. */
function processorMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
