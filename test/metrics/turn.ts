import { setImmediate } from "node:timers/promises";

/** The most processor time that others had to wait for while something was done. */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let begun = process.threadCpuUsage();
  let isDone = false;
  const turn = (): void => {
    const { user, system } = process.threadCpuUsage(begun);
    longest = Math.max(longest, (user + system) / 1_000);
    begun = process.threadCpuUsage();
    if (!isDone) {
      globalThis.setImmediate(turn);
    }
  };
  globalThis.setImmediate(turn);
  await work();
  // The turn in which the work ended counts as well.
  await setImmediate();
  isDone = true;
  return longest;
}

/** The same, once more where it is not below the bound: a collection of garbage may fall into any turn. */
export async function longestTurnBelow(
  boundMs: number,
  work: () => Promise<unknown>,
): Promise<number> {
  const longestMs = await longestTurnMs(work);
  return longestMs < boundMs ? longestMs : longestTurnMs(work);
}
