/** The table of storage operations that the storage thread can run. */
import type { Accounts } from "../accounts/accounts.ts";
import type { HostingStorage } from "../hosting/hosting.ts";
import type { MetricsStorage } from "../metrics/metrics.ts";
import { ACCOUNT_OPERATIONS } from "../sql/accounts/operations.ts";
import { HOSTING_OPERATIONS } from "../sql/hosting/operations.ts";
import { METRICS_OPERATIONS } from "../sql/metrics/operations.ts";
import type { Storage } from "../storage.ts";
import { listAborts, listAttempts, requestAbort } from "./attempts.ts";
import { findBlobs, forgetBlobs, registerBlobs, releaseBlobs, takeDeadBlobs } from "./blobs.ts";
import { cancelTask } from "./cancel.ts";
import { claimTasks, countDue, nextRunAt } from "./claim.ts";
import type { SqliteDatabase } from "./database.ts";
import { deleteTasks, findDeleted } from "./delete.ts";
import { describeDatabase } from "./describe.ts";
import { endAttempt } from "./end-attempt.ts";
import { beginEpoch } from "./epoch.ts";
import { recordEvent } from "./events.ts";
import { expireTasks } from "./expire.ts";
import { fireSchedule } from "./fire-schedule.ts";
import { nextSuspect } from "./keys.ts";
import { adoptLease, closeLease, openLease, renewLeases, rescueExpired } from "./leases.ts";
import { listTasks } from "./list.ts";
import { appendPieces, readPieces } from "./pieces.ts";
import { pruneDeleted, pruneFinished } from "./prune.ts";
import { readArguments, readHistory, readResult, readTask } from "./read.ts";
import { type Runnable, runnable } from "./run-operation.ts";
import { countStates, searchKeys, searchTasks } from "./search.ts";
import { submitTask } from "./submit.ts";
import { survey } from "./survey.ts";
import { updateTask } from "./update.ts";
import { oldestWaiting, queuePosition, queueStates } from "./waiting.ts";

const operations: Runnable<HostingStorage> = runnable(HOSTING_OPERATIONS);

/** The hosting operations for the storage thread. */
const hostingOperations: Runnable<HostingStorage> = {
  ...operations,
  createWebhook(db, parameters) {
    db.webhookOwners.forget();
    return operations.createWebhook(db, parameters);
  },
  pauseEndpoint(db, parameters) {
    db.pausedEndpoints.forget();
    return operations.pauseEndpoint(db, parameters);
  },
  resumeEndpoint(db, parameters) {
    db.pausedEndpoints.forget();
    return operations.resumeEndpoint(db, parameters);
  },
};

/** The metrics operations for the storage thread. */
const metricsOperations: Runnable<MetricsStorage> = runnable(METRICS_OPERATIONS);

/** The account operations for the storage thread. */
const accountOperations: Runnable<Accounts> = runnable(ACCOUNT_OPERATIONS);

/** The methods of the storage port that are database operations. */
type QueueOperationName = Exclude<
  keyof Storage,
  | "accounts"
  | "hosting"
  | "metrics"
  | "capabilities"
  | "warnings"
  | "cells"
  | "placeTask"
  | "start"
  | "observe"
  | typeof Symbol.asyncDispose
>;

export type OperationName =
  | QueueOperationName
  | keyof Accounts
  | keyof HostingStorage
  | keyof MetricsStorage;

type Ports = Pick<Storage, QueueOperationName> & Accounts & HostingStorage & MetricsStorage;

export type OperationParameters<Name extends OperationName> = Parameters<Ports[Name]>[0];

export type OperationResult<Name extends OperationName> = Awaited<ReturnType<Ports[Name]>>;

type Operations = {
  readonly [Name in OperationName]: (
    db: SqliteDatabase,
    parameters: OperationParameters<Name>,
  ) => OperationResult<Name>;
};

/** Every operation of the ports; each runs inside a transaction of the storage thread. */
export const OPERATIONS: Operations = {
  submitTasks: (db, { tasks }) => tasks.map((task) => submitTask(db, task)),
  fireSchedule,
  getTask: readTask,
  getArguments: readArguments,
  getResult: readResult,
  getHistory: readHistory,
  claimTasks,
  endAttempts: (db, { nowMs, ends }) =>
    ends.map(({ attempt, end, events, used, isTimed }) =>
      endAttempt(db, { nowMs, attempt, end, events, used, isTimed }),
    ),
  recordEvents: (db, { events }) => events.map((event) => recordEvent(db, event)),
  appendPieces,
  readPieces,
  listAttempts,
  cancelTask,
  deleteTasks,
  updateTask,
  findDeleted,
  requestAbort,
  listAborts,
  expireTasks,
  openLease,
  adoptLease,
  renewLeases,
  survey,
  closeLease,
  rescueExpired,
  beginEpoch,
  pruneFinished,
  pruneDeleted,
  registerBlobs,
  releaseBlobs,
  takeDeadBlobs,
  forgetBlobs,
  findBlobs,
  listTasks,
  searchTasks,
  searchKeys,
  countStates,
  queuePosition,
  countTasks: (db, { deploymentId }) => db.counts.list(deploymentId),
  countDue,
  nextSuspect,
  oldestWaiting,
  queueStates,
  describeDatabase,
  nextRunAt,
  ...accountOperations,
  ...hostingOperations,
  ...metricsOperations,
};
