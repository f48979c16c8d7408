/** Fires a schedule: its time is taken and its task stored by one transaction. */
import { correctTime, takeTime } from "../sql/hosting/schedules.ts";
import type { Fired, Firing } from "../storage.ts";
import { correctedTime, takenTime } from "../stored.ts";
import type { PostgresDatabase } from "./database.ts";
import { run } from "./run-operation.ts";
import { submitTasks } from "./submit.ts";

export function fireSchedule(db: PostgresDatabase, firing: Firing): Promise<Fired | undefined> {
  return db.transaction(async (session) => {
    if (!(await run(session, takeTime(takenTime(firing))))) {
      return undefined;
    }
    const { end } = firing;
    if (end.outcome !== "task") {
      return { outcome: "none" };
    }
    const [submitted] = await submitTasks(session, [end.task]);
    if (submitted === undefined) {
      throw new Error("nothing was answered for the task of a schedule");
    }
    const corrected = correctedTime(firing, submitted);
    if (corrected) {
      await run(session, correctTime(corrected));
    }
    return submitted;
  });
}
