/**
 * BullMQ. A call that waits does what BullMQ has for it: it gets the job and
 * waits for its end over the queue's events, in whichever process it ended.
 * With the argument `in-memory` results are handed over in the memory of this
 * process, which serves HTTP and runs the worker: the least that it can cost,
 * with one process for everything.
 *
 * Either way the worker runs in this process, faster on two cores than one of
 * its own, although a function that computes would then hold up the server.
 * Auto-pipelining of the client was tried and won nothing. A job that has
 * ended is removed once 10,000 more have, which is less to keep than what the
 * others keep.
 */
import { Job, Queue, QueueEvents, Worker } from "bullmq";
import { nowMs, Results, serve } from "./routes.ts";

const [url = "", mode = "events"] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const name = `noop-${mode}`;

const worker = new Worker(name, async () => nowMs(), {
  connection,
  concurrency: 64,
  removeOnComplete: { count: 10_000 },
});
worker.on("error", (err) => process.stderr.write(`${err}\n`));
const queue = new Queue(name, { connection });
await Promise.all([worker.waitUntilReady(), queue.waitUntilReady()]);
await serve({
  submit: async (input) => (await queue.add("noop", input)).id ?? "",
  wait: mode === "in-memory" ? inMemory() : await overEvents(),
  async close() {
    await Promise.all([worker.close(), queue.close()]);
  },
});

function inMemory() {
  const results = new Results();
  worker.on("completed", (job, result) => results.finish(job.id ?? "", JSON.stringify(result)));
  return (id: string, waitMs: number) => results.wait(id, waitMs);
}

async function overEvents() {
  const events = new QueueEvents(name, { connection });
  events.setMaxListeners(0);
  await events.waitUntilReady();
  return async (id: string, waitMs: number) => {
    const job = await Job.fromId(queue, id);
    const result: unknown = await job?.waitUntilFinished(events, waitMs).catch(() => undefined);
    return result === undefined ? undefined : JSON.stringify(result);
  };
}
