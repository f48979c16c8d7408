/**
 * A node that evaluates alert rules when it is told to, until it is killed. Its arguments name the
 * database: a file, or an address and a schema. A line of its input is the JSON of a time and of what
 * was measured; it writes `taken` when it has taken rules, `recording` before it records one, and
 * `done` when it has evaluated all.
 */
import { createInterface } from "node:readline";
import type { HostingStorage } from "../../../src/storage/hosting/hosting.ts";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { evaluatorOn, type Measured } from "./evaluators.ts";

const [place = "", schema] = process.argv.slice(2);
const storage =
  schema === undefined
    ? new SqliteStorage(place)
    : new PostgresStorage(place, { schema, leaseClock: "caller" });
await storage.start();
// Before the time of any rule.
let nowMs = -1;
let measured: Measured = { failed: 0, succeeded: 90, restarts: 0 };
const say = (word: string): void => void process.stdout.write(`${word}\n`);

const { takeAlertRules, recordAlerts } = storage.hosting;
const hosting: HostingStorage = {
  ...storage.hosting,
  takeAlertRules: async (parameters) => {
    const taken = await takeAlertRules(parameters);
    say("taken");
    return taken;
  },
  recordAlerts: (parameters) => {
    say("recording");
    return recordAlerts(parameters);
  },
};
const evaluator = evaluatorOn(storage, {
  ...{ hosting, now: () => nowMs, newId: createIdSource(), measured: () => measured },
});

for await (const line of createInterface({ input: process.stdin })) {
  ({ nowMs, measured } = JSON.parse(line) as { nowMs: number; measured: Measured });
  await evaluator.evaluate();
  say("done");
}
