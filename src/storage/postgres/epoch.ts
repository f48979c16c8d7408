/** The new epoch of a restored database. */
import { RESTORED } from "../../tasks/failure.ts";
import { endEarlierLife } from "../sql/epoch.ts";
import type { Storage } from "../storage.ts";
import { toAttempt } from "./attempts.ts";
import type { PostgresDatabase } from "./database.ts";
import { endAttempts } from "./end-attempt.ts";
import { run } from "./run-operation.ts";
import { STATUS } from "./schema.ts";
import { statement } from "./session.ts";

/** How long one statement of a restore may take on Postgres: it may delete all sessions of a large
 * platform. */
const EPOCH_STATEMENT_TIMEOUT_MS = 10 * 60_000;

/** Running attempts that one statement of a restore returns to the queue. */
const MAX_REQUEUED_ATTEMPTS = 1_000;

const UNHURRIED = statement(`SET LOCAL statement_timeout = ${EPOCH_STATEMENT_TIMEOUT_MS}`);

const RUNNING = statement(
  `SELECT deployment_id, task_id, lease_id, attempt FROM live_tasks
   WHERE status = ${STATUS.running} LIMIT ${MAX_REQUEUED_ATTEMPTS}`,
);

export function beginEpoch(
  db: PostgresDatabase,
  { nowMs }: Parameters<Storage["beginEpoch"]>[0],
): Promise<number> {
  const end = { status: "queued", failed: false, failure: RESTORED } as const;
  return db.transaction(async (session) => {
    await session.query(UNHURRIED);
    let requeued = 0;
    for (;;) {
      const attempts = (await session.query(RUNNING)).map(toAttempt);
      await endAttempts(
        session,
        attempts.map((attempt) => ({ attempt, end, nowMs })),
      );
      requeued += attempts.length;
      if (attempts.length < MAX_REQUEUED_ATTEMPTS) {
        break;
      }
    }
    await run(session, endEarlierLife());
    return requeued;
  }, EPOCH_STATEMENT_TIMEOUT_MS);
}
