/**
 * A probe loaded before the server (`node --import`): counts messages to its
 * threads and prints the count on SIGUSR2. The SQLite storage is such a thread;
 * each message is a batch of operations, one per transaction.
 */
import { Worker } from "node:worker_threads";
import { unpackOperations } from "../src/storage/sqlite/packing.ts";

let transactions = 0;
const questions: Record<string, number> = {};
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (this: Worker, message: unknown, ...rest: never[]) {
  if (Array.isArray(message)) {
    transactions += 1;
    for (const { name } of unpackOperations(message)) {
      questions[name] = (questions[name] ?? 0) + 1;
    }
  }
  postMessage.call(this, message, ...rest);
};
process.on("SIGUSR2", () =>
  process.stdout.write(`counted ${JSON.stringify({ transactions, questions })}\n`),
);
