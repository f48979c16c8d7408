/** The table of all operations of the hosting port. */
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { OperationsOf } from "../operation.ts";
import {
  createAlertRule,
  deleteAlertReceiver,
  deleteAlertRule,
  listAlertRules,
  listAlerts,
  listEndingTokens,
  listWebhooksOff,
  pruneAlerts,
  recordAlerts,
  takeAlertRules,
  updateAlertRule,
  usesAlerts,
} from "./alerts.ts";
import { countBudgets, createBudget, deleteBudget, listBudgets, updateBudget } from "./budgets.ts";
import { createRevision } from "./create-revision.ts";
import {
  addTestDelivery,
  getDelivery,
  listDeliveries,
  pruneDeliveries,
  recordDelivery,
  redeliver,
  takeDeliveries,
  usesWebhooks,
} from "./deliveries.ts";
import { getHosted, listHosted } from "./desired.ts";
import {
  abandonFile,
  findFile,
  findMissingFiles,
  finishFile,
  forgetFiles,
  listArtifactFiles,
  readStorageUse,
  registerFile,
  takeUnusedFiles,
} from "./files.ts";
import { endLaunches, holdLaunches, holdsLaunch, listLaunches } from "./launchers.ts";
import { appendLogs, readLogs } from "./logs.ts";
import { drainMachine, listAllWorkers, listDrained, resumeMachine } from "./machines.ts";
import { getManifest, storeManifest } from "./manifests.ts";
import {
  failImport,
  findImported,
  finishImport,
  importModel,
  listImported,
  reportImport,
  takeImport,
} from "./model-imports.ts";
import { deleteModel, getModel, getModelVersion, listModels, pushModel } from "./models.ts";
import {
  beat,
  endNode,
  listNodes,
  listWorkers,
  reportDeployments,
  reportWorkers,
  withdrawReports,
} from "./nodes.ts";
import { pauseEndpoint, resumeEndpoint } from "./pauses.ts";
import { pruneHosting } from "./prune.ts";
import { getIndex, listRevisions, rollBack, setDesiredState } from "./revisions.ts";
import {
  createSchedule,
  deleteSchedule,
  dueSchedules,
  getSchedule,
  listSchedules,
  updateSchedule,
} from "./schedules.ts";
import {
  confirmSecrets,
  getRevisionSecrets,
  getSecrets,
  listSealedSecrets,
  listSecrets,
  replaceSealedSecret,
  updateSecrets,
} from "./secrets.ts";
import { describeDeployments } from "./state.ts";
import { addUsage, pruneUsage, readUsage } from "./usage.ts";
import {
  createWebhook,
  deleteWebhook,
  getSealedWebhook,
  listFailingWebhooks,
  listSealedWebhooks,
  listWebhooks,
  replaceSealedWebhook,
  rotateWebhook,
  updateWebhook,
} from "./webhooks.ts";

/** Operations with a single statement; they need no transaction. */
export const SINGLE = {
  listRevisions,
  getIndex,
  getHosted: getHosted,
  listHosted: listHosted,
  getSecrets,
  getRevisionSecrets,
  listSealedSecrets,
  replaceSealedSecret,
  listSchedules,
  getSchedule,
  dueSchedules,
  listArtifactFiles,
  storeManifest,
  getManifest,
  beat,
  listNodes,
  listWorkers,
  holdsLaunch,
  endLaunches,
  listLaunches,
  getModelVersion,
  findFile,
  listImported,
  failImport,
  listWebhooks,
  listFailingWebhooks,
  listDrained,
  listAllWorkers,
  getSealedWebhook,
  listSealedWebhooks,
  replaceSealedWebhook,
  getDelivery,
  listDeliveries,
  usesWebhooks,
  listAlertRules,
  listAlerts,
  listEndingTokens,
  listWebhooksOff,
  usesAlerts,
} as const satisfies Partial<OperationsOf<HostingStorage>>;

/**
 * Operations whose `nowMs` decides which nodes live; where nodes share a
 * database, its clock is used.
 */
export const BY_ONE_CLOCK: ReadonlySet<keyof HostingStorage> = new Set([
  "beat",
  "listNodes",
  "listWorkers",
  "holdLaunches",
  "holdsLaunch",
  "listLaunches",
  "listAllWorkers",
  "describeDeployments",
  "takeImport",
  "reportImport",
  "takeDeliveries",
  "recordDelivery",
  "takeAlertRules",
  "countBudgets",
]);

/** All operations of the port. */
export const HOSTING_OPERATIONS: OperationsOf<HostingStorage> = {
  ...SINGLE,
  createRevision,
  rollBack,
  confirmSecrets,
  listSecrets,
  updateSecrets,
  createSchedule,
  updateSchedule,
  deleteSchedule,
  setDesiredState,
  pauseEndpoint,
  resumeEndpoint,
  findMissingFiles,
  registerFile,
  finishFile,
  abandonFile,
  takeUnusedFiles,
  forgetFiles,
  endNode,
  drainMachine,
  resumeMachine,
  reportDeployments,
  reportWorkers,
  withdrawReports,
  holdLaunches,
  describeDeployments,
  appendLogs,
  readLogs,
  readStorageUse,
  pruneHosting,
  addUsage,
  readUsage,
  pruneUsage,
  pushModel,
  importModel,
  listModels,
  getModel,
  deleteModel,
  takeImport,
  reportImport,
  findImported,
  finishImport,
  createWebhook,
  updateWebhook,
  deleteWebhook,
  rotateWebhook,
  addTestDelivery,
  redeliver,
  takeDeliveries,
  recordDelivery,
  pruneDeliveries,
  createAlertRule,
  updateAlertRule,
  deleteAlertRule,
  deleteAlertReceiver,
  takeAlertRules,
  recordAlerts,
  pruneAlerts,
  createBudget,
  listBudgets,
  updateBudget,
  deleteBudget,
  countBudgets,
};
