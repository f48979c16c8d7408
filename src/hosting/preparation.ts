/** What has to be there before workers of a revision can be started. */
import { readFile } from "node:fs/promises";
import { DEFAULT_LIMITS } from "../pool/limits.ts";
import type { ServiceCode } from "../pool/options.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import type { HeldArtifact } from "./artifact-cache.ts";
import type { ServedRevision } from "./last-served.ts";

const MEBIBYTE = 1024 ** 2;

/** More than a call gets to clean up after its time. */
const FINISH_MS = 60_000;

/** Node's timers count in 31 bits. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface PreparationOptions {
  readonly hold: (organizationId: string, digest: string) => Promise<HeldArtifact>;
  /** The environment of its workers, secrets among it. */
  readonly environment: (record: DesiredDeployment) => Promise<{ readonly [name: string]: string }>;
}

export interface Prepared {
  readonly artifact: HeldArtifact;
  readonly service: ServiceCode;
}

/** Rejects with what is missing; then nothing is held. */
export async function prepare(
  record: DesiredDeployment,
  { revision, digest }: ServedRevision,
  { hold, environment }: PreparationOptions,
): Promise<Prepared> {
  const artifact = await hold(record.organizationId, digest);
  try {
    const { index, servicePath } = artifact;
    const { memoryMib, cpu } = record.settings;
    const service: ServiceCode = {
      servicePath,
      code: await readFile(servicePath, "utf8"),
      selfContained: true,
      revision: {
        number: revision,
        env: await environment(record),
        limits: { ...DEFAULT_LIMITS, memoryBytes: memoryMib * MEBIBYTE, cpus: cpu },
        ...(index.platform !== undefined && { platform: index.platform }),
      },
    };
    return { artifact, service };
  } catch (err) {
    artifact.release();
    throw err;
  }
}

/** The same, but rejects when the signal aborts; what is prepared all the same is released. */
export function untilAborted(preparing: Promise<Prepared>, signal: AbortSignal): Promise<Prepared> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      reject(signal.reason);
      preparing.then(
        ({ artifact }) => artifact.release(),
        () => {}, // There is nothing to release.
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

/** Its workers may be finishing calls, for as long as these may take. */
export function releaseLater({ index, release }: HeldArtifact): void {
  const longestMs = Math.max(...index.service.endpoints.map(({ timeoutMs }) => timeoutMs));
  setTimeout(release, Math.min(longestMs + FINISH_MS, MAX_TIMER_MS)).unref();
}

/** Two records with the same key are run in the same way. */
export function keyOf({ targetRevision, digest, settings }: DesiredDeployment): string {
  const { memoryMib, cpu, env } = settings;
  return JSON.stringify([targetRevision, digest, memoryMib, cpu, Object.entries(env).toSorted()]);
}

/** A revision that goes on while the target revision is not ready here. */
export function standIn(service: ServiceCode): ServiceCode {
  const { revision } = service;
  return { ...service, ...(revision && { revision: { ...revision, standsIn: true } }) };
}
