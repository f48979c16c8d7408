/** Fields in paths and queries: dotted names, and values as text. */
import {
  type DescField,
  type DescMessage,
  equals,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { isObject } from "../http/json.ts";
import { enumWord, spellingOf } from "./spelling.ts";

/**
 * The fields on a path such as `["task", "taskId"]`, each by its proto name or
 * its JSON name; undefined if there is no such field.
 */
export function resolveFields(
  desc: DescMessage,
  path: readonly string[],
): readonly DescField[] | undefined {
  const fields: DescField[] = [];
  let inside: DescMessage | undefined = desc;
  for (const name of path) {
    const field: DescField | undefined = inside?.fields.find(
      (one) => one.name === name || one.jsonName === name,
    );
    if (field === undefined) {
      return undefined;
    }
    fields.push(field);
    inside = field.fieldKind === "message" && !hasTextForm(field) ? field.message : undefined;
  }
  return fields;
}

/** The dotted name of a path of fields. */
export function dotted(fields: readonly DescField[]): string {
  return fields.map((field) => field.name).join(".");
}

/** True for fields whose value (or items) can be written as text. */
export function hasTextForm(field: DescField): boolean {
  if (field.fieldKind === "map") {
    return false;
  }
  const { message } = field;
  return message === undefined || TEXT_MESSAGES.has(message.typeName) || isWrapperDesc(message);
}

const TEXT_MESSAGES: ReadonlySet<string> = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "google.protobuf.FieldMask",
]);

/** Converts the text of a field's value (or of one item) to JSON. */
export function textToJson(field: DescField, text: string): JsonValue {
  const { message } = field;
  if (message !== undefined) {
    const [inner] = message.fields;
    if (message.typeName === "google.protobuf.Duration") {
      return /^-?\d+(\.\d+)?$/.test(text) ? `${text}s` : text;
    }
    if (message.typeName === "google.protobuf.FieldMask") {
      return text.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    }
    return isWrapperDesc(message) && inner !== undefined ? textToJson(inner, text) : text;
  }
  if (field.enum !== undefined) {
    return /^-?\d+$/.test(text) ? Number(text) : text;
  }
  if (field.scalar === ScalarType.BOOL) {
    return BOOLEANS.get(text) ?? text;
  }
  return text;
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/** True if two JSON values stand for the same value of a field; false if either is invalid. */
export function sameValue(field: DescField, one: JsonValue, other: JsonValue): boolean {
  const desc = field.parent as DescMessage;
  const read = (value: JsonValue) => {
    const json: JsonObject = { [field.name]: value };
    spellingOf(desc).read(json);
    return fromJson(desc, json);
  };
  try {
    return equals(desc, read(one), read(other));
  } catch {
    return false;
  }
}

/** The value at a path of fields, under either name of each; undefined if absent. */
export function valueAt(json: JsonObject, fields: readonly DescField[]): JsonValue | undefined {
  let value: JsonValue | undefined = json;
  for (const field of fields) {
    if (!isObject(value)) {
      return undefined;
    }
    value = value[keyOf(value, field)];
  }
  return value ?? undefined;
}

/** Sets the value at a path of fields, creating the messages on the way. */
export function setAt(json: JsonObject, fields: readonly DescField[], value: JsonValue): void {
  let inside = json;
  for (const [index, field] of fields.entries()) {
    const key = keyOf(inside, field);
    if (index === fields.length - 1) {
      inside[key] = value;
    } else {
      const next = inside[key] ?? {};
      inside[key] = next;
      if (!isObject(next)) {
        return; // Not a message: decoding the request reports it.
      }
      inside = next;
    }
  }
}

function keyOf(json: JsonObject, field: DescField): string {
  return Object.hasOwn(json, field.jsonName) ? field.jsonName : field.name;
}

/** Describes the values that a field takes, for messages. */
export function expectation(field: DescField): string {
  const { message } = field;
  if (message?.typeName === "google.protobuf.Duration") {
    return 'a duration such as "20s"';
  }
  if (message?.typeName === "google.protobuf.Timestamp") {
    return 'a time such as "2026-01-31T12:00:00Z"';
  }
  if (field.enum !== undefined) {
    const desc = field.enum;
    return `one of ${desc.values.map(({ name }) => enumWord(desc, name)).join(", ")}`;
  }
  if (message !== undefined) {
    return isWrapperDesc(message) ? "a single value" : `a ${message.name}`;
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      return "true or false";
    case ScalarType.STRING:
      return "a string";
    case ScalarType.BYTES:
      return "bytes in base64";
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return "a number";
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return "an integer of 32 bits";
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return "an integer of 32 bits, not negative";
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return "an integer of 64 bits, not negative";
    default:
      return "an integer of 64 bits";
  }
}
