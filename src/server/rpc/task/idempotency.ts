/** Idempotency keys, and what tells a repetition from another call. */
import { createHash } from "node:crypto";
import type { HandlerContext } from "@connectrpc/connect";
import { problem, toProblem } from "../../../errors.ts";
import type { Payload } from "../../../protocol/messages.ts";

const MAX_KEY_LENGTH = 255;

/** Refuses a key that is too long, before anything is done for its call. */
export function checkKey(key: string): void {
  if (key.length > MAX_KEY_LENGTH) {
    throw invalid(`must have at most ${MAX_KEY_LENGTH} characters`);
  }
}

/** Refuses a key for what is not stored: it would be taken for a promise. */
export function refuseKey(key: string, endpoint: string): void {
  if (key !== "") {
    throw invalid(
      `is not for ${endpoint}, which is an api: its calls are not stored, so a repetition would run again; leave the key out, or make it a task`,
    );
  }
}

/**
 * Tells the same arguments, files included, and the same schedule from others.
 * @param schedule as `scheduleText` writes it
 */
export function digestOfCall({ json, files }: Payload, schedule: string): string {
  const hash = createHash("sha256").update(json).update(schedule);
  for (const { contentType, filename, ...file } of files) {
    // What is in the blob store has a digest already.
    const bytes = "blob" in file ? file.blob.sha256 : file.data;
    const size = "blob" in file ? file.blob.size : file.data.byteLength;
    hash.update(JSON.stringify([contentType, filename, size])).update(bytes);
  }
  return hash.digest("base64url");
}

/** Of a retry it is the task that tells, whose arguments never change. No digest of a call looks so. */
export function digestOfRetry(taskId: string): string {
  return `retry of ${taskId}`;
}

const REPLAYED = "idempotent-replayed";

/** Says in the answer's header that an earlier task is given again. */
export function noteReplay({ responseHeader }: Pick<HandlerContext, "responseHeader">): void {
  responseHeader.set(REPLAYED, "true");
}

/** Has an error say it too, which leaves without that header: what an earlier task failed with is given again. */
export async function replaying<Answer>(answer: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await answer();
  } catch (thrown) {
    const found = toProblem(thrown);
    found.metadata.set(REPLAYED, "true");
    throw found;
  }
}

function invalid(description: string): Error {
  return problem("REQUEST_INVALID", `the idempotency key ${description}`, {
    violations: [{ field: "idempotency_key", description }],
  });
}
