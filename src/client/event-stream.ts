/**
 * A parser for Server-Sent Events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation)
 * as our server writes them, without the field `retry`.
 */
import { within } from "./attended.ts";

export interface ServerSentEvent {
  /** Undefined for an event without one. */
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/**
 * Event of a stream that the client reads: far beyond any event of the platform; a response
 * that never ends a line is not an event stream.
 */
const MAX_EVENT_CHARACTERS = 4 * 1024 * 1024;

/**
 * Yields the events of a stream until its end. Rejects with the stream's error,
 * and when nothing arrives for `idleMs`, not even a comment. Leaving the
 * iteration closes the stream.
 */
export async function* readEvents(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  idleMs: number,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), idleMs);
      if (done) {
        return;
      }
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      if (rest.length > MAX_EVENT_CHARACTERS) {
        throw new Error("an event is too large");
      }
      for (const block of blocks) {
        const event = parseBlock(block);
        if (event !== undefined) {
          yield event;
        }
      }
    }
  } finally {
    // The stream may be broken already; that is not a second error.
    reader.cancel().catch(() => {});
  }
}

function parseBlock(block: string): ServerSentEvent | undefined {
  let id: string | undefined;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") {
      event = value;
    } else if (field === "data") {
      data.push(value);
    } else if (field === "id") {
      id = value;
    }
  }
  return data.length === 0 ? undefined : { id, event, data: data.join("\n") };
}
