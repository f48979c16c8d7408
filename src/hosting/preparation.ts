/** Preparation of a revision: its artifact on disk and its environment, before workers start. */

import { DEFAULT_LIMITS } from "../pool/limits.ts";
import type { ServiceCode } from "../pool/options.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import { MAX_TIMER_MS } from "../time/alarm.ts";
import type { HeldArtifact } from "./artifact-cache.ts";
import type { ServedRevision } from "./last-served.ts";

const MEBIBYTE = 1024 ** 2;

/**
 * How long the files of a replaced revision stay beyond its longest timeout: more than a call
 * gets to clean up after its time.
 */
const RETIREMENT_MARGIN_MS = 60_000;

export interface PreparationOptions {
  readonly hold: (organizationId: string, digest: string) => Promise<HeldArtifact>;
  /** The environment variables of the revision's workers, with the secrets that it may have. */
  readonly environment: (
    record: DesiredDeployment,
    revision: number,
  ) => Promise<{ readonly [name: string]: string }>;
}

export interface Prepared {
  readonly artifact: HeldArtifact;
  readonly service: ServiceCode;
}

/** Holds the artifact and builds the service to start. If that fails, holds nothing. */
export async function prepare(
  record: DesiredDeployment,
  { revision, digest }: ServedRevision,
  { hold, environment }: PreparationOptions,
): Promise<Prepared> {
  const artifact = await hold(record.organizationId, digest);
  try {
    const { index, servicePath, readCode } = artifact;
    const { memoryMib, cpu, network } = record.settings;
    const service: ServiceCode = {
      servicePath,
      code: readCode,
      selfContained: true,
      revision: {
        number: revision,
        env: await environment(record, revision),
        limits: { ...DEFAULT_LIMITS, memoryBytes: memoryMib * MEBIBYTE, cpus: cpu },
        network,
        ...(index.platform !== undefined && { platform: index.platform }),
      },
    };
    return { artifact, service };
  } catch (err) {
    artifact.release();
    throw err;
  }
}

/** Rejects when the signal aborts, and releases what is prepared after that. */
export function untilAborted(preparing: Promise<Prepared>, signal: AbortSignal): Promise<Prepared> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      reject(signal.reason);
      preparing.then(
        ({ artifact }) => artifact.release(),
        () => {}, // Nothing to release.
      );
    };
    if (signal.aborted) {
      giveUp();
      return;
    }
    signal.addEventListener("abort", giveUp, { once: true });
    preparing.finally(() => signal.removeEventListener("abort", giveUp)).then(resolve, reject);
  });
}

/** Releases an artifact after the longest time that its old workers may take to finish. */
export function releaseLater({ index, release }: HeldArtifact): void {
  const longestMs = Math.max(...index.service.endpoints.map(({ timeoutMs }) => timeoutMs));
  setTimeout(release, Math.min(longestMs + RETIREMENT_MARGIN_MS, MAX_TIMER_MS)).unref();
}

/** Identifies how a deployment runs: records with equal keys need no roll-out between them. */
export function keyOf(record: DesiredDeployment): string {
  const { targetRevision, digest, settings, secretsSince, secretsConfirmed } = record;
  const { memoryMib, cpu, env, network } = settings;
  return JSON.stringify([
    [targetRevision, digest, memoryMib, cpu, Object.entries(env).toSorted(), network],
    [secretsSince, secretsConfirmed],
  ]);
}

/** Marks a revision that serves while the target revision is not ready here. */
export function standIn(service: ServiceCode): ServiceCode {
  const { revision } = service;
  return { ...service, ...(revision && { revision: { ...revision, standsIn: true } }) };
}
