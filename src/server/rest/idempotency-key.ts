/**
 * The header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header),
 * which many HTTP clients can send by themselves. Here it is another way to
 * give the field `idempotency_key` of a request; its value is taken as it is,
 * as on the deployment's own paths, so that one key is one key everywhere.
 *
 * A request of several calls has a key in each of them. There the header is
 * refused: none of the calls would have it, and who sends it takes it for a
 * promise. Where a request has no keys at all, the header is one like any
 * other that the method does not know.
 */
import { type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { invalidField } from "./decode.ts";
import { setAt, valueAt } from "./fields.ts";

const NAME = "idempotency_key";

/** Where a request has keys. */
export type KeyPlace =
  | { readonly kind: "none" }
  /** In this field. */
  | { readonly kind: "field"; readonly field: DescField }
  /** In each message of this list. */
  | { readonly kind: "each"; readonly list: DescField };

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
 * Errors: REQUEST_INVALID where the request gives another key itself, and
 * where it has one for each of its calls.
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
    // What is no string is refused when the message is read.
    throw invalidField(
      NAME,
      "contradicts the header Idempotency-Key: give the key in one of the two places, or the same in both",
    );
  }
}
