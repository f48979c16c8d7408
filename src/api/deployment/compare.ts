/** CompareRevisions: what a revision changed in the code. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  ChangeKind,
  type DeploymentService,
  type DeploymentSettingsSchema,
  type FileChangeSchema,
} from "../../../gen/tessera/v1/deployment_pb.js";
import type { ArtifactIndex, IndexedFile } from "../../artifacts/index-file.ts";
import { placementOf } from "../../deployments/placement.ts";
import { problem } from "../../errors.ts";
import { type Member, memberOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import { DEFAULT_SETTINGS } from "../../storage/deployment-settings.ts";
import type { RevisionRecord, Revisions } from "../../storage/hosting/revisions.ts";
import { durationFromMs } from "../../time/messages.ts";
import { toRevisionMessage } from "./messages.ts";
import { findDeployment } from "./refusals.ts";

/** Revisions that are looked through: more than are kept. */
const MAX_LOOKED_AT_REVISIONS = 100;

/** Files in one answer. */
const MAX_CHANGED_FILES = 1_000;

export interface CompareOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<Revisions, "listRevisions" | "getIndex">;
}

type CompareRevisions = ServiceImpl<typeof DeploymentService>["compareRevisions"];

/** Reads revisions of a deployment. Throws DEPLOYMENT_NOT_FOUND. */
export async function revisionReader(
  { accounts, hosting }: CompareOptions,
  { organizationId }: Pick<Member, "organizationId">,
  name: string,
) {
  const { deploymentId } = await findDeployment(accounts, { organizationId }, name);
  const { items } = await hosting.listRevisions({
    organizationId,
    deploymentId,
    limit: MAX_LOOKED_AT_REVISIONS,
  });
  return {
    /** Throws REVISION_NOT_FOUND. */
    find(number: number): RevisionRecord {
      const found = items.find((one) => one.revision === number);
      if (found === undefined) {
        throw problem(
          "REVISION_NOT_FOUND",
          `deployment ${name} has no revision ${number}, or has it no longer: list its revisions`,
        );
      }
      return found;
    },
    /** The index of its artifact. Throws REVISION_NOT_FOUND. */
    async index({ digest, revision: number }: RevisionRecord): Promise<ArtifactIndex> {
      const text = await hosting.getIndex({ organizationId, digest });
      if (text === undefined) {
        throw problem("REVISION_NOT_FOUND", `revision ${number} of ${name} is gone by now`);
      }
      // It was verified before it was stored.
      return JSON.parse(text) as ArtifactIndex;
    },
  };
}

/** The implementation of CompareRevisions. */
export function compareRevisions(options: CompareOptions): CompareRevisions {
  return async ({ deployment: name, revision: wanted, base: other }, ctx) => {
    const reader = await revisionReader(options, memberOf(ctx), name);
    const [revision, base] = [reader.find(wanted), reader.find(other || wanted - 1)];
    const [after, before] = [await reader.index(revision), await reader.index(base)];
    const files = changesOf(after.files, before.files, ({ path }) => path);
    const endpoints = changesOf(
      placedEndpoints(after),
      placedEndpoints(before),
      (endpoint) => endpoint.name,
    );
    return {
      revision: toRevisionMessage(revision),
      base: toRevisionMessage(base),
      files: files.slice(0, MAX_CHANGED_FILES).map(toFileChange),
      changedFiles: files.length,
      endpoints: endpoints.map(({ key, kind }) => ({ name: key, kind })),
      codeSettings: codeSettings(after),
    };
  };
}

/** The settings in the code, which apply where the deployment does not set them. */
function codeSettings({
  service,
}: ArtifactIndex): MessageInitShape<typeof DeploymentSettingsSchema> {
  const { processes, gpus, gpuMemoryMib, readyTimeoutMs } = service;
  const tasks = service.endpoints.filter(({ kind }) => kind === "task");
  const [retentionMs, ...others] = new Set(tasks.map((task) => task.retentionMs));
  return {
    ...(processes !== undefined && { processes }),
    ...(gpus !== undefined && { gpus }),
    ...(gpuMemoryMib !== undefined && { gpuMemoryMib }),
    ...(readyTimeoutMs !== undefined && { readyTimeout: durationFromMs(readyTimeoutMs) }),
    ...(retentionMs !== undefined &&
      others.length === 0 && { retention: durationFromMs(retentionMs) }),
  };
}

/** The endpoints with what their service says for all of them. */
function placedEndpoints({ service }: ArtifactIndex) {
  return service.endpoints.map((endpoint) => ({
    ...endpoint,
    ...placementOf(service, endpoint, DEFAULT_SETTINGS),
  }));
}

interface Change<Item> {
  readonly key: string;
  readonly kind: ChangeKind;
  readonly after: Item | undefined;
  readonly before: Item | undefined;
}

/** What differs between two lists, by key. */
function changesOf<Item>(
  after: readonly Item[],
  before: readonly Item[],
  keyOf: (item: Item) => string,
): Change<Item>[] {
  const old = new Map(before.map((item) => [keyOf(item), item]));
  const now = new Map(after.map((item) => [keyOf(item), item]));
  const keys = [...new Set([...old.keys(), ...now.keys()])].sort();
  return keys.flatMap((key): Change<Item>[] => {
    const [is, was] = [now.get(key), old.get(key)];
    if (is !== undefined && was !== undefined) {
      const isSame = JSON.stringify(is) === JSON.stringify(was);
      return isSame ? [] : [{ key, kind: ChangeKind.CHANGED, after: is, before: was }];
    }
    const kind = was === undefined ? ChangeKind.ADDED : ChangeKind.REMOVED;
    return [{ key, kind, after: is, before: was }];
  });
}

function toFileChange({
  key,
  kind,
  after,
  before,
}: Change<IndexedFile>): MessageInitShape<typeof FileChangeSchema> {
  return {
    path: key,
    kind,
    sizeBytes: BigInt(after?.size ?? 0),
    baseSizeBytes: BigInt(before?.size ?? 0),
  };
}
