/**
 * Server-streaming calls of the Connect protocol in JSON
 * (https://connectrpc.com/docs/protocol#streaming-rpcs): the request and each message are
 * envelopes of a flag, a length of 4 bytes and the JSON; the last one tells how the stream ended.
 */
import type { DescMessage, MessageJsonType } from "@bufbuild/protobuf";
import { CallError, readError, unreachable } from "./errors.ts";

/** The flag and the length before the JSON of a message. */
const HEADER_BYTES = 5;
/** The flag of the last message. */
const END_OF_STREAM = 0b10;

/** An envelope that a server sends is far smaller. */
const MAX_ENVELOPE_BYTES = 16 * 1024 * 1024;

/**
 * The HTTP statuses of codes that pages tell apart
 * (https://connectrpc.com/docs/protocol#error-codes): that of a stream is 200 whatever its end.
 */
const STATUSES: Readonly<Record<string, number>> = {
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  resource_exhausted: 429,
  unavailable: 503,
  deadline_exceeded: 504,
};

interface Streaming {
  readonly methodKind: "server_streaming";
  readonly input: DescMessage;
  readonly output: DescMessage;
}

export interface StreamOptions {
  readonly signal: AbortSignal;
  /** Called when the server has answered, which it does with the first message. */
  readonly onOpen: () => void;
}

/** Reads the messages of a stream until it ends. Throws its error, and when the connection breaks. */
export async function* watch<Method extends Streaming>(
  path: `/${string}/${string}`,
  request: MessageJsonType<Method["input"]>,
  { signal, onOpen }: StreamOptions,
): AsyncGenerator<MessageJsonType<Method["output"]>, void, undefined> {
  let response: Response;
  try {
    const headers = { "content-type": "application/connect+json", "connect-protocol-version": "1" };
    response = await fetch(path, { method: "POST", headers, body: envelope(request), signal });
  } catch (err) {
    throw signal.aborted ? err : unreachable(err);
  }
  if (!response.ok || response.body === null) {
    throw readError(response, await response.text());
  }
  onOpen();
  for await (const { flags, text } of envelopes(response.body, signal)) {
    if ((flags & END_OF_STREAM) === 0) {
      yield JSON.parse(text);
      continue;
    }
    const { error } = JSON.parse(text) as { readonly error?: { readonly code: string } };
    if (error !== undefined) {
      const status = STATUSES[error.code] ?? 500;
      throw readError({ status, statusText: "" }, JSON.stringify(error));
    }
    return;
  }
  throw new CallError("The connection broke.");
}

function envelope(message: unknown): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(JSON.stringify(message));
  const bytes = new Uint8Array(HEADER_BYTES + json.length);
  new DataView(bytes.buffer).setUint32(1, json.length);
  bytes.set(json, HEADER_BYTES);
  return bytes;
}

async function* envelopes(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<{ readonly flags: number; readonly text: string }, void, undefined> {
  const reader = body.getReader();
  let buffered = new Uint8Array(0);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      buffered = joined(buffered, value);
      while (buffered.length >= HEADER_BYTES) {
        const bytes = new DataView(buffered.buffer, buffered.byteOffset).getUint32(1);
        if (bytes > MAX_ENVELOPE_BYTES) {
          throw new CallError("The server sent a message that is too large.");
        }
        if (buffered.length < HEADER_BYTES + bytes) {
          break;
        }
        const text = new TextDecoder().decode(
          buffered.subarray(HEADER_BYTES, HEADER_BYTES + bytes),
        );
        yield { flags: buffered[0] ?? 0, text };
        buffered = buffered.subarray(HEADER_BYTES + bytes);
      }
    }
  } catch (err) {
    throw signal.aborted || err instanceof CallError ? err : unreachable(err);
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
