/**
 * A task's log as it grows. A connection that breaks is taken up again after
 * the last event that came (`Last-Event-ID`), so that none is lost or told
 * twice; attempts are counted anew whenever an event has come.
 */
import { connectionLost } from "./breakage.ts";
import type { CallOptions, Connection } from "./connection.ts";
import { DeploymentError, ForeignAnswerError } from "./errors.ts";
import { readEvents, type ServerSentEvent } from "./event-stream.ts";
import { foreignAnswer, fromWire, parseObject } from "./refusal.ts";
import { mayRepeat, pause, pauseBefore } from "./repeat.ts";
import { readEvent, type TaskLogEvent } from "./state.ts";

/** The server sends a comment every 15 s where there is nothing else to send. */
const IDLE_MS = 45_000;
const MAX_BROKEN = 8;

export interface WatchOptions extends Pick<CallOptions, "signal"> {
  /** Only events after this one. Default: from the beginning. */
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
      for await (const event of readEvents(stream, IDLE_MS)) {
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
      if (broken >= MAX_BROKEN || !mayRepeat(failed, true)) {
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
  if (event !== "error") {
    return readEvent(json);
  }
  const status = json.code === "unavailable" ? 503 : json.code === "resource_exhausted" ? 429 : 500;
  throw fromWire(json, { status }) ?? new ForeignAnswerError(String(json.message));
}
