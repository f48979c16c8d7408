/**
 * pg-boss with its shortest polling interval, fetching in batches and settling
 * each job of a batch with its own output; with the argument `notify`, woken by
 * LISTEN/NOTIFY, which is off by default. The worker runs in this process, and
 * waiting callers get the result when the function has ended, before pg-boss
 * has recorded it: both in its favour.
 */
import { PgBoss } from "pg-boss";
import { nowMs, Results, serve } from "./routes.ts";

const [connectionString = "", mode] = process.argv.slice(2);
const notify = mode === "notify";
const boss = new PgBoss({ connectionString, max: 20, useListenNotify: notify });
boss.on("error", (err) => process.stderr.write(`${err}\n`));
await boss.start();
await boss.createQueue("noop", { notify });

const results = new Results();
await boss.work(
  "noop",
  { batchSize: 64, perJobResults: true, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
  async (jobs) =>
    jobs.map(({ id }) => {
      const output = nowMs();
      results.finish(id, JSON.stringify(output));
      return { id, status: "completed" as const, output: { value: output } };
    }),
);
await serve({
  wait: (id, waitMs) => results.wait(id, waitMs),
  submit: async (input) => (await boss.send("noop", input)) ?? "",
  close: () => boss.stop({ graceful: false }),
});
