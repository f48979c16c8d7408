/** Fires a schedule: its time is taken and its task stored by one transaction. */
import { correctTime, takeTime } from "../sql/hosting/schedules.ts";
import type { Fired, Firing } from "../storage.ts";
import { correctedTime, takenTime } from "../stored.ts";
import type { SqliteDatabase } from "./database.ts";
import { run } from "./run-operation.ts";
import { submitTask } from "./submit.ts";

export function fireSchedule(db: SqliteDatabase, firing: Firing): Fired | undefined {
  if (!run(db, takeTime(takenTime(firing)))) {
    return undefined;
  }
  const { end } = firing;
  if (end.outcome !== "task") {
    return { outcome: "none" };
  }
  const submitted = submitTask(db, end.task);
  const corrected = correctedTime(firing, submitted);
  if (corrected) {
    run(db, correctTime(corrected));
  }
  return submitted;
}
