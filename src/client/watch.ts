/**
 * Follows a task's log over Server-Sent Events. After a broken connection it
 * resumes behind the last event (`Last-Event-ID`), so no event is lost or
 * repeated. Each received event resets the count of attempts.
 */

import { type CallOptions, type Connection, STREAM_HEARTBEAT_TIMEOUT_MS } from "./connection.ts";
import { connectionLost } from "./connection-failure.ts";
import { DeploymentError, ForeignAnswerError } from "./errors.ts";
import { readEvents, type ServerSentEvent } from "./event-stream.ts";
import { errorOfEvent, foreignAnswer, parseObject } from "./refusal.ts";
import { mayRepeat, pause, pauseBefore } from "./retry.ts";
import { readEvent, type TaskLogEvent } from "./state.ts";

/** Broken event streams in a row after which the client gives up. */
const MAX_BROKEN_STREAMS = 8;

export interface WatchOptions extends Pick<CallOptions, "signal"> {
  /** Yields only events after this sequence number. Default: from the beginning. */
  readonly after?: number;
}

export async function* watchTask(
  connection: Connection,
  path: string,
  { signal, after = 0 }: WatchOptions,
): AsyncGenerator<TaskLogEvent, void, undefined> {
  let last = after;
  for (let broken = 0; ; broken += 1) {
    const gone = new AbortController();
    const both = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    try {
      const stream = await open(connection, path, { last, signal: both });
      for await (const event of readEvents(stream, STREAM_HEARTBEAT_TIMEOUT_MS)) {
        if (event.event === "end") {
          return;
        }
        const read = parse(event);
        if (read !== undefined) {
          last = read.sequence;
          broken = 0;
          yield read;
        }
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
  { last, signal }: { readonly last: number; readonly signal: AbortSignal },
) {
  const headers = { accept: "text/event-stream", "last-event-id": String(last) };
  return connection.send(path, { headers, signal, repeatable: true }, (response) => {
    const type = response.headers.get("content-type") ?? "";
    if (response.body === null || !type.startsWith("text/event-stream")) {
      throw foreignAnswer(response);
    }
    return response.body;
  });
}

function parse({ event, data }: ServerSentEvent): TaskLogEvent | undefined {
  const json = parseObject(data);
  if (json === undefined) {
    throw new ForeignAnswerError("an event came that is not JSON: does a proxy in between answer?");
  }
  if (event === "error") {
    throw errorOfEvent(data);
  }
  return readEvent(json);
}
