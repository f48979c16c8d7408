/**
 * Empty lists in JSON answers. Proto's JSON mapping leaves them out with all other empty fields,
 * so that `answer.tasks.length` fails in the one case that nobody tries; here they are `[]`.
 *
 * It is compiled per message type: only fields that can hold a list are visited.
 */
import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "./json.ts";

/** What a field is called in the JSON: by its proto name in REST, in camel case in Connect. */
type FieldName = "name" | "jsonName";

const compiled = new WeakMap<DescMessage, readonly DescField[]>();

/** Adds the lists that are missing to the JSON of a message and of the messages in it, in place. */
export function addEmptyLists(desc: DescMessage, json: JsonValue | undefined, by: FieldName): void {
  if (!isObject(json)) {
    return;
  }
  for (const field of fieldsOf(desc)) {
    const value = json[field[by]];
    if (value === undefined) {
      if (field.fieldKind === "list") {
        json[field[by]] = [];
      }
      continue;
    }
    const { message } = field;
    if (message === undefined) {
      continue;
    }
    if (Array.isArray(value)) {
      for (const item of value) {
        addEmptyLists(message, item, by);
      }
    } else if (field.fieldKind === "map" && isObject(value)) {
      for (const item of Object.values(value)) {
        addEmptyLists(message, item, by);
      }
    } else {
      addEmptyLists(message, value, by);
    }
  }
}

function fieldsOf(desc: DescMessage): readonly DescField[] {
  let fields = compiled.get(desc);
  if (fields === undefined) {
    fields = hasOwnJson(desc) ? [] : desc.fields.filter((field) => canHoldList(field, new Set()));
    compiled.set(desc, fields);
  }
  return fields;
}

function canHoldList(field: DescField, seen: Set<DescMessage>): boolean {
  const { message } = field;
  if (field.fieldKind === "list") {
    return true;
  }
  if (message === undefined || seen.has(message)) {
    return false;
  }
  seen.add(message);
  return !hasOwnJson(message) && message.fields.some((inner) => canHoldList(inner, seen));
}

/** Well-known types such as a struct have a JSON form of their own, and `HttpBody` is only bytes. */
function hasOwnJson({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.") || typeName === "google.api.HttpBody";
}
