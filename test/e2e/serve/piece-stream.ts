/** Reads of a task's streamed result, one event at a time. */
import { readEvents } from "../../../src/client/event-stream.ts";

export interface PieceEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** The events of `GET /{endpoint}/stream`, or of `/events`; leaving the iteration leaves the stream. */
export async function* pieceEvents(
  origin: string,
  path: string,
  options: { readonly after?: string; readonly signal?: AbortSignal } = {},
): AsyncGenerator<PieceEvent, void, undefined> {
  const { after, signal } = options;
  const headers = {
    accept: "text/event-stream",
    ...(after !== undefined && { "last-event-id": after }),
  };
  const res = await fetch(origin + path, { headers, ...(signal && { signal }) });
  if (res.body === null || res.status !== 200) {
    throw new Error(`${res.status} ${await res.text()}`);
  }
  for await (const { id = "", event, data } of readEvents(res.body, 30_000)) {
    yield { id, event, data: JSON.parse(data) as unknown };
  }
}

/** All events, in short: the data of pieces, and the names of others. */
export async function told(events: AsyncIterable<PieceEvent>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const { event, data } of events) {
    all.push(event === "message" ? data : event);
  }
  return all;
}
