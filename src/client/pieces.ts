/**
 * Reads a streamed result over Server-Sent Events, which tell a stream that is over from one
 * that broke. A call is not repeated: its function may have run.
 */
import { type Connection, type Sending, STREAM_HEARTBEAT_TIMEOUT_MS } from "./connection.ts";
import { connectionLost } from "./connection-failure.ts";
import { DeploymentError } from "./errors.ts";
import { readEvents } from "./event-stream.ts";
import { errorOfEvent, foreignAnswer } from "./refusal.ts";

/** A piece in bytes has come as base64. */
type Decode = (data: string) => unknown;

/**
 * Yields the pieces of a call: JSON values, texts or bytes (`Uint8Array`). Rejects with a
 * `DeploymentError`, also after some pieces. Leaving the iteration ends the call.
 */
export async function* readPieces(
  connection: Connection,
  path: string,
  { headers, signal, ...sending }: Sending,
): AsyncGenerator<unknown, void, undefined> {
  const gone = new AbortController();
  const both = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
  const accepting = { ...headers, accept: "text/event-stream" };
  const request = { ...sending, headers: accepting, signal: both };
  try {
    const { body, decode } = await connection.send(path, request, openPieces);
    for await (const { event, data } of readEvents(body, STREAM_HEARTBEAT_TIMEOUT_MS)) {
      if (event === "end") {
        return;
      }
      if (event === "error") {
        throw errorOfEvent(data);
      }
      yield decode(data);
    }
    throw connectionLost(new Error("the stream ended without saying so"));
  } catch (err) {
    signal?.throwIfAborted();
    throw err instanceof DeploymentError ? err : connectionLost(err);
  } finally {
    gone.abort();
  }
}

function openPieces(response: Response) {
  const { body, headers } = response;
  const type = headers.get("content-type") ?? "";
  const decode = pieceDecoder(headers);
  if (body === null || decode === undefined || !type.startsWith("text/event-stream")) {
    void body?.cancel();
    throw foreignAnswer(response);
  }
  return { body, decode };
}

/** How the data of the pieces in a response are read; undefined for a response without pieces. */
export function pieceDecoder(headers: Headers): Decode | undefined {
  const pieces = headers.get("tessera-pieces");
  if (pieces === null) {
    return undefined;
  }
  return pieces === "bytes" ? bytesOf : (data) => JSON.parse(data) as unknown;
}

function bytesOf(data: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(JSON.parse(data) as string), (character) => character.charCodeAt(0));
}
