/** The new epoch of a restored database. */
import { RESTORED } from "../../tasks/failure.ts";
import { endEarlierLife } from "../sql/epoch.ts";
import type { Storage } from "../storage.ts";
import { attemptsOfAll } from "./attempts.ts";
import type { SqliteDatabase } from "./database.ts";
import { endAttempt } from "./end-attempt.ts";
import { run } from "./run-operation.ts";
import { unmark } from "./serving-mark.ts";

export function beginEpoch(
  db: SqliteDatabase,
  { nowMs }: Parameters<Storage["beginEpoch"]>[0],
): number {
  db.openLeases.clear();
  const attempts = attemptsOfAll(db);
  for (const attempt of attempts) {
    endAttempt(db, { nowMs, attempt, end: { status: "queued", failed: false, failure: RESTORED } });
  }
  run(db, endEarlierLife());
  unmark(db);
  return attempts.length;
}
