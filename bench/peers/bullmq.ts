/**
 * BullMQ. The worker runs in this process and tells of each job that has ended
 * and is recorded: faster on two cores than a worker process with queue
 * events, although a function that computes would then hold up the server.
 * Auto-pipelining of the client was tried and won nothing. A job that has
 * ended is removed once 10,000 more have, which is less to keep than what the
 * others keep.
 */
import { Queue, Worker } from "bullmq";
import { nowMs, Results, serve } from "./routes.ts";

const [url = ""] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };

const results = new Results();
const worker = new Worker("noop", async () => nowMs(), {
  connection,
  concurrency: 64,
  removeOnComplete: { count: 10_000 },
});
worker.on("error", (err) => process.stderr.write(`${err}\n`));
worker.on("completed", (job, result) => results.finish(job.id ?? "", JSON.stringify(result)));
const queue = new Queue("noop", { connection });
await Promise.all([worker.waitUntilReady(), queue.waitUntilReady()]);
await serve({
  results,
  submit: async (input) => (await queue.add("noop", input)).id ?? "",
  async close() {
    await Promise.all([worker.close(), queue.close()]);
  },
});
