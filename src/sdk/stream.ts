/** `stream()`: the output of an endpoint that gives its result in pieces, as it makes them. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { STREAM } from "./symbols.ts";

/** The `output` of an endpoint that streams; see `stream()`. */
export interface StreamSchema<Piece extends StandardSchemaV1 = StandardSchemaV1> {
  readonly [STREAM]: Piece;
}

/**
 * The output of a function that streams: an async generator, or any function that returns
 * an async iterable. `piece` is the schema of one piece and decides how callers get them: a
 * schema of strings makes a text, `file()` the bytes of one file, any other schema JSON
 * values. A piece has at most 262,144 characters of text or JSON, or as many bytes.
 */
export function stream<Piece extends StandardSchemaV1>(piece: Piece): StreamSchema<Piece> {
  return { [STREAM]: piece };
}

/** The schema of a piece; undefined for an output that is no stream. */
export function pieceSchemaOf(output: unknown): StandardSchemaV1 | undefined {
  return typeof output === "object" && output !== null
    ? (output as Partial<StreamSchema>)[STREAM]
    : undefined;
}

/** True for `async function*` and `async *method`. */
export function isAsyncGenerator(run: unknown): boolean {
  return Object.prototype.toString.call(run) === "[object AsyncGeneratorFunction]";
}
