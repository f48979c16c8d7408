/** Short descriptions of schemas, for table cells. */
import type { JsonSchema } from "../../src/protocol/manifest.ts";
import type { Document } from "./document.ts";

/** Resolves a reference; returns any other value unchanged. */
export function resolve(document: Document, value: JsonSchema): JsonSchema {
  const { $ref } = value;
  if (typeof $ref !== "string") {
    return value;
  }
  return $ref
    .slice("#/".length)
    .split("/")
    .reduce<JsonSchema>(
      (found, key) => found[key] as JsonSchema,
      document as unknown as JsonSchema,
    );
}

/** `string, from 1 to 63 characters`, or the name of a schema as a link to it. */
export function typeOf(document: Document, schema: JsonSchema): string {
  const { $ref, type, items, enum: values, format, oneOf, anyOf } = schema;
  if (typeof $ref === "string") {
    const name = $ref.split("/").at(-1) ?? "";
    const target = resolve(document, schema);
    return target.type === "object" && target.properties
      ? `[${name}](#${anchorOf(name)})`
      : typeOf(document, target);
  }
  if (Array.isArray(values)) {
    return values.map((value) => `\`${value}\``).join(", ");
  }
  if (type === "array") {
    return `list of ${typeOf(document, (items ?? {}) as JsonSchema)}`;
  }
  const choices = oneOf ?? anyOf;
  if (Array.isArray(choices)) {
    return choices.map((choice) => typeOf(document, choice as JsonSchema)).join(" or ");
  }
  const names = Array.isArray(type) ? type.join(" or ") : String(type ?? "any value");
  const more = [format, boundsOf(schema)].filter((part) => part !== undefined && part !== "");
  return [names, ...more].join(", ");
}

/** The anchor that GitHub generates for a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, "")
    .replaceAll(" ", "-");
}

function boundsOf(schema: JsonSchema): string {
  const { minimum, maximum, minLength, maxLength, default: otherwise } = schema;
  const range = (from: unknown, to: unknown, unit: string): string => {
    if (from !== undefined && to !== undefined) {
      return `${from} to ${to}${unit}`;
    }
    return from !== undefined
      ? `from ${from}${unit}`
      : to !== undefined
        ? `up to ${to}${unit}`
        : "";
  };
  return [
    range(minimum, maximum, ""),
    range(minLength, maxLength, " characters"),
    otherwise === undefined ? "" : `default ${JSON.stringify(otherwise)}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}
