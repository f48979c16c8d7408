import type { Readiness } from "../health.ts";
import { Timer } from "../queue/timer.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";

const EVERY_MS = 2_000;

/** Keeps a node ready for as long as its database answers. The first answer is there when this is called. */
export function startProbe(options: {
  readonly accounts: Pick<Accounts, "listChanges">;
  readonly readiness: Readiness;
}): AsyncDisposable {
  const { accounts, readiness } = options;
  let ended = false;
  const set = (ready: boolean): void => readiness.set(ready && !ended);
  set(true);
  const ask = async (): Promise<void> => {
    await accounts.listChanges({ afterSequence: Number.MAX_SAFE_INTEGER, limit: 1 });
    set(true);
  };
  // The change feed tells the log that the database is away.
  const timer = new Timer(EVERY_MS, ask, () => set(false));
  return {
    async [Symbol.asyncDispose]() {
      ended = true;
      set(false);
      await timer[Symbol.asyncDispose]();
    },
  };
}
