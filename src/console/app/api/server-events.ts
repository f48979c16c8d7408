/** Server-Sent Events of an answer to `fetch`: EventSource cannot send a token. */
import { STREAM_HEARTBEAT_TIMEOUT_MS } from "../../../client/connection.ts";
import { readEvents, type ServerSentEvent } from "../../../client/event-stream.ts";
import { CallError, readError, unreachable } from "./errors.ts";

/** Ends with the answer; throws a `CallError` for the event `error`, and when the connection breaks. */
export async function* eventsOf(
  { body }: Response,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  try {
    for await (const event of body === null ? [] : readEvents(body, STREAM_HEARTBEAT_TIMEOUT_MS)) {
      if (event.event === "error") {
        throw readError({}, event.data);
      }
      yield event;
    }
  } catch (err) {
    throw signal.aborted || err instanceof CallError ? err : unreachable(err);
  }
}
