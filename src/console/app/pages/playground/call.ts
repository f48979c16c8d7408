/** A call of an endpoint with the arguments of its form. */
import { bodyOf } from "../../../../client/arguments.ts";
import { CallError } from "../../api/errors.ts";
import { type LoadedResult, loadedFrom } from "../../api/results.ts";
import { eventsOf } from "../../api/server-events.ts";
import type { GivenArguments } from "./arguments.ts";
import { type PlaygroundEndpoint, pathOf } from "./description.ts";
import type { PlaygroundTarget } from "./target.ts";

/** What came of a call so far. */
export type CallOutput =
  | { readonly kind: "nothing" }
  | { readonly kind: "task"; readonly taskId: string }
  | { readonly kind: "result"; readonly result: LoadedResult; readonly tookMs: number }
  | {
      readonly kind: "pieces";
      readonly text: string;
      readonly count: number;
      /** Undefined until the end. */
      readonly tookMs?: number;
    }
  | { readonly kind: "stopped"; readonly tookMs: number }
  | {
      readonly kind: "failure";
      readonly error: unknown;
      readonly tookMs: number;
      /** What is wrong with arguments that have no field. */
      readonly violations?: readonly string[];
      /** The pieces that came before it. */
      readonly after?: CallOutput & { readonly kind: "pieces" };
    };

/** Yields what comes of the call: the last is its end. It never throws. */
export async function* called(
  target: PlaygroundTarget,
  endpoint: PlaygroundEndpoint,
  given: GivenArguments,
  signal: AbortSignal,
): AsyncGenerator<CallOutput, void, undefined> {
  const startedMs = Date.now();
  let pieces: (CallOutput & { readonly kind: "pieces" }) | undefined;
  try {
    const response = await post(target, endpoint, given, signal);
    if (endpoint.isTask) {
      const { task_id: taskId } = (await response.json()) as { readonly task_id: string };
      yield { kind: "task", taskId };
    } else if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      for await (pieces of piecesOf(response, signal)) {
        yield pieces;
      }
      yield { kind: "pieces", text: "", count: 0, ...pieces, tookMs: Date.now() - startedMs };
    } else {
      const result = await loadedFrom(response, () => Number.POSITIVE_INFINITY);
      yield { kind: "result", result, tookMs: Date.now() - startedMs };
    }
  } catch (error) {
    const tookMs = Date.now() - startedMs;
    const after = pieces && { after: { ...pieces, tookMs } };
    yield signal.aborted && pieces === undefined
      ? { kind: "stopped", tookMs }
      : {
          kind: "failure",
          error: signal.aborted ? new CallError("Stopped.") : error,
          tookMs,
          ...after,
        };
  }
}

function post(
  { send }: PlaygroundTarget,
  endpoint: PlaygroundEndpoint,
  { values, files }: GivenArguments,
  signal: AbortSignal,
): Promise<Response> {
  const { contentType, make } = bodyOf({ ...values, ...files });
  // The bytes of a file are no events: they are shown as what they make.
  const showsPieces =
    endpoint.streams && /^(text\/|application\/x-ndjson)/.test(endpoint.resultType);
  return send(pathOf(endpoint, endpoint.isTask ? "submit" : undefined), {
    method: "POST",
    headers: {
      ...(contentType !== undefined && { "content-type": contentType }),
      ...(showsPieces && { accept: "text/event-stream, */*;q=0.1" }),
    },
    body: make() ?? null,
    signal,
  });
}

/** The pieces so far, with each that comes, to their end. */
async function* piecesOf(response: Response, signal: AbortSignal) {
  const isText = response.headers.get("tessera-pieces") === "text";
  let [text, count] = ["", 0];
  yield { kind: "pieces" as const, text, count };
  for await (const { event, data } of eventsOf(response, signal)) {
    if (event === "end") {
      return;
    }
    text += isText ? JSON.parse(data) : `${data}\n`;
    count += 1;
    yield { kind: "pieces" as const, text, count };
  }
  throw new CallError("The connection broke before the end.");
}
