/**
 * graphile-worker, with the batching that its page on performance advises.
 * It keeps no results, so they go into a table of their own. The worker runs
 * in this process, which spares it a message per result.
 */
import { randomUUID } from "node:crypto";
import { run } from "graphile-worker";
import pg from "pg";
import { nowMs, Results, serve } from "./routes.ts";

const [connectionString = ""] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString, max: 20 });
await pool.query("CREATE TABLE results (id uuid PRIMARY KEY, result jsonb NOT NULL)");

const results = new Results();
const runner = await run({
  preset: {
    worker: {
      connectionString,
      concurrentJobs: 64,
      maxPoolSize: 30,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  noHandleSignals: true,
  taskList: {
    async noop(payload) {
      const { id } = payload as { id: string };
      const result = JSON.stringify(nowMs());
      await pool.query({
        name: "result",
        text: "INSERT INTO results (id, result) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        values: [id, result],
      });
      results.finish(id, result);
    },
  },
});
await serve({
  wait: (id, waitMs) => results.wait(id, waitMs),
  async submit(input) {
    const id = randomUUID();
    await runner.addJob("noop", { id, input }, { maxAttempts: 3 });
    return id;
  },
  async close() {
    await runner.stop();
    await pool.end();
  },
});
