import type { OperationsOf } from "../accounts/operation.ts";
import type { Hosting } from "./hosting.ts";
import { createRevision } from "./operations/create-revision.ts";
import {
  abandonFile,
  findMissingFiles,
  finishFile,
  forgetFiles,
  listArtifactFiles,
  registerFile,
  takeUnusedFiles,
} from "./operations/files.ts";
import { getHosted, listHosted } from "./operations/hosted.ts";
import { appendLogs, readLogs } from "./operations/logs.ts";
import {
  beat,
  endNode,
  listNodes,
  reportDeployments,
  withdrawReports,
} from "./operations/nodes.ts";
import { pruneHosting } from "./operations/prune.ts";
import { getIndex, listRevisions, rollBack, setDesiredState } from "./operations/revisions.ts";
import { getSecrets, listSealedSecrets, replaceSealedSecret } from "./operations/secrets.ts";
import { describeDeployments } from "./operations/state.ts";

/** Operations of one statement: they need no transaction around them. */
export const SINGLE = {
  listRevisions,
  getIndex,
  getHosted,
  listHosted,
  getSecrets,
  listSealedSecrets,
  replaceSealedSecret,
  listArtifactFiles,
  beat,
  listNodes,
} as const satisfies Partial<OperationsOf<Hosting>>;

/** Operations whose `nowMs` is for deciding who lives: where nodes share a database, by its clock. */
export const BY_ONE_CLOCK: ReadonlySet<keyof Hosting> = new Set([
  "beat",
  "listNodes",
  "describeDeployments",
]);

/** Every operation of the port. */
export const HOSTING_OPERATIONS: OperationsOf<Hosting> = {
  ...SINGLE,
  createRevision,
  rollBack,
  setDesiredState,
  findMissingFiles,
  registerFile,
  finishFile,
  abandonFile,
  takeUnusedFiles,
  forgetFiles,
  endNode,
  reportDeployments,
  withdrawReports,
  describeDeployments,
  appendLogs,
  readLogs,
  pruneHosting,
};
