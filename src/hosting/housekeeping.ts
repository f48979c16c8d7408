/**
 * Garbage collection for deployments: deletes rows and tasks of deleted
 * deployments, files of artifacts that no revision uses, and artifacts, Python
 * environments and images on this node's disk that it no longer runs. Any node may do the first two for all.
 */
import type { EnvironmentStore } from "../artifacts/environments/store.ts";
import type { Images } from "../artifacts/images/images.ts";
import type { Log } from "../log/log.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { HostingStorage } from "../storage/hosting/hosting.ts";
import { Timer } from "../time/timer.ts";
import type { ArtifactCache } from "./artifact-cache.ts";

/** Interval at which rows and files that deployments left behind are deleted. */
const HOUSEKEEPING_INTERVAL_MS = 60_000;

/**
 * Interval at which unused artifacts are removed from the disk: going back to the revision
 * before should not have to fetch it again.
 */
const ARTIFACT_CACHE_SWEEP_INTERVAL_MS = 10 * 60_000;

/** Interval at which usage is deleted that is too old. */
const USAGE_INTERVAL_MS = 60 * 60_000;

/** Python environments and images that nobody has begun to use for this long are removed, unless they are used. */
const UNUSED_ENVIRONMENT_TTL_MS = 24 * 60 * 60_000;

/** Rows, or files, of deployments deleted in one go. */
const MAX_PRUNED_HOSTING_ROWS = 500;

/** How long a node has an unused file for itself to delete; after that it is taken for dead. */
const ARTIFACT_FILE_CLAIM_MS = 10 * 60_000;

interface HousekeepingOptions {
  readonly hosting: Pick<
    HostingStorage,
    "pruneHosting" | "pruneUsage" | "takeUnusedFiles" | "forgetFiles"
  >;
  readonly blobs: Pick<BlobStore, "delete">;
  readonly artifacts: ArtifactCache;
  /** Undefined where services in Python do not run. */
  readonly environments: Pick<EnvironmentStore, "sweep"> | undefined;
  /** Undefined where there are no container images. */
  readonly images: Pick<Images, "sweep"> | undefined;
  readonly now: () => number;
  readonly log: Log;
}

/** Starts the periodic jobs; dispose of the result to stop them. */
export function startHousekeeping(options: HousekeepingOptions): AsyncDisposable {
  const { artifacts, environments, images, log } = options;
  const failed = (err: unknown): void =>
    log.error({ err }, "what deployments have left behind could not be removed");
  const timers = [
    new Timer(HOUSEKEEPING_INTERVAL_MS, () => keepHouse(options), failed),
    new Timer(USAGE_INTERVAL_MS, () => pruneUsage(options), failed),
    new Timer(ARTIFACT_CACHE_SWEEP_INTERVAL_MS, () => artifacts.sweep(), failed),
    new Timer(
      ARTIFACT_CACHE_SWEEP_INTERVAL_MS,
      async () => {
        await environments?.sweep({ unusedForMs: UNUSED_ENVIRONMENT_TTL_MS });
        await images?.sweep({ unusedForMs: UNUSED_ENVIRONMENT_TTL_MS });
      },
      failed,
    ),
  ];
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(timers.map((timer) => timer[Symbol.asyncDispose]()));
    },
  };
}

/** Deletes everything that is unused now from the database and the blob store. */
export async function keepHouse({
  hosting,
  blobs,
  now,
}: Pick<HousekeepingOptions, "hosting" | "blobs" | "now">): Promise<void> {
  while ((await hosting.pruneHosting({ nowMs: now(), limit: MAX_PRUNED_HOSTING_ROWS })) > 0) {}
  for (;;) {
    const nowMs = now();
    const unused = await hosting.takeUnusedFiles({
      nowMs,
      againMs: nowMs + ARTIFACT_FILE_CLAIM_MS,
      limit: MAX_PRUNED_HOSTING_ROWS,
    });
    if (unused === undefined) {
      return;
    }
    await blobs.delete(unused.blobIds);
    await hosting.forgetFiles(unused);
  }
}

async function pruneUsage({ hosting, now }: HousekeepingOptions): Promise<void> {
  while ((await hosting.pruneUsage({ nowMs: now(), limit: MAX_PRUNED_HOSTING_ROWS })) > 0) {}
}
