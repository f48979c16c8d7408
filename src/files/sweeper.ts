/**
 * Deletes dead blobs, by timer: those of tasks that were pruned, and those
 * that no task ever had, because a submit was refused or its node died. Any
 * node may do it for all: a blob that one has taken is another's only when
 * that one has not finished in time.
 */
import type { Log } from "../log/log.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { Storage } from "../storage/storage.ts";
import { Timer } from "../time/timer.ts";

/** Blobs deleted at once. */
const LIMIT = 100;

const EVERY_MS = 20_000;

/** A node that has not deleted what it took by then is taken for dead. */
const AGAIN_MS = 10 * 60_000;

export interface SweeperOptions {
  readonly storage: Pick<Storage, "takeDeadBlobs" | "forgetBlobs">;
  readonly blobs: BlobStore;
  readonly now: () => number;
}

/** Deletes what is dead now; resolves with how many blobs that were. */
export async function sweepBlobs({ storage, blobs, now }: SweeperOptions): Promise<number> {
  let deleted = 0;
  for (;;) {
    const nowMs = now();
    const blobIds = await storage.takeDeadBlobs({ nowMs, againMs: nowMs + AGAIN_MS, limit: LIMIT });
    if (blobIds.length > 0) {
      await blobs.delete(blobIds);
      await storage.forgetBlobs({ blobIds });
      deleted += blobIds.length;
    }
    if (blobIds.length < LIMIT) {
      return deleted;
    }
  }
}

export function startSweeper(options: SweeperOptions & { readonly log: Log }): Timer {
  return new Timer(
    EVERY_MS,
    () => sweepBlobs(options),
    (err) => options.log.error({ err }, "files that nobody needs could not be deleted"),
  );
}
