import type { Storage } from "../storage.ts";
import { listAborts, listAttempts, requestAbort } from "./attempts.ts";
import { claimTasks, nextRunAt } from "./claim.ts";
import type { Database } from "./database.ts";
import { cancelTask, endAttempt } from "./end.ts";
import { recordEvent } from "./events.ts";
import { expireTasks } from "./expire.ts";
import { closeLease, openLease, renewLeases, rescueExpired } from "./leases.ts";
import { listTasks, queuePosition } from "./list.ts";
import { pruneFinished } from "./prune.ts";
import { readArguments, readHistory, readResult, readTask } from "./read.ts";
import { submitTask } from "./submit.ts";

/** The methods of the port that are questions to the database. */
export type OperationName = Exclude<
  keyof Storage,
  "capabilities" | "start" | typeof Symbol.asyncDispose
>;

export type OperationParameters<Name extends OperationName> = Parameters<Storage[Name]>[0];

export type OperationResult<Name extends OperationName> = Awaited<ReturnType<Storage[Name]>>;

type Operations = {
  readonly [Name in OperationName]: (
    db: Database,
    parameters: OperationParameters<Name>,
  ) => OperationResult<Name>;
};

/** Every operation of the port, as the storage thread runs it inside a transaction. */
export const OPERATIONS: Operations = {
  submitTasks: (db, { tasks }) => tasks.map((task) => submitTask(db, task)),
  getTask: readTask,
  getArguments: readArguments,
  getResult: readResult,
  getHistory: readHistory,
  claimTasks,
  endAttempts: (db, { nowMs, ends }) =>
    ends.map(({ attempt, end }) => endAttempt(db, { nowMs, attempt, end })),
  recordEvents: (db, { events }) => events.map((event) => recordEvent(db, event)),
  listAttempts,
  cancelTask,
  requestAbort,
  listAborts,
  expireTasks,
  openLease,
  renewLeases,
  closeLease,
  rescueExpired,
  pruneFinished,
  listTasks,
  queuePosition,
  countTasks: (db, { deploymentId }) => db.counts.list(deploymentId),
  nextRunAt,
};
