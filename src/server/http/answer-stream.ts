/**
 * Streaming of answers over HTTP, in one of two formats by `Accept`:
 *
 * - `text/event-stream`: each answer is an event with the JSON as its data.
 *   The stream ends with the event `end`, or `error` with the error's JSON, so
 *   that a browser knows that it is over rather than broken. Comments keep
 *   idle connections alive.
 * - anything else: NDJSON, one line of JSON for each answer; an error is a
 *   last line `{"error": …}`.
 *
 * An error before the first answer becomes an ordinary error response. The
 * wait for that answer is bounded, so that a client of a quiet stream sees
 * that it is connected.
 */
import type { JsonValue, Message } from "@bufbuild/protobuf";
import { type Problem, toProblem } from "../../errors.ts";
import { within } from "../../time/race.ts";
import { errorJson } from "./problem.ts";

/** Silence after which an event stream gets a comment: below the 30 s and 60 s of common proxies. */
export const STREAM_HEARTBEAT_INTERVAL_MS = 15_000;

/** How a stream is framed. Empty text is not sent. */
export interface StreamFraming {
  readonly contentType: string;
  /** The text that ends the stream. */
  end(): string;
  /** The text that ends it with an error; undefined where only a broken connection can tell. */
  error(found: Problem): string | undefined;
  /** Sent while there are no answers. */
  readonly keepAlive: string;
}

export interface StreamFormat extends StreamFraming {
  item(json: JsonValue): string;
}

const EVENTS: StreamFormat = {
  contentType: "text/event-stream; charset=utf-8",
  item: (json) => `data: ${JSON.stringify(json)}\n\n`,
  end: () => "event: end\ndata: {}\n\n",
  error: (found) => `event: error\ndata: ${JSON.stringify(errorJson(found))}\n\n`,
  keepAlive: ": keep-alive\n\n",
};

const LINES: StreamFormat = {
  contentType: "application/x-ndjson; charset=utf-8",
  item: (json) => `${JSON.stringify(json)}\n`,
  end: () => "",
  error: (found) => `${JSON.stringify({ error: errorJson(found) })}\n`,
  keepAlive: "",
};

/** The format a client prefers by its `Accept` header (RFC 9110, 12.5.1); NDJSON by default. */
export function chooseFormat(accept: string | undefined): StreamFormat {
  const quality = (type: string) => {
    const range = accept
      ?.split(",")
      .find((one) => one.split(";")[0]?.trim().toLowerCase() === type);
    return range === undefined ? 0 : Number(/;\s*q=([\d.]+)/i.exec(range)?.[1] ?? 1);
  };
  const lines = Math.max(quality("application/x-ndjson"), quality("application/ndjson"));
  return quality("text/event-stream") > lines ? EVENTS : LINES;
}

/** A stream that has been started, with its first answer. */
interface OpenedStream {
  readonly first: Promise<IteratorResult<Message>>;
  readonly rest: AsyncIterator<Message>;
  /** True if the first answer did not come in time. */
  readonly late: boolean;
}

/**
 * Starts a stream and waits for its first answer, at most `maxWaitMs` if given.
 * Errors: those that the stream throws in that time.
 */
export async function openStream(
  stream: AsyncIterable<Message>,
  maxWaitMs?: number,
): Promise<OpenedStream> {
  const rest = stream[Symbol.asyncIterator]();
  const first = rest.next();
  const result = await (maxWaitMs === undefined ? first : within(first, maxWaitMs, nothing));
  return { first, rest, late: result === undefined };
}

interface FramesOptions {
  readonly format: StreamFraming;
  readonly keepAliveMs: number;
  /** What is sent of an answer. */
  item(message: Message): string | Uint8Array;
  /** Sends status and headers before there is anything else to send. */
  flush?(): void;
  /** Called with an error in the middle of the stream. */
  onError(found: Problem): void;
}

/** What is sent of a stream. Leaving the iterator ends the call. */
export async function* frames(
  { first, rest, late }: OpenedStream,
  { format, keepAliveMs, item, flush, onError }: FramesOptions,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  let next = first;
  if (late) {
    flush?.();
  }
  try {
    while (true) {
      const result = await within(next, keepAliveMs, nothing);
      if (result === undefined) {
        if (format.keepAlive !== "") {
          yield format.keepAlive;
        }
      } else if (result.done === true) {
        const end = format.end();
        if (end !== "") {
          yield end;
        }
        return;
      } else {
        yield item(result.value);
        next = rest.next();
      }
    }
  } catch (thrown) {
    const found = toProblem(thrown);
    onError(found);
    const text = format.error(found);
    if (text === undefined) {
      throw found;
    }
    yield text;
  } finally {
    await rest.return?.();
  }
}

/** The raw bytes of a stream of `google.api.HttpBody`; an error truncates the response. */
export async function* rawChunks(
  { first, rest }: OpenedStream,
  data: (message: Message) => Uint8Array,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (let result = await first; result.done !== true; result = await rest.next()) {
      yield data(result.value);
    }
  } finally {
    await rest.return?.();
  }
}

const nothing = () => undefined;
