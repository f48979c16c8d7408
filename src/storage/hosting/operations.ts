import type { Operation } from "../accounts/operation.ts";
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

export type HostingOperationName = keyof Hosting;

export type HostingParameters<Name extends HostingOperationName> = Parameters<Hosting[Name]>[0];

export type HostingResult<Name extends HostingOperationName> = Awaited<ReturnType<Hosting[Name]>>;

type HostingOperations = {
  readonly [Name in HostingOperationName]: (
    parameters: HostingParameters<Name>,
  ) => Operation<HostingResult<Name>>;
};

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
} as const satisfies Partial<HostingOperations>;

/** Operations whose `nowMs` is for deciding who lives: where nodes share a database, by its clock. */
export const BY_ONE_CLOCK: ReadonlySet<HostingOperationName> = new Set([
  "beat",
  "listNodes",
  "describeDeployments",
]);

/** Every operation of the port. */
export const HOSTING_OPERATIONS: HostingOperations = {
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

/** The port, as an adapter answers it: `ask` makes the method of a name. */
export function hostingOver(ask: (name: HostingOperationName) => unknown): Hosting {
  const names = Object.keys(HOSTING_OPERATIONS) as HostingOperationName[];
  return Object.fromEntries(names.map((name) => [name, ask(name)])) as unknown as Hosting;
}
