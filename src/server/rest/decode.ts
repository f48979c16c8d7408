/** Decoding of JSON to messages, with errors that name the invalid field. */
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { proposal } from "../../collections/nearest.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import { isOnCalendar } from "../../time/calendar.ts";
import { isObject } from "../http/json.ts";
import { expectation } from "./fields.ts";
import { spellingOf } from "./spelling.ts";

/**
 * Reads a message from JSON in the spelling of REST; modifies the JSON.
 * Errors: REQUEST_INVALID, which names the first invalid or unknown field.
 *
 * @param registry the types of what `google.protobuf.Any` may hold. Default: none.
 */
export function decode(desc: DescMessage, json: JsonObject, registry?: Registry): Message {
  spellingOf(desc).read(json);
  let message: Message;
  try {
    message = fromJson(desc, json, { registry });
  } catch (cause) {
    const violation = locate(desc, json, { prefix: "", registry }) ?? {
      field: "",
      description: reason(cause),
    };
    throw invalidField(violation.field, violation.description, cause);
  }
  const missing = findMissingDate(desc, json);
  if (missing !== undefined) {
    throw invalidField(missing.field, missing.description);
  }
  return message;
}

/** REQUEST_INVALID for one field. */
export function invalidField(field: string, description: string, cause?: unknown): Error {
  const message = field === "" ? description : `${field}: ${description}`;
  return problem("REQUEST_INVALID", message, { violations: [{ field, description }], cause });
}

/** Where an invalid field is looked for. */
interface Place {
  /** The path of the message with its dot; of a field without. */
  readonly prefix: string;
  readonly registry: Registry | undefined;
}

/**
 * Finds the invalid field by reading one key at a time, because the library's
 * errors name a field only in some cases. Runs for refused requests only.
 */
function locate(desc: DescMessage, json: JsonObject, place: Place): FieldViolation | undefined {
  const { prefix, registry } = place;
  for (const [key, value] of Object.entries(json)) {
    const field = desc.fields.find((one) => one.name === key || one.jsonName === key);
    if (field === undefined) {
      return {
        field: `${prefix}${key}`,
        description: `unknown field${proposal(
          key,
          desc.fields.map(({ name }) => name),
        )}`,
      };
    }
    if (failure(desc, { [key]: value }, registry) !== undefined) {
      const path = `${prefix}${field.name}`;
      return (
        locateInside(field, value, { prefix: path, registry }) ?? {
          field: path,
          description: wanted(field, value),
        }
      );
    }
  }
  return conflict(desc, json, prefix);
}

function locateInside(
  field: DescField,
  value: JsonValue,
  { prefix, registry }: Place,
): FieldViolation | undefined {
  if (field.fieldKind === "message" && isObject(value)) {
    return locate(field.message, value, { prefix: `${prefix}.`, registry });
  }
  const { message } = field;
  for (const { at, item, alone } of itemsOf(field, value)) {
    const path = `${prefix}[${at}]`;
    const found =
      message !== undefined && isObject(item)
        ? locate(message, item, { prefix: `${path}.`, registry })
        : undefined;
    if (found !== undefined) {
      return found;
    }
    if (failure(field.parent, { [field.name]: alone }, registry) !== undefined) {
      return { field: path, description: `must be ${expectation(field)}, not ${shortened(item)}` };
    }
  }
  return undefined;
}

interface Item {
  /** Its number or its key. */
  readonly at: number | string;
  readonly item: JsonValue;
  /** The field with this item alone. */
  readonly alone: JsonValue;
}

/** The items of a list or a map; of any other value none. */
function itemsOf(field: DescField, value: JsonValue): Item[] {
  if (field.fieldKind === "list" && Array.isArray(value)) {
    return value.map((item, at) => ({ at, item, alone: [item] }));
  }
  return field.fieldKind === "map" && isObject(value)
    ? Object.entries(value).map(([at, item]) => ({ at, item, alone: { [at]: item } }))
    : [];
}

/** Finds two members of a oneof, or one field under both of its names. */
function conflict(desc: DescMessage, json: JsonObject, prefix: string): FieldViolation | undefined {
  const given = desc.fields.filter(
    (field) => Object.hasOwn(json, field.name) || Object.hasOwn(json, field.jsonName),
  );
  for (const one of given) {
    const field = `${prefix}${one.name}`;
    if (one.oneof !== undefined) {
      const other = given.find((member) => member !== one && member.oneof === one.oneof);
      if (other !== undefined) {
        return { field, description: `cannot be given together with ${other.name}` };
      }
    }
    const both = Object.hasOwn(json, one.name) && Object.hasOwn(json, one.jsonName);
    if (both && one.name !== one.jsonName) {
      return { field, description: `given twice, also as ${one.jsonName}` };
    }
  }
  return undefined;
}

function failure(desc: DescMessage, json: JsonObject, registry: Registry | undefined): unknown {
  try {
    fromJson(desc, json, { registry });
    return undefined;
  } catch (cause) {
    return cause;
  }
}

function wanted(field: DescField, value: JsonValue): string {
  const what = WANTED_KINDS.get(field.fieldKind) ?? expectation(field);
  return `must be ${what}, not ${shortened(value)}`;
}

const WANTED_KINDS: ReadonlyMap<string, string> = new Map([
  ["list", "a list"],
  ["map", "an object"],
]);

function shortened(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}

/** The library's message without its first half, which names internals. */
function reason(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return message.replace(/^cannot decode .*? from JSON: /, "");
}

/** The fields of a message type that may have times: found once, so a type without costs nothing. */
const compiled = new WeakMap<DescMessage, readonly DescField[]>();

/**
 * The first time in the JSON of a message whose day does not exist, which the library reads as
 * another day. The JSON is valid otherwise.
 */
function findMissingDate(desc: DescMessage, json: JsonObject): FieldViolation | undefined {
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
