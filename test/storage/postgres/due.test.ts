import pg from "pg";
import { expect, test } from "vitest";
import { connectionConfig } from "../../../src/storage/postgres/connection.ts";
import { PREPARED } from "../../../src/storage/postgres/session.ts";
import { DEPLOYMENT, NOW_MS } from "../fixtures.ts";
import { databaseUrl, newSchema, openPostgres } from "./databases.ts";

interface Plan {
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** Rows that were read and then not wanted. */
function wasted(plan: Plan): number {
  const own = (plan["Rows Removed by Filter"] ?? 0) * plan["Actual Loops"];
  return (plan.Plans ?? []).reduce((sum, each) => sum + wasted(each), own);
}

const QUEUE = 5_000;

/** What is due of one endpoint, and one task of each of twenty others that is to start tomorrow. */
const FILL = `
  INSERT INTO live_tasks (deployment_id, task_id, endpoint, status, priority, run_at_ms,
    created_at_ms, expires_at_ms, retention_ms, attempt, started_sequence, last_sequence)
  SELECT '${DEPLOYMENT}', 'due-' || n, 'full', 0, 0, ${NOW_MS} - 1, 0, 0, 0, 0, 0, 1
  FROM generate_series(1, ${QUEUE}) AS n
  UNION ALL
  SELECT '${DEPLOYMENT}', 'later-' || n, 'e' || n, 0, 0, ${NOW_MS} + 86400000, 0, 0, 0, 0, 0, 1
  FROM generate_series(1, 20) AS n;
  INSERT INTO queue_counts SELECT '${DEPLOYMENT}', endpoint, count(*), 0
  FROM live_tasks GROUP BY endpoint`;

const VALUES = {
  survey: `NULL, ${NOW_MS}, '{${DEPLOYMENT}}', NULL, 0, ${NOW_MS}`,
  count_due: `'${DEPLOYMENT}', ${NOW_MS}, 1`,
  queue_states: `'{${DEPLOYMENT}}', ${NOW_MS}`,
  queue_position: `'${DEPLOYMENT}', 'later-1', ${NOW_MS} + 86400000, 10`,
  promote_tasks: `'${DEPLOYMENT}', ${NOW_MS}, '{e1}'`,
  promote_tasks_by_key: `'${DEPLOYMENT}', ${NOW_MS}, '{e1}'`,
};

// Plans are kept: also those that were made while the queue was empty, or before anybody counted.
test.each(["never analyzed", "analyzed while empty", "analyzed"])(
  "what is due of one endpoint is not read to look at the others (%s)",
  async (statistics) => {
    const schema = newSchema();
    await using _ = await openPostgres({ schema });
    const url = await databaseUrl();
    const client = new pg.Client(
      connectionConfig({ url, schema, connections: 1, timeoutMs: 30_000 }),
    );
    await client.connect();
    try {
      await client.query("ALTER TABLE live_tasks SET (autovacuum_enabled = off)");
      await client.query("SET plan_cache_mode = force_generic_plan");
      await client.query(statistics === "analyzed while empty" ? "ANALYZE live_tasks" : FILL);
      if (statistics === "analyzed") {
        await client.query("ANALYZE live_tasks");
      }
      const read: Record<string, number> = {};
      for (const [name, values] of Object.entries(VALUES)) {
        await client.query(`PREPARE ${name} AS ${PREPARED.get(name)?.text}`);
        await client.query(`EXECUTE ${name}(${values})`);
      }
      if (statistics === "analyzed while empty") {
        await client.query(FILL);
      }
      for (const [name, values] of Object.entries(VALUES)) {
        const explained = `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE ${name}(${values})`;
        const { rows } = await client.query(explained);
        read[name] = wasted(rows[0]["QUERY PLAN"][0].Plan);
      }
      for (const [name, rows] of Object.entries(read)) {
        expect(rows, name).toBeLessThan(100);
      }
    } finally {
      await client.end();
    }
  },
);
