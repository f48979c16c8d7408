import { expect, test } from "vitest";
import { SqliteDatabase } from "../../../src/storage/sqlite/database.ts";
import { OPERATIONS } from "../../../src/storage/sqlite/operations.ts";
import { DEPLOYMENT, NOW_MS, newTask } from "../fixtures.ts";

/** A database that says how it finds the tasks that it is asked for. */
class Explained extends SqliteDatabase {
  readonly plans: string[] = [];

  override get(sql: string, ...values: Parameters<SqliteDatabase["get"]>[1][]) {
    if (/FROM tasks/.test(sql)) {
      const steps = this.all(`EXPLAIN QUERY PLAN ${sql}`, ...values);
      this.plans.push(
        ...steps.map(({ detail }) => String(detail)).filter((each) => /tasks/.test(each)),
      );
    }
    return super.get(sql, ...values);
  }
}

test("what is due of one endpoint is not read to look at the others", () => {
  const db = new Explained(":memory:");
  const question = { deploymentId: DEPLOYMENT, nowMs: NOW_MS, limit: 1 };
  db.transaction(() => {
    OPERATIONS.submitTasks(db, { tasks: [newTask("a", { runAtMs: NOW_MS + 1 })] });
    db.plans.length = 0;
    OPERATIONS.countDue(db, question);
    OPERATIONS.oldestWaiting(db, question);
    OPERATIONS.survey(db, { nowMs: NOW_MS, deploymentIds: [DEPLOYMENT] });
  });
  const own = db.plans.filter((plan) => !/tasks_start_by/.test(plan));
  expect(own.length).toBeGreaterThan(5);
  for (const plan of own) {
    expect(plan).toMatch(/\(deployment_id=\? AND endpoint=\?/);
  }
  db.close();
});
