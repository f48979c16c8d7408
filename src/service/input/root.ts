/**
 * Root arguments: an endpoint may say that the whole body is the value of its one argument
 * (`rootArgument` of the manifest). An object with that argument alone is read by name where it
 * cannot be the value, because that is a text, a number, a list or a file; an argument that may be
 * an object gets every object as it was sent.
 */
import { isUtf8 } from "node:buffer";
import type { ScannedJson } from "../../collections/json-scan.ts";
import { problem } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
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

/** Whether a body of JSON is the value of the root argument, rather than the arguments by name. */
export function isRootValue(
  { input, files, rootArgument: name }: RootEndpoint,
  { members }: Pick<ScannedJson, "members">,
): boolean {
  if (name === undefined) {
    return false;
  }
  const isNamed = members?.length === 1 && members[0]?.name === name;
  if (Object.hasOwn(files, name)) {
    return !isNamed;
  }
  const properties = (input.properties ?? {}) as { readonly [name: string]: JsonSchema };
  return !isNamed || mayBeObject(properties[name] ?? {});
}

function mayBeObject({ type, anyOf }: JsonSchema): boolean {
  if (type !== undefined) {
    return [type].flat().includes("object");
  }
  return !Array.isArray(anyOf) || anyOf.some((each: JsonSchema) => mayBeObject(each));
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
