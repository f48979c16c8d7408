/**
 * Reads Server-Sent Events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation)
 * of the kind that our server writes: the field `retry` is not among them.
 */

export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
}

/** Far beyond any event of ours; an answer that never ends a line is none. */
const MAX_EVENT_CHARACTERS = 4 * 1024 * 1024;

/**
 * The events of a stream, until its end. Rejects with what the stream rejects
 * with, and when nothing comes for `idleMs`, not even a comment. Leaving the
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
    // Of a stream that is broken already there is nothing more to hear.
    reader.cancel().catch(() => {});
  }
}

function parseBlock(block: string): ServerSentEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") {
      event = value;
    } else if (field === "data") {
      data.push(value);
    }
  }
  return data.length === 0 ? undefined : { event, data: data.join("\n") };
}

function within<T>(promise: Promise<T>, maxMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing came for ${maxMs} ms`)), maxMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
