import type { Log } from "../log/log.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import { Timer } from "../time/timer.ts";

/**
 * Expired rows of each kind of account data deleted in one transaction: bounds how long the
 * database is busy with it.
 */
const MAX_PRUNED_ACCOUNT_ROWS = 1_000;
/** Interval at which expired sessions, codes, invitations and tokens are deleted. */
const ACCOUNTS_PRUNE_INTERVAL_MS = 60_000;

/** Deletes sessions, codes and invitations that ended long ago. */
export function startAccountsPruner(options: {
  readonly accounts: Pick<Accounts, "pruneAccounts">;
  readonly log: Log;
  readonly now: () => number;
}): Timer {
  const { accounts, log, now } = options;
  const round = async (): Promise<void> => {
    while (
      (await accounts.pruneAccounts({ nowMs: now(), limit: MAX_PRUNED_ACCOUNT_ROWS })) >=
      MAX_PRUNED_ACCOUNT_ROWS
    ) {}
  };
  return new Timer(ACCOUNTS_PRUNE_INTERVAL_MS, round, (err) =>
    log.error({ err }, "what ended long ago could not be deleted from the accounts"),
  );
}
