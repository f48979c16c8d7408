/** Parsing of JSON bodies. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { faultOfJson } from "../../collections/json-bounds.ts";
import { problem } from "../../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Parses a body as JSON. Errors: BODY_MALFORMED, with the parser's message, or for a body beyond the bounds. */
export function parseJson(body: Uint8Array, maxValues: number): JsonValue {
  const fault = faultOfJson(body, undefined, maxValues);
  if (fault !== undefined) {
    throw problem("BODY_MALFORMED", `the body ${fault}`);
  }
  try {
    return JSON.parse(utf8.decode(body)) as JsonValue;
  } catch (cause) {
    const detail = cause instanceof SyntaxError ? cause.message : "it is not UTF-8";
    throw problem("BODY_MALFORMED", `the body is not valid JSON: ${detail}`, { cause });
  }
}

/** True for a JSON object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
