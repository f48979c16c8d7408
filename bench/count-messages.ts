/**
 * Loaded before the server (`node --import`): counts what is sent to its
 * threads and tells it at SIGUSR2. The storage of SQLite is such a thread, and
 * what it is sent are lists of operations, one list for each transaction.
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
