/** Generates example values for JSON Schemas. */
import type { JsonSchema } from "../../protocol/manifest.ts";
import { resolveReference } from "../flatten.ts";

/** Example texts by `format`. */
const TEXTS = new Map(
  Object.entries({
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
    base64: "dGV4dA==",
    cidrv4: "192.0.2.0/24",
    cidrv6: "2001:db8::/32",
    e164: "+12025550123",
    "json-string": "{}",
  }),
);

/** Example texts by the last word of the name of an argument, for texts without a format. */
const NAMED_TEXTS = new Map(
  Object.entries({
    city: "Lisbon",
    country: "Portugal",
    currency: "EUR",
    email: "someone@example.com",
    language: "en",
    message: "Hello!",
    name: "example",
    prompt: "Write a haiku about the sea.",
    query: "blue sky",
    question: "Why is the sky blue?",
    sentence: "The fox is quick. The dog is lazy.",
    text: "The fox is quick. The dog is lazy.",
    timezone: "Europe/Lisbon",
    title: "A title",
    url: "https://example.com/",
  }),
);

/** Items of an array in a made-up example. */
const MAX_EXAMPLE_ITEMS = 3;
/** Text in a made-up example. */
const MAX_EXAMPLE_TEXT_CHARACTERS = 200;

/** References that are followed within each other; a value that goes deeper has a null there. */
const MAX_REFERENCES = 8;

/** Where a schema is: what its references begin at, how many were followed, and what it is called. */
interface Place {
  readonly root: JsonSchema;
  readonly followed: number;
  readonly name: string;
}

/**
 * An example value for a schema: its own example, default or constant where it has one,
 * otherwise a plain value such as 1 or "text", or what its name suggests, moved into its bounds, of
 * the first alternative.
 * Patterns are ignored, so what shows an example checks that it is one.
 */
export function exampleOf(schema: JsonSchema): unknown {
  return made(schema, { root: schema, followed: 0, name: "" });
}

function made(given: unknown, at: Place): unknown {
  if (typeof given !== "object" || given === null) {
    return null; // A schema may be true or false.
  }
  const schema = given as JsonSchema;
  for (const candidates of [schema.examples, [schema.default], [schema.const], schema.enum]) {
    if (Array.isArray(candidates) && candidates[0] !== undefined) {
      return candidates[0];
    }
  }
  const part = partOf(schema, at);
  if (part !== undefined) {
    return made(part.schema, part.at);
  }
  switch (Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type) {
    case "object":
      return exampleOfObject(schema, at);
    case "array":
      return exampleOfArray(schema, at);
    case "string":
      return exampleOfText(schema, at.name);
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

/** The schema with what it refers to, all that it combines, and the first of its alternatives; undefined without any. */
function partOf(
  { $ref, allOf, anyOf, oneOf, ...own }: JsonSchema,
  { root, followed, name }: Place,
): { readonly schema: JsonSchema; readonly at: Place } | undefined {
  const parts: unknown[] = Array.isArray(allOf) ? [...allOf] : [];
  for (const alternatives of [anyOf, oneOf]) {
    if (Array.isArray(alternatives)) {
      parts.push(alternatives.find((one) => (one as JsonSchema)?.type !== "null"));
    }
  }
  if (typeof $ref === "string") {
    parts.push(followed < MAX_REFERENCES ? resolveReference(root, $ref) : undefined);
  }
  if (parts.length === 0) {
    return undefined;
  }
  const schema = parts.filter(isSchema).reduce<JsonSchema>(merged, own);
  return { schema, at: { root, followed: followed + 1, name } };
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}

function merged(one: JsonSchema, other: JsonSchema): JsonSchema {
  const properties = { ...(other.properties as JsonSchema), ...(one.properties as JsonSchema) };
  const required = [one.required, other.required].flatMap((names) => names ?? []);
  return { ...other, ...one, properties, required };
}

/** Deep within references, only what is required: a schema may contain itself. */
function exampleOfObject(schema: JsonSchema, at: Place): JsonSchema {
  const required = new Set((schema.required ?? []) as string[]);
  const properties = Object.entries((schema.properties ?? {}) as JsonSchema).filter(
    ([name]) => at.followed < 2 || required.has(name),
  );
  const { additionalProperties: others } = schema;
  if (properties.length === 0 && required.size === 0 && isSchema(others) && at.followed < 2) {
    return { key: made(others, at) };
  }
  return Object.fromEntries(
    properties.map(([name, property]) => [name, made(property, { ...at, name })]),
  );
}

function exampleOfArray(schema: JsonSchema, at: Place): unknown[] {
  const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  const wanted = Math.max(number(schema.minItems) ?? 1, first.length || 1);
  const most = Math.min(number(schema.maxItems) ?? wanted, first.length || MAX_EXAMPLE_ITEMS);
  return Array.from({ length: Math.min(wanted, most) }, (_, index) =>
    made(first[index] ?? schema.items ?? {}, at),
  );
}

function exampleOfText(schema: JsonSchema, name: string): string {
  const most = number(schema.maxLength) ?? MAX_EXAMPLE_TEXT_CHARACTERS;
  const named = schema.format || schema.pattern ? undefined : NAMED_TEXTS.get(lastWordOf(name));
  const text =
    named !== undefined && named.length <= most
      ? named
      : (TEXTS.get(String(schema.format)) ?? "text");
  const least = Math.min(number(schema.minLength) ?? 0, MAX_EXAMPLE_TEXT_CHARACTERS);
  return text.padEnd(least, " text").slice(0, most);
}

/** `name` of `userName`, `user_name` and `user-names`. */
const lastWordOf = (name: string): string =>
  (/[A-Za-z][a-z]*$/.exec(name)?.[0] ?? "").toLowerCase().replace(/s$/, "");

/** `usual`, or what is nearest to it within the bounds. */
function exampleOfNumber(schema: JsonSchema, usual: number): number {
  const isWhole = usual === 1;
  const [least, most] = isWhole ? wholeBounds(schema) : bounds(schema, usual);
  const value = Math.max(least, Math.min(most, usual));
  const multiple = number(schema.multipleOf);
  if (!multiple) {
    return value;
  }
  const next = Math.ceil(value / multiple) * multiple;
  return next <= most ? next : Math.floor(most / multiple) * multiple;
}

/** The smallest and the largest integer. */
function wholeBounds(schema: JsonSchema): readonly [least: number, most: number] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  return [
    Math.max(Math.ceil(low(minimum)), Math.floor(low(exclusiveMinimum)) + 1),
    Math.min(Math.floor(high(maximum)), Math.ceil(high(exclusiveMaximum)) - 1),
  ];
}

/** The smallest and the largest number, off the bounds that do not belong to them. */
function bounds(schema: JsonSchema, step: number): readonly [least: number, most: number] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const least = Math.max(low(minimum), low(exclusiveMinimum));
  const most = Math.min(high(maximum), high(exclusiveMaximum));
  const off = Math.min(step, (most - least) / 2);
  return [
    low(exclusiveMinimum) === least ? least + off : least,
    high(exclusiveMaximum) === most ? most - off : most,
  ];
}

const low = (bound: unknown): number => number(bound) ?? Number.NEGATIVE_INFINITY;
const high = (bound: unknown): number => number(bound) ?? Number.POSITIVE_INFINITY;

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
