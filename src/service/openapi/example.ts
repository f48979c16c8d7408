/** Generates example values for JSON Schemas. */
import type { JsonSchema } from "../../protocol/manifest.ts";
import { flattenSchema } from "../flatten.ts";

/** Example texts by `format`. */
const TEXTS: { readonly [format: string]: string } = {
  "date-time": "2026-01-31T12:00:00Z",
  date: "2026-01-31",
  time: "12:00:00Z",
  duration: "PT30S",
  email: "someone@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "123e4567-e89b-42d3-a456-426614174000",
};

/** Items of an array in a made-up example. */
const MAX_EXAMPLE_ITEMS = 3;
/** Text in a made-up example. */
const MAX_EXAMPLE_TEXT_CHARACTERS = 200;

/**
 * An example value for a schema: its own example, default or first alternative where
 * it has one, otherwise the smallest value within its bounds. Patterns are ignored.
 */
export function exampleOf(schema: JsonSchema): unknown {
  return exampleOfFlat(flattenSchema(schema).schema);
}

function exampleOfFlat(schema: JsonSchema): unknown {
  for (const candidates of [schema.examples, [schema.default], schema.enum]) {
    if (Array.isArray(candidates) && candidates[0] !== undefined) {
      return candidates[0];
    }
  }
  switch (schema.type) {
    case "object":
      return exampleOfObject(schema);
    case "array": {
      const item = exampleOfFlat((schema.items ?? {}) as JsonSchema);
      const length = Math.min(Math.max(number(schema.minItems) ?? 1, 1), MAX_EXAMPLE_ITEMS);
      return Array.from({ length: number(schema.maxItems) === 0 ? 0 : length }, () => item);
    }
    case "string":
      return exampleOfText(schema);
    case "integer":
      return exampleOfNumber(schema, 1);
    case "number":
      return exampleOfNumber(schema, 0.5);
    case "boolean":
      return true;
    default:
      return null;
  }
}

function exampleOfObject(schema: JsonSchema): JsonSchema {
  const properties = Object.entries((schema.properties ?? {}) as JsonSchema);
  return Object.fromEntries(
    properties.map(([name, property]) => [name, exampleOfFlat(property as JsonSchema)]),
  );
}

function exampleOfText(schema: JsonSchema): string {
  const text = TEXTS[String(schema.format)] ?? "text";
  const least = Math.min(number(schema.minLength) ?? 0, MAX_EXAMPLE_TEXT_CHARACTERS);
  return text
    .padEnd(least, " text")
    .slice(0, number(schema.maxLength) ?? MAX_EXAMPLE_TEXT_CHARACTERS);
}

function exampleOfNumber(schema: JsonSchema, step: number): number {
  const multiple = number(schema.multipleOf);
  const least = number(schema.minimum) ?? above(schema.exclusiveMinimum, step);
  const most = number(schema.maximum) ?? above(schema.exclusiveMaximum, -step);
  const value = least ?? Math.min(step, most ?? step);
  return multiple ? Math.ceil(value / multiple) * multiple : value;
}

function above(bound: unknown, step: number): number | undefined {
  const value = number(bound);
  return value === undefined ? undefined : value + step;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
