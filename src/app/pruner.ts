import type { Log } from "../log/log.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import { Timer } from "../time/timer.ts";

/** Rows of each kind deleted at once: bounds how long the database is busy with it. */
const LIMIT = 1_000;
const EVERY_MS = 60_000;

/** Deletes sessions, codes and invitations that ended long ago. */
export function startAccountsPruner(options: {
  readonly accounts: Pick<Accounts, "pruneAccounts">;
  readonly log: Log;
  readonly now: () => number;
}): Timer {
  const { accounts, log, now } = options;
  const round = async (): Promise<void> => {
    while ((await accounts.pruneAccounts({ nowMs: now(), limit: LIMIT })) >= LIMIT) {}
  };
  return new Timer(EVERY_MS, round, (err) =>
    log.error({ err }, "what ended long ago could not be deleted from the accounts"),
  );
}
