/** Output formats of answers: text for people, JSON for programs. */
import {
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { plain } from "./plain.ts";

export type OutputFormat = "json" | "table";

/**
 * Formats a message as the REST interface does: proto field names, enums in
 * lower case without prefix. Empty fields are included, so that programs need
 * not know defaults.
 */
export function jsonText<Desc extends DescMessage>(
  desc: Desc,
  message: MessageShape<Desc>,
): string {
  const json = toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  return JSON.stringify(spelled(desc, json), null, 2);
}

function spelled(desc: DescMessage, json: JsonValue): JsonValue {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return json;
  }
  const result: JsonObject = { ...json };
  for (const { name, enum: words, message } of desc.fields) {
    const value = result[name];
    if (words !== undefined && value !== undefined) {
      const spell = (word: JsonValue): JsonValue =>
        String(word)
          .replace(words.sharedPrefix?.toUpperCase() ?? "", "")
          .toLowerCase();
      result[name] = Array.isArray(value) ? value.map(spell) : spell(value);
      if (result[name] === "unspecified") {
        delete result[name];
      }
    } else if (message !== undefined && value !== undefined) {
      result[name] = Array.isArray(value)
        ? value.map((item) => spelled(message, item))
        : spelled(message, value);
    }
  }
  return result;
}

/** Formats one record, a field per line; fields without a value are left out. */
export function fields(entries: readonly (readonly [string, string])[]): string {
  const shown = entries.filter(([, value]) => value !== "");
  const longest = Math.max(0, ...shown.map(([title]) => title.length));
  return shown.map(([title, value]) => `${title.padEnd(longest)}  ${plain(value)}`).join("\n");
}

/** Formats a time to the minute: `2027-01-31 08:30Z`. */
export function moment(time: Timestamp | undefined): string {
  return time === undefined
    ? ""
    : `${new Date(timestampMs(time)).toISOString().slice(0, 16).replace("T", " ")}Z`;
}
