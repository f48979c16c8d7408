/**
 * `ETag` and `If-Match` (RFC 9110, sections 8.8.3 and 13.1.1) for resources with a `version`: the
 * tag of version 3 is `"3"`. In REST the header is another way to set the expected version of a
 * change, and what has another version by then is answered with 412 instead of 409.
 *
 * A version counts changes only, not what the server notes by itself, such as the last use of a
 * token. So `If-None-Match` is not looked at, and a read always gives the whole resource.
 */
import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Problem, problem } from "../../errors.ts";
import { invalidField } from "./decode.ts";
import { dotted, sameValue, setAt, valueAt } from "./fields.ts";

/** The largest version: an int32. */
const MAX_VERSION = 2 ** 31 - 1;

/** One entity tag, or any. */
const TAG = /^(?:\*|(W\/)?"([\x21\x23-\x7e\x80-\xff]*)")$/;

const NAME = "If-Match";

/** The field with the version of a resource; undefined if it has none. */
export function versionFieldOf(desc: DescMessage): DescField | undefined {
  return desc.fields.find(
    (field) =>
      field.name === "version" && field.fieldKind === "scalar" && field.scalar === ScalarType.INT32,
  );
}

/** The `ETag` of a resource. */
export function tagOf(message: Message, field: DescField): string {
  const fields = message as unknown as { readonly [localName: string]: unknown };
  return `"${fields[field.localName]}"`;
}

/**
 * Puts the version that the header expects into the JSON of a request.
 *
 * @param place the fields that lead to the version; undefined: this change does not look at it.
 * Errors: REQUEST_INVALID for a malformed header, one that contradicts the body, and one on a change
 * that cannot keep it; VERSION_CONFLICT for a tag that no version has.
 */
export function bindVersion(
  json: JsonObject,
  header: string,
  place: readonly DescField[] | undefined,
): void {
  const found = TAG.exec(header.trim());
  if (found === null) {
    throw problem(
      "REQUEST_INVALID",
      `the header ${NAME} has to be one ETag as it was read, such as "3" with its quotes, or *`,
    );
  }
  const [, weak, tag] = found;
  if (tag === undefined) {
    return;
  }
  const field = place?.at(-1);
  if (place === undefined || field === undefined) {
    throw problem("REQUEST_INVALID", `this call does not look at ${NAME}: leave the header out`);
  }
  const version = Number(tag);
  if (weak !== undefined || !/^[1-9]\d*$/.test(tag) || version > MAX_VERSION) {
    throw problem(
      "VERSION_CONFLICT",
      `the header ${NAME} has an ETag that no version has: read the resource again`,
    );
  }
  const given = valueAt(json, place) ?? 0;
  if (given !== 0 && !sameValue(field, given, version)) {
    throw invalidField(
      dotted(place),
      `contradicts the header ${NAME}: give the version in one of the two places, or the same in both`,
    );
  }
  setAt(json, place, version);
}

/** The status of an error of a request with this header; undefined: the error's own. */
export function preconditionStatus(header: string, { reason }: Problem): 412 | undefined {
  return reason === "VERSION_CONFLICT" && header !== "" && header.trim() !== "*" ? 412 : undefined;
}
