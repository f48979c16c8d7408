/**
 * The garbage collector of blobs: deletes by timer the blobs of pruned tasks, and
 * those that no task ever had, because a submit was refused or its node died. Any
 * node may do it for all: a node claims blobs, and another one may take them only
 * when the first has not finished in time.
 */
import type { Log } from "../../log/log.ts";
import { Timer } from "../../time/timer.ts";
import type { BlobStore } from "../blobs.ts";
import type { Storage } from "../storage.ts";

/** Blobs deleted in one go. */
const MAX_SWEPT_BLOBS = 100;

/** Interval at which blobs that no task has any more are deleted. */
const BLOB_SWEEP_INTERVAL_MS = 20_000;

/** How long a node has a blob for itself to delete; after that it is taken for dead. */
const BLOB_SWEEP_CLAIM_MS = 10 * 60_000;

interface SweeperOptions {
  readonly storage: Pick<Storage, "takeDeadBlobs" | "forgetBlobs">;
  readonly blobs: BlobStore;
  readonly now: () => number;
}

/** Deletes all dead blobs now; resolves with their number. */
export async function sweepBlobs({ storage, blobs, now }: SweeperOptions): Promise<number> {
  let deleted = 0;
  for (;;) {
    const nowMs = now();
    const blobIds = await storage.takeDeadBlobs({
      nowMs,
      againMs: nowMs + BLOB_SWEEP_CLAIM_MS,
      limit: MAX_SWEPT_BLOBS,
    });
    if (blobIds.length > 0) {
      await blobs.delete(blobIds);
      await storage.forgetBlobs({ blobIds });
      deleted += blobIds.length;
    }
    if (blobIds.length < MAX_SWEPT_BLOBS) {
      return deleted;
    }
  }
}

/** Starts the periodic deletion; dispose of the timer to stop it. */
export function startSweeper(options: SweeperOptions & { readonly log: Log }): Timer {
  return new Timer(
    BLOB_SWEEP_INTERVAL_MS,
    () => sweepBlobs(options),
    (err) => options.log.error({ err }, "files that nobody needs could not be deleted"),
  );
}
