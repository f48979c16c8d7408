/** The arguments of a call, and the release of their files. */

import type { FileKeeper } from "../../../files/keeper.ts";
import type { Payload } from "../../../protocol/messages.ts";
import type { Submitted } from "../../../queue/submission.ts";
import type { CallInput } from "../../../service/input/arguments.ts";
import type { StreamedBodies } from "../../http/streamed-bodies.ts";

/** The input of a call: streamed beside the message, or part of it. */
export function inputOf(input: CallInput, bodies: StreamedBodies | undefined): CallInput {
  const streamed = bodies?.request;
  return streamed ? { case: "stream", value: streamed } : input;
}

/** Releases the files of arguments unless a new task was stored with them. */
export function releasingUnless(
  submitting: Promise<Submitted>,
  payload: Payload,
  keeper: FileKeeper,
): Promise<Submitted> {
  return payload.files.length === 0 ? submitting : releaseUnlessStored(submitting, payload, keeper);
}

async function releaseUnlessStored(
  submitting: Promise<Submitted>,
  payload: Payload,
  keeper: FileKeeper,
): Promise<Submitted> {
  let stored = false;
  try {
    const submitted = await submitting;
    stored = !submitted.replayed;
    return submitted;
  } finally {
    if (!stored) {
      await keeper.release(payload);
    }
  }
}

/** Releases the files of arguments when their call has ended. */
export function finallyReleasing<Result>(
  calling: Promise<Result>,
  payload: Payload,
  keeper: FileKeeper,
): Promise<Result> {
  return payload.files.length === 0 ? calling : calling.finally(() => keeper.release(payload));
}
