/**
 * Removes what deployments have left behind: rows and tasks of deleted ones,
 * files of artifacts that no revision has, and on this node's disk artifacts
 * that it does not run any more. Any node may do the first two for all.
 */
import type { Log } from "../log/log.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { HostingStorage } from "../storage/hosting/hosting.ts";
import { Timer } from "../time/timer.ts";
import type { ArtifactCache } from "./artifact-cache.ts";

const EVERY_MS = 60_000;

/** Going back to the revision before should not have to fetch it again. */
const SWEEP_DISK_EVERY_MS = 10 * 60_000;

/** Rows, or files, at once. */
const LIMIT = 500;

/** A node that has not deleted what it took by then is taken for dead. */
const AGAIN_MS = 10 * 60_000;

export interface HousekeepingOptions {
  readonly hosting: Pick<HostingStorage, "pruneHosting" | "takeUnusedFiles" | "forgetFiles">;
  readonly blobs: Pick<BlobStore, "delete">;
  readonly artifacts: ArtifactCache;
  readonly now: () => number;
  readonly log: Log;
}

export function startHousekeeping(options: HousekeepingOptions): AsyncDisposable {
  const { artifacts, log } = options;
  const failed = (err: unknown): void =>
    log.error({ err }, "what deployments have left behind could not be removed");
  const timers = [
    new Timer(EVERY_MS, () => keepHouse(options), failed),
    new Timer(SWEEP_DISK_EVERY_MS, () => artifacts.sweep(), failed),
  ];
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(timers.map((timer) => timer[Symbol.asyncDispose]()));
    },
  };
}

/** Removes from the database and the blob store what is dead now. */
export async function keepHouse({
  hosting,
  blobs,
  now,
}: Pick<HousekeepingOptions, "hosting" | "blobs" | "now">): Promise<void> {
  while ((await hosting.pruneHosting({ nowMs: now(), limit: LIMIT })) > 0) {}
  for (;;) {
    const nowMs = now();
    const unused = await hosting.takeUnusedFiles({
      nowMs,
      againMs: nowMs + AGAIN_MS,
      limit: LIMIT,
    });
    if (unused === undefined) {
      return;
    }
    await blobs.delete(unused.blobIds);
    await hosting.forgetFiles(unused);
  }
}
