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

/** Formats a table: titled columns, two spaces apart, without borders. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows.map((row) => row.map((cell) => plain(cell) || "-"))];
  const widths = titles.map((_, column) =>
    Math.max(...lines.map((line) => width(line[column] ?? ""))),
  );
  return lines
    .map((line) => line.map((cell, column) => padded(cell, widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Formats one record, a field per line; fields without a value are left out. */
export function fields(entries: readonly (readonly [string, string])[]): string {
  const shown = entries.filter(([, value]) => value !== "");
  const longest = Math.max(0, ...shown.map(([title]) => title.length));
  return shown.map(([title, value]) => `${title.padEnd(longest)}  ${plain(value)}`).join("\n");
}

function padded(text: string, to: number): string {
  return text + " ".repeat(Math.max(0, to - width(text)));
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** Characters that terminals show in two cells: East Asian wide characters (UAX #11) and emoji. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

function width(text: string): number {
  let cells = 0;
  for (const { segment } of graphemes.segment(text)) {
    cells += WIDE.test(segment) ? 2 : 1;
  }
  return cells;
}

/** Formats a time to the minute: `2027-01-31 08:30Z`. */
export function moment(time: Timestamp | undefined): string {
  return time === undefined
    ? ""
    : `${new Date(timestampMs(time)).toISOString().slice(0, 16).replace("T", " ")}Z`;
}
