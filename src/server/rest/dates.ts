/**
 * Finds times in a request's JSON whose day does not exist, which the library reads as another
 * day. It is compiled per message type, so a type without times costs nothing.
 */
import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { FieldViolation } from "../../errors.ts";
import { isOnCalendar } from "../../time/calendar.ts";
import { isObject } from "../http/json.ts";

const compiled = new WeakMap<DescMessage, readonly DescField[]>();

/** The first such time in the JSON of a message, which is valid otherwise. */
export function findMissingDate(desc: DescMessage, json: JsonObject): FieldViolation | undefined {
  for (const field of timesIn(desc)) {
    const value = json[field.name] ?? json[field.jsonName];
    const items = field.fieldKind === "list" && Array.isArray(value) ? value : [value];
    for (const [index, item] of items.entries()) {
      const found = inValue(field, item);
      if (found !== undefined) {
        const name = items === value ? `${field.name}[${index}]` : field.name;
        const path = found.field === "" ? name : `${name}.${found.field}`;
        return { field: path, description: found.description };
      }
    }
  }
  return undefined;
}

function inValue(field: DescField, value: JsonValue | undefined): FieldViolation | undefined {
  if (field.message !== undefined && isTime(field)) {
    return typeof value === "string" && !isOnCalendar(value)
      ? { field: "", description: `${value} is a time that does not exist` }
      : undefined;
  }
  return field.message !== undefined && isObject(value)
    ? findMissingDate(field.message, value)
    : undefined;
}

function timesIn(desc: DescMessage): readonly DescField[] {
  let fields = compiled.get(desc);
  if (fields === undefined) {
    fields = desc.fields.filter((field) => canHoldTime(field, new Set()));
    compiled.set(desc, fields);
  }
  return fields;
}

function canHoldTime(field: DescField, seen: Set<DescMessage>): boolean {
  const { message } = field;
  if (message === undefined || field.fieldKind === "map" || seen.has(message)) {
    return false;
  }
  seen.add(message);
  return (
    isTime(field) ||
    (!message.typeName.startsWith("google.protobuf.") &&
      message.fields.some((inner) => canHoldTime(inner, seen)))
  );
}

function isTime({ message }: DescField): boolean {
  return message?.typeName === "google.protobuf.Timestamp";
}
