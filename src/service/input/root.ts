/**
 * Root arguments: an endpoint may say that the whole body is the value of its one argument
 * (`rootArgument` of the manifest). An object with that argument alone is read by name all the
 * same, which is how every other client sends it.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { problem } from "../../errors.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { FileValue } from "../../protocol/messages.ts";
import { refuseCharset } from "./charset.ts";
import { isFormType, isJsonType, mediaTypeOf } from "./media-type.ts";

type RootEndpoint = Pick<EndpointManifest, "input" | "files" | "rootArgument">;

/** Bytes of a body that are looked at to tell a file from arguments by name. */
const MAX_PREFIX_BYTES = 256;
/** Longest URL that is told from a file. */
const MAX_URL_BYTES = 2_048;

/** The value of a root argument that is a text or a file; undefined for every other body. */
export function bareBody(
  { input, files, rootArgument: name }: RootEndpoint,
  { contentType, data }: { readonly contentType: string; readonly data: Uint8Array },
): { readonly name: string; readonly value: string | FileValue } | undefined {
  if (name === undefined) {
    return undefined;
  }
  const mediaType = mediaTypeOf(contentType);
  if (isFormType(mediaType)) {
    return undefined;
  }
  if (Object.hasOwn(files, name)) {
    return isNamedFile(name, mediaType, data)
      ? undefined
      : { name, value: fileOf(name, { contentType, data }) };
  }
  const properties = (input.properties ?? {}) as { readonly [name: string]: { type?: unknown } };
  const isJson =
    isJsonType(mediaType) && /^\s*["{]/.test(textOf(data.subarray(0, MAX_PREFIX_BYTES)));
  if (properties[name]?.type !== "string" || isJson) {
    return undefined;
  }
  refuseCharset(contentType);
  if (!isUtf8(data)) {
    throw problem("BODY_MALFORMED", "the body is not UTF-8, which text has to be");
  }
  return { name, value: textOf(data) };
}

/** The arguments of a JSON body: the value of the root argument, or all of them by name. */
export function argumentsOf({ rootArgument: name }: RootEndpoint, value: JsonValue): JsonValue {
  return name === undefined || isNamed(name, value) ? value : { [name]: value };
}

function isNamed(name: string, value: JsonValue): value is JsonObject {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.hasOwn(value, name) &&
    Object.keys(value).length === 1
  );
}

/** True for JSON with the file as a `data:` URL. Some clients call every file JSON. */
function isNamedFile(name: string, mediaType: string, data: Uint8Array): boolean {
  const start = textOf(data.subarray(0, MAX_PREFIX_BYTES)).replaceAll(/\s/g, "");
  return isJsonType(mediaType) && start.startsWith(`{${JSON.stringify(name)}:"data:`);
}

function fileOf(
  name: string,
  { contentType, data }: { readonly contentType: string; readonly data: Uint8Array },
): FileValue {
  const isUntold = contentType === "" || isJsonType(mediaTypeOf(contentType));
  if (isUntold && data.length <= MAX_URL_BYTES && /^https?:\/\/\S+$/.test(textOf(data))) {
    const description = "is a URL, and files are not fetched from URLs: send the file itself";
    throw problem("ARGUMENTS_INVALID", `argument ${JSON.stringify(name)} ${description}`, {
      violations: [{ field: name, description }],
    });
  }
  return { contentType: isUntold ? "application/octet-stream" : contentType, data };
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
