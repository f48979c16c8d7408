/**
 * Follows a stream of Server-Sent Events that can be resumed. After a broken connection it goes
 * on behind the last event (`Last-Event-ID`), so none is lost or repeated. Each received event
 * resets the count of attempts.
 */
import { type Connection, STREAM_HEARTBEAT_TIMEOUT_MS } from "./connection.ts";
import { connectionLost } from "./connection-failure.ts";
import { DeploymentError } from "./errors.ts";
import { readEvents, type ServerSentEvent } from "./event-stream.ts";
import { errorOfEvent, foreignAnswer } from "./refusal.ts";
import { mayRepeat, pause, pauseBefore } from "./retry.ts";

/** Broken event streams in a row after which the client gives up. */
const MAX_BROKEN_STREAMS = 8;

interface FollowingOptions {
  /** The id of the last event that is known; undefined: begin at the beginning. */
  readonly after: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** An event with the headers of the response that it came in. */
interface FollowedEvent extends ServerSentEvent {
  readonly headers: Headers;
}

/** Yields events until `end`. Rejects with the error of the event `error`, and when it gives up. */
export async function* followEvents(
  connection: Connection,
  path: string,
  { after, signal }: FollowingOptions,
): AsyncGenerator<FollowedEvent, void, undefined> {
  let last = after;
  for (let broken = 0; ; broken += 1) {
    const gone = new AbortController();
    const both = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    try {
      const { body, headers } = await open(connection, path, { last, signal: both });
      for await (const event of readEvents(body, STREAM_HEARTBEAT_TIMEOUT_MS)) {
        if (event.event === "end") {
          return;
        }
        if (event.event === "error") {
          throw errorOfEvent(event.data);
        }
        last = event.id ?? last;
        broken = 0;
        yield { ...event, headers };
      }
      throw connectionLost(new Error("the stream ended without saying so"));
    } catch (err) {
      signal?.throwIfAborted();
      const failed = err instanceof DeploymentError ? err : connectionLost(err);
      if (broken >= MAX_BROKEN_STREAMS || !mayRepeat(failed, true)) {
        throw failed;
      }
      await pause(pauseBefore(failed, broken), signal);
    } finally {
      gone.abort();
    }
  }
}

function open(
  connection: Connection,
  path: string,
  { last, signal }: { readonly last: string | undefined; readonly signal: AbortSignal },
) {
  const headers = {
    accept: "text/event-stream",
    ...(last !== undefined && { "last-event-id": last }),
  };
  const sending = { headers, signal, repeatable: true, quietMs: STREAM_HEARTBEAT_TIMEOUT_MS };
  return connection.send(path, sending, (response) => {
    const { body, headers } = response;
    const type = headers.get("content-type") ?? "";
    if (body === null || !type.startsWith("text/event-stream")) {
      throw foreignAnswer(response);
    }
    return { body, headers };
  });
}
