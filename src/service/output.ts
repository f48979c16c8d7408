/** The form in which callers get a result: a file, text or JSON. */
import { parseLenient } from "../collections/exact-json.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { FileValue, Payload, StoredFile } from "../protocol/messages.ts";
import { PLAIN_TEXT, textTypeOf } from "./piece-type.ts";
import { resultIsText } from "./schema.ts";

/** A result that is not a file. */
interface OutputText {
  readonly contentType: string;
  readonly text: string;
}

/**
 * The response body of a result: a file unchanged, the string of an endpoint whose
 * output is a string as text, everything else as JSON. `endpoint` is undefined when
 * the service no longer has it.
 */
export function outputBody(
  result: Payload,
  endpoint: EndpointManifest | undefined,
): FileValue | StoredFile | OutputText {
  const [file = result.text] = result.files;
  const isText = endpoint !== undefined && resultIsText(endpoint);
  if (file) {
    // A large text is written before anybody knows of which type it is.
    const isTyped = isText && file === result.text && file.contentType === PLAIN_TEXT;
    return isTyped ? { ...file, contentType: textTypeOf(endpoint) } : file;
  }
  if (isText) {
    const { value: text } = parseLenient(result.json);
    if (typeof text === "string") {
      return { contentType: textTypeOf(endpoint), text };
    }
  }
  return { contentType: "application/json", text: result.json };
}
