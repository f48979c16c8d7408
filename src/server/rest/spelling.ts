/**
 * The spelling of enum values in REST: lower case, without the prefix that the
 * values of an enum share (`TASK_STATUS_QUEUED` is `queued`). Requests may use
 * this spelling or that of the proto file.
 *
 * It is compiled per message type: only fields that can hold an enum are
 * visited, so a type without any costs nothing.
 */
import type { DescEnum, DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "../http/json.ts";

/** Edits the JSON of a message in place. */
type Edit = (json: JsonObject) => void;

interface Spelling {
  /** From the proto file's spelling, under the proto file's field names, to that of REST. */
  readonly write: Edit;
  /** From either spelling, under either name of the fields, to that of the proto file. */
  readonly read: Edit;
}

const compiled = new WeakMap<DescMessage, Spelling>();

/** The spelling of all enums in a message and in the messages in it. */
export function spellingOf(desc: DescMessage): Spelling {
  let spelling = compiled.get(desc);
  if (spelling === undefined) {
    spelling = compile(desc);
    compiled.set(desc, spelling);
  }
  return spelling;
}

function compile(desc: DescMessage): Spelling {
  const fields = desc.fields.filter((field) => canHoldEnum(field, new Set()));
  const edit = (direction: keyof Spelling) => (json: JsonObject) => {
    for (const field of fields) {
      editField(json, field.name, field, direction);
      if (direction === "read" && field.jsonName !== field.name) {
        editField(json, field.jsonName, field, direction);
      }
    }
  };
  return { write: edit("write"), read: edit("read") };
}

function editField(
  json: JsonObject,
  key: string,
  field: DescField,
  direction: keyof Spelling,
): void {
  const value = json[key];
  if (value === undefined || value === null) {
    return;
  }
  if (Array.isArray(value)) {
    json[key] = value.map((item) => editValue(item, field, direction));
  } else if (field.fieldKind === "map" && typeof value === "object") {
    for (const [name, item] of Object.entries(value)) {
      Object.defineProperty(value, name, { value: editValue(item, field, direction) });
    }
  } else {
    json[key] = editValue(value, field, direction);
  }
}

function editValue(value: JsonValue, field: DescField, direction: keyof Spelling): JsonValue {
  if (field.enum !== undefined && typeof value === "string") {
    return wordsOf(field.enum)[direction].get(value) ?? value;
  }
  if (field.message !== undefined && isObject(value)) {
    spellingOf(field.message)[direction](value);
  }
  return value;
}

interface Words {
  readonly write: ReadonlyMap<string, string>;
  readonly read: ReadonlyMap<string, string>;
}

const words = new WeakMap<DescEnum, Words>();

function wordsOf(desc: DescEnum): Words {
  let found = words.get(desc);
  if (found === undefined) {
    const pairs = desc.values.map(({ name }) => [name, enumWord(desc, name)] as const);
    found = { write: new Map(pairs), read: new Map(pairs.map(([name, word]) => [word, name])) };
    words.set(desc, found);
  }
  return found;
}

/** An enum value's name as REST writes it. */
export function enumWord(desc: DescEnum, name: string): string {
  const prefix = desc.sharedPrefix?.length ?? 0;
  return name.slice(prefix).toLowerCase();
}

/** False for well-known types, whose own JSON has no enums. */
function canHoldEnum(field: DescField, seen: Set<DescMessage>): boolean {
  if (field.enum !== undefined) {
    return field.enum.typeName !== "google.protobuf.NullValue";
  }
  const { message } = field;
  if (message === undefined || seen.has(message)) {
    return false;
  }
  seen.add(message);
  return (
    !message.typeName.startsWith("google.protobuf.") &&
    message.fields.some((inner) => canHoldEnum(inner, seen))
  );
}
