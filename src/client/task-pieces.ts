/**
 * Follows the streamed result of a task: what it has given, then new pieces as they come. No
 * piece is lost or repeated when the connection breaks.
 */
import type { CallOptions, Connection } from "./connection.ts";
import { ForeignAnswerError, TaskRestartedError } from "./errors.ts";
import { followEvents } from "./following.ts";
import { pieceDecoder } from "./pieces.ts";

export interface TaskStreamOptions extends Pick<CallOptions, "signal"> {
  /**
   * Called when the task begins anew, after a failure or the death of a worker, with its
   * attempt: all pieces before are void, and the next ones begin with the first. Default: the
   * stream rejects with a `TaskRestartedError`.
   */
  readonly onRestart?: (attempt: number) => void;
}

export async function* readTaskPieces(
  connection: Connection,
  path: string,
  { signal, onRestart = restarted }: TaskStreamOptions,
): AsyncGenerator<unknown, void, undefined> {
  for await (const event of followEvents(connection, path, { after: undefined, signal })) {
    const decode = pieceDecoder(event.headers);
    if (decode === undefined) {
      throw new ForeignAnswerError(
        "events came that are no pieces: does a proxy in between answer?",
      );
    }
    if (event.event === "restart") {
      const { attempt } = JSON.parse(event.data) as { readonly attempt?: unknown };
      onRestart(Number(attempt));
    } else {
      yield decode(event.data);
    }
  }
}

function restarted(attempt: number): never {
  throw new TaskRestartedError(
    `the task began anew with attempt ${attempt}, and the pieces before are void: stream it again, or give onRestart`,
  );
}
