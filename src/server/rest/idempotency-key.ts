/**
 * The header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header),
 * which many HTTP clients send by themselves. In REST it is another way to set
 * the field `idempotency_key` of a request. Its value is used unchanged, as on
 * the deployment's own paths, so that a key is the same on both.
 *
 * A request of several calls has a key in each call. There the header is
 * refused, because it would apply to none of them although its sender relies
 * on it. In a request without any keys the header is ignored, like any other
 * header that the method does not know.
 */
import { type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { invalidField } from "./decode.ts";
import { setAt, valueAt } from "./fields.ts";

const NAME = "idempotency_key";

/** The place of keys in a request. */
export type KeyPlace =
  | { readonly kind: "none" }
  /** In this field. */
  | { readonly kind: "field"; readonly field: DescField }
  /** In each message of this list. */
  | { readonly kind: "each"; readonly list: DescField };

/** Finds the place of keys in a request message. */
export function keyPlaceOf(input: DescMessage): KeyPlace {
  const field = keyFieldOf(input);
  if (field !== undefined) {
    return { kind: "field", field };
  }
  const list = input.fields.find(
    (one) =>
      one.fieldKind === "list" &&
      one.message !== undefined &&
      keyFieldOf(one.message) !== undefined,
  );
  return list === undefined ? { kind: "none" } : { kind: "each", list };
}

function keyFieldOf(desc: DescMessage): DescField | undefined {
  return desc.fields.find(
    (field) =>
      field.name === NAME && field.fieldKind === "scalar" && field.scalar === ScalarType.STRING,
  );
}

/**
 * Puts the header's key into the JSON of a request.
 * Errors: REQUEST_INVALID if the request itself gives another key, or if each
 * of its calls has its own.
 */
export function bindKey(json: JsonObject, key: string, place: KeyPlace): void {
  if (place.kind === "each") {
    throw invalidField(
      `${place.list.name}.${NAME}`,
      "the header Idempotency-Key is for one call, and these are several: give each of them a key of its own here, and leave the header out",
    );
  }
  if (place.kind === "none") {
    return;
  }
  const given = valueAt(json, [place.field]) ?? "";
  if (given === "") {
    setAt(json, [place.field], key);
  } else if (typeof given === "string" && given !== key) {
    // Decoding refuses a value that is no string.
    throw invalidField(
      NAME,
      "contradicts the header Idempotency-Key: give the key in one of the two places, or the same in both",
    );
  }
}
