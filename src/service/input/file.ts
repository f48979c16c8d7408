/** File arguments: reads `data:` URLs, and checks files against their argument's limits. */
import type { FileArgument } from "../../protocol/manifest.ts";
import type { FileFacts, FileValue, StoredFile } from "../../protocol/messages.ts";
import { typeTaken } from "./media-type.ts";

/** A file that the caller sent. */
export type GivenFile = FileValue | StoredFile;

const DATA_URL = /^data:([^,;]*)((?:;[^,;]*)*),(.*)$/s;

/**
 * Reads a file given as a `data:` URL (RFC 2397). Returns the file, or what is
 * wrong. Other URLs are not fetched, because callers could use that to reach the
 * service's internal network (SSRF).
 */
export function fileFromDataUrl(value: unknown): FileValue | string {
  if (typeof value !== "string") {
    return "must be a file: send it as multipart/form-data, or as a data: URL";
  }
  const match = DATA_URL.exec(value);
  if (match === null) {
    return /^[a-z][a-z0-9+.-]*:/i.test(value)
      ? "is a URL, and files are not fetched from URLs: send the file itself"
      : "must be a file: send it as multipart/form-data, or as a data: URL";
  }
  const [, mediaType = "", options = "", body = ""] = match;
  const contentType = mediaType === "" ? "text/plain" : mediaType;
  try {
    const data = options.toLowerCase().split(";").includes("base64")
      ? Buffer.from(decodeURIComponent(body), "base64")
      : Buffer.from(decodeURIComponent(body));
    return { contentType, data };
  } catch {
    return "is a data: URL with broken percent-encoding";
  }
}

/** What is wrong with the files given for an argument; undefined when they fit. */
export function fileViolation(
  argument: FileArgument,
  files: readonly (FileValue | StoredFile)[] | undefined,
): string | undefined {
  if (files === undefined) {
    return argument.required ? "is required: send a file" : undefined;
  }
  if (!argument.array && files.length > 1) {
    return `takes one file, ${files.length} were sent`;
  }
  const { minItems, maxItems, contentType, maxBytes } = argument;
  if (minItems !== undefined && files.length < minItems) {
    return `takes at least ${minItems} files, ${files.length} were sent`;
  }
  if (maxItems !== undefined && files.length > maxItems) {
    return `takes at most ${maxItems} files, ${files.length} were sent`;
  }
  for (const file of files) {
    const bytes = "blob" in file ? file.blob.size : file.data.byteLength;
    if (contentType !== undefined && typeTaken(contentType, file.contentType) === undefined) {
      return `takes ${contentType}, ${nameOf(file)} is ${file.contentType}`;
    }
    if (maxBytes !== undefined && bytes > maxBytes) {
      return tooLarge(maxBytes, { ...file, bytes });
    }
  }
  return undefined;
}

/** The message for a file that is too large. */
export function tooLarge(maxBytes: number, file: FileFacts & { readonly bytes: number }): string {
  return `takes files of at most ${maxBytes} bytes, ${nameOf(file)} has ${file.bytes}`;
}

function nameOf({ filename }: FileFacts): string {
  return filename === undefined ? "a file" : JSON.stringify(filename);
}
