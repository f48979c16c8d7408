/** Models and their versions as messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type ModelSchema,
  ModelState,
  type ModelVersionSchema,
} from "../../../gen/tessera/v1/model_pb.js";
import type { ModelRecord, ModelVersionRecord } from "../../storage/hosting/models.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";

const STATES = {
  importing: ModelState.IMPORTING,
  ready: ModelState.READY,
  failed: ModelState.FAILED,
} as const;

export function toModelMessage(
  organization: string,
  { name, createdAtMs, versionCount, versions }: ModelRecord,
): MessageInitShape<typeof ModelSchema> {
  const createdAt = timestampFromMs(createdAtMs);
  return { organization, name, createdAt, versionCount, versions: versions.map(toVersionMessage) };
}

export function toVersionMessage(
  record: ModelVersionRecord,
): MessageInitShape<typeof ModelVersionSchema> {
  const { model, version, source, repository, commit, createdBy, warnings, reason } = record;
  const { sizeBytes, bytesDone, bytesPerSecond } = record;
  const isImporting = record.state === "importing";
  const leftMs = ((sizeBytes - bytesDone) / bytesPerSecond) * 1_000;
  return {
    ...{ model, version, source, repository, commit, createdBy, reason },
    state: STATES[record.state],
    digest: record.digest ?? "",
    sizeBytes: BigInt(sizeBytes),
    fileCount: record.files,
    createdAt: timestampFromMs(record.createdAtMs),
    warnings: [...warnings],
    deployments: [...record.deployments],
    ...(isImporting && {
      bytesDone: BigInt(bytesDone),
      bytesPerSecond: BigInt(bytesPerSecond),
      ...(Number.isFinite(leftMs) && { timeLeft: durationFromMs(Math.max(0, leftMs)) }),
    }),
  };
}
