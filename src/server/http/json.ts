/** Reads bodies that are JSON. */
import type { JsonValue } from "@bufbuild/protobuf";
import { problem } from "../../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Errors: BODY_MALFORMED, with the parser's own words. */
export function parseJson(body: Uint8Array): JsonValue {
  try {
    return JSON.parse(utf8.decode(body)) as JsonValue;
  } catch (cause) {
    const detail = cause instanceof SyntaxError ? cause.message : "it is not UTF-8";
    throw problem("BODY_MALFORMED", `the body is not valid JSON: ${detail}`, { cause });
  }
}
