/**
 * JSON as a value of protobuf, which a message holds: its numbers are doubles, and it may be many
 * times as long as its text. What does not fit into it is refused, with where it can be fetched.
 */
import { fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { JsonFault, scanJson } from "../../collections/json-scan.ts";
import { problem } from "../../errors.ts";

/** Result, or arguments, in one RPC message: what gRPC clients take unless they are configured otherwise. */
export const MAX_RESULT_MESSAGE_BYTES = 4 * 1024 * 1024;

/**
 * How many times as long as its text a value may be: `0,` is a double of 9 bytes in two messages
 * that name it.
 */
const MAX_GROWTH_FACTOR = 6;

/** Text in which a number may be that a double does not hold; most texts have none. */
const MAYBE_INEXACT = /\d(?:\d{15}|[eE]\+?\d{3})|NaN|Infinity/;

/** What the content is and where else it is. */
export interface Elsewhere {
  /** Such as `the result`. */
  readonly what: string;
  /** Method and path, such as `GET /resize/get?task_id=…`. */
  readonly from: string;
}

/** The value of a JSON text. Throws RESULT_TOO_LARGE for one that a message cannot hold. */
export function toValue(text: string, elsewhere: Elsewhere): Value {
  refuseInexact(text, elsewhere);
  const value = fromJson(ValueSchema, JSON.parse(text) as JsonValue);
  if (text.length * MAX_GROWTH_FACTOR > MAX_RESULT_MESSAGE_BYTES) {
    refuseLarge(toBinary(ValueSchema, value).length, elsewhere);
  }
  return value;
}

/** Throws RESULT_TOO_LARGE for content of more bytes than a message may have. */
export function refuseLarge(bytes: number, { what, from }: Elsewhere): void {
  if (bytes > MAX_RESULT_MESSAGE_BYTES) {
    const message = `${what} has ${bytes} bytes, more than a message may have (${MAX_RESULT_MESSAGE_BYTES})`;
    throw refused(message, from);
  }
}

/** Throws RESULT_TOO_LARGE for a number that is no double. */
function refuseInexact(text: string, { what, from }: Elsewhere): void {
  if (!MAYBE_INEXACT.test(text)) {
    return;
  }
  const number = inexactIn(text);
  if (number !== undefined) {
    throw refused(`${what} has ${number}, which a message cannot hold as it is`, from);
  }
}

function inexactIn(text: string): string | undefined {
  try {
    const { inexact, hasConstants } = scanJson(Buffer.from(text), { constants: true });
    return hasConstants ? "NaN or an infinity" : inexact?.slice(0, 64);
  } catch (err) {
    if (err instanceof JsonFault) {
      return undefined;
    }
    throw err;
  }
}

function refused(message: string, from: string): Error {
  const found = `${message}: fetch it over HTTP, ${from}`;
  return problem("RESULT_TOO_LARGE", found, { code: Code.OutOfRange });
}
