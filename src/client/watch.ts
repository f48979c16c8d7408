/** Follows a task's log; no event is lost or repeated when the connection breaks. */
import type { CallOptions, Connection } from "./connection.ts";
import { ForeignAnswerError } from "./errors.ts";
import { followEvents } from "./following.ts";
import { parseObject } from "./refusal.ts";
import { readEvent, type TaskLogEvent } from "./state.ts";

export interface WatchOptions extends Pick<CallOptions, "signal"> {
  /** Yields only events after this sequence number. Default: from the beginning. */
  readonly after?: number;
}

export async function* watchTask(
  connection: Connection,
  path: string,
  { signal, after = 0 }: WatchOptions,
): AsyncGenerator<TaskLogEvent, void, undefined> {
  for await (const { data } of followEvents(connection, path, { after: String(after), signal })) {
    const json = parseObject(data);
    if (json === undefined) {
      const message = "an event came that is not JSON: does a proxy in between answer?";
      throw new ForeignAnswerError(message);
    }
    const event = readEvent(json);
    if (event !== undefined) {
      yield event;
    }
  }
}
