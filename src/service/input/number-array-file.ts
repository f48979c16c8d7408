/**
 * Arrays of numbers as a worker takes them (`arrays` of the manifest): each is a file of the call,
 * after those that callers sent, with its doubles in little-endian order and its shape in its
 * type. In the JSON stands the file's index in an object, which is no array to any reader.
 */
import { endianness } from "node:os";
import type { NumberArray } from "../../collections/number-array.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { FileValue } from "../../protocol/messages.ts";

/** Also in `clients/python/src/tessera/sdk/data.py`. */
const DOUBLES_TYPE = "application/vnd.tessera.doubles";

const IS_LITTLE = endianness() === "LE";

/** The arguments of an endpoint that may be sent so. What is stored with a task is its JSON. */
export function arrayArguments({
  kind,
  arrays = [],
}: Pick<EndpointManifest, "kind" | "arrays">): readonly string[] {
  return kind === "api" && IS_LITTLE ? arrays : [];
}

export function arrayFile({ numbers, shape }: NumberArray): FileValue {
  const contentType = `${DOUBLES_TYPE};shape=${shape.join(",")}`;
  return { contentType, data: new Uint8Array(numbers.buffer) };
}

/** What stands in the JSON for the file with this index. */
export function arrayText(index: number): string {
  return `{"$array":${index}}`;
}
