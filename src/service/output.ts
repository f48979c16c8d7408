/** The form in which callers get a result: a file, text or JSON. */
import { parseLenient } from "../collections/exact-json.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { FileValue, Payload, StoredFile } from "../protocol/messages.ts";
import { resultIsText } from "./schema.ts";

/** A result that is not a file. */
export interface OutputText {
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
  if (file) {
    return file;
  }
  if (endpoint && resultIsText(endpoint)) {
    const { value: text } = parseLenient(result.json);
    if (typeof text === "string") {
      return { contentType: "text/plain; charset=utf-8", text };
    }
  }
  return { contentType: "application/json", text: result.json };
}
