/**
 * Flattens any JSON Schema (2020-12) for clients without a schema library: no
 * `$ref`, `$defs`, `allOf`, `anyOf` or `oneOf`, at most one type, and `items` in
 * every array. A recursive reference becomes a schema that accepts anything, as do
 * all nodes beyond 5,000: references that fan out can otherwise make a small schema
 * exponentially large.
 */
import type { JsonSchema } from "../protocol/manifest.ts";

/**
 * Parts of a JSON Schema that are merged into one description; the rest is described as
 * anything.
 */
const MAX_SCHEMA_NODES = 5000;

/** Keywords that are copied unchanged. */
const COPIED = [
  ...["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"],
  ...["format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "enum"],
];

interface Flattened {
  readonly schema: JsonSchema;
  /** True when `null` is accepted in addition. */
  readonly nullable: boolean;
}

/**
 * Flattens a schema. A value that may be null keeps its type only if it is a
 * scalar: clients walk into arrays and objects by the type, and fail on null.
 */
export function flattenSchema(schema: JsonSchema): Flattened {
  const shape = rootShape(schema);
  return { schema: writeShape(shape), nullable: shape.types?.includes("null") ?? false };
}

/**
 * Flattens the schema of arguments: always an object with `properties`, which
 * lists the known ones even if further arguments are allowed.
 */
export function flattenArguments(schema: JsonSchema): JsonSchema & { properties: JsonSchema } {
  const { properties = {}, required, keywords } = rootShape(schema);
  const shape = { types: ["object"], properties, ...(required ? { required } : {}), keywords };
  return { ...writeShape(shape), properties: mapValues(properties, writeShape) };
}

function rootShape(schema: JsonSchema): Shape {
  return shapeOf(schema, { root: schema, trail: [], remaining: { nodes: MAX_SCHEMA_NODES } });
}

interface Reading {
  readonly root: JsonSchema;
  /** The references being followed, to detect recursion. */
  readonly trail: readonly string[];
  readonly remaining: { nodes: number };
}

function shapeOf(schema: unknown, reading: Reading): Shape {
  reading.remaining.nodes -= 1;
  if (!isSchema(schema) || reading.remaining.nodes < 0) {
    return ANYTHING;
  }
  let shape = ownShape(schema, reading);
  for (const keyword of ["anyOf", "oneOf"]) {
    const members = schema[keyword];
    if (Array.isArray(members) && members.length > 0) {
      shape = intersect(unite(members.map((member) => shapeOf(member, reading))), shape);
    }
  }
  if (Array.isArray(schema.allOf)) {
    const members = schema.allOf.map((member) => shapeOf(member, reading));
    shape = [...members, shape].reduce(intersect);
  }
  return typeof schema.$ref === "string"
    ? intersect(referencedShape(schema.$ref, reading), shape)
    : shape;
}

function referencedShape(reference: string, reading: Reading): Shape {
  if (reading.trail.includes(reference)) {
    return ANYTHING;
  }
  const target = resolveReference(reading.root, reference);
  return shapeOf(target, { ...reading, trail: [...reading.trail, reference] });
}

function ownShape(schema: JsonSchema, reading: Reading): Shape {
  const keywords = Object.fromEntries(
    COPIED.filter((keyword) => keyword in schema).map((keyword) => [keyword, schema[keyword]]),
  );
  if ("const" in schema) {
    keywords.enum = [schema.const];
  }
  const types = typesOf(schema, keywords.enum);
  const items = itemsShape(schema, reading);
  const { additionalProperties } = schema;
  return {
    ...(types ? { types } : {}),
    ...(isSchema(schema.properties)
      ? { properties: mapValues(schema.properties, (member) => shapeOf(member, reading)) }
      : {}),
    ...(Array.isArray(schema.required) ? { required: schema.required } : {}),
    ...(items ? { items } : {}),
    ...(additionalProperties === true || isSchema(additionalProperties) ? { open: true } : {}),
    keywords,
  };
}

function typesOf(schema: JsonSchema, values: unknown): readonly string[] | undefined {
  const { type } = schema;
  if (typeof type === "string") {
    return [type];
  }
  if (Array.isArray(type)) {
    return type;
  }
  if (Array.isArray(values)) {
    return [...new Set(values.map(typeOfValue))];
  }
  if (schema.properties) {
    return ["object"];
  }
  return schema.items || schema.prefixItems ? ["array"] : undefined;
}

function typeOfValue(value: unknown): string {
  if (value === null) {
    return "null";
  }
  return Array.isArray(value) ? "array" : typeof value;
}

/** One shape for all items of an array; those of a tuple are united. */
function itemsShape(schema: JsonSchema, reading: Reading): Shape | undefined {
  const places = Array.isArray(schema.prefixItems) ? [...schema.prefixItems] : [];
  if (isSchema(schema.items)) {
    places.push(schema.items);
  }
  return places.length > 0 ? unite(places.map((place) => shapeOf(place, reading))) : undefined;
}

function writeShape(shape: Shape): JsonSchema {
  const present = shape.types?.filter((type) => type !== "null") ?? [];
  const nullable = shape.types !== undefined && present.length < shape.types.length;
  const [type] = present;
  if (present.length !== 1 || (nullable && (type === "array" || type === "object"))) {
    return shape.keywords;
  }
  const schema = { type, ...shape.keywords };
  if (type === "array") {
    return { ...schema, items: writeShape(shape.items ?? ANYTHING) };
  }
  return type === "object" ? { ...schema, ...writeObject(shape) } : schema;
}

/** Clients send only listed properties, so an object that allows others lists none. */
function writeObject(shape: Shape): JsonSchema {
  if (shape.open) {
    return { additionalProperties: true };
  }
  const required = shape.required ?? [];
  return {
    ...(shape.properties ? { properties: mapValues(shape.properties, writeShape) } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

/**
 * Resolves a reference within one document: `#`, or `#` and a JSON Pointer (RFC
 * 6901). Undefined when it names nothing.
 */
export function resolveReference(root: JsonSchema, reference: string): unknown {
  if (reference === "#") {
    return root;
  }
  if (!reference.startsWith("#/")) {
    return undefined;
  }
  let found: unknown = root;
  for (const segment of reference.slice(2).split("/")) {
    const name = decodeSegment(segment);
    found =
      typeof found === "object" && found !== null && Object.hasOwn(found, name)
        ? (found as JsonSchema)[name]
        : undefined;
  }
  return found;
}

function decodeSegment(segment: string): string {
  const text = segment.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A percent sign that is no escape stands for itself.
  }
}

function mapValues<T, R>(
  object: { readonly [key: string]: T },
  map: (value: T) => R,
): { [key: string]: R } {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Shapes: JSON Schemas reduced to a form that can be merged, with references
 * followed and `allOf`, `anyOf` and `oneOf` combined. `intersect` is `allOf`;
 * `unite` is `anyOf` and `oneOf`.
 *
 * A shape accepts at least what its schema accepts. It is for descriptions;
 * validation uses the schema itself.
 */

/** A description of values, without references and unions. */
interface Shape {
  /** The JSON types of the values. Default: any. */
  readonly types?: readonly string[];
  readonly properties?: { readonly [name: string]: Shape };
  readonly required?: readonly string[];
  /** The shape of an array's items. */
  readonly items?: Shape;
  /** True when the schema says that an object may have further properties. */
  readonly open?: boolean;
  /** Everything else: bounds, formats, titles. */
  readonly keywords: { readonly [keyword: string]: unknown };
}

/** The shape that accepts every value. */
const ANYTHING: Shape = { keywords: {} };

const RAISED = new Set(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"]);
const LOWERED = new Set(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"]);

/** The shape of values that fit both. Where they contradict each other, the second one wins. */
function intersect(first: Shape, second: Shape): Shape {
  const required = new Set([...(first.required ?? []), ...(second.required ?? [])]);
  return {
    ...defined({
      types: commonTypes(first.types, second.types),
      properties: joinProperties([first, second], intersectAll),
      required: required.size > 0 ? [...required] : undefined,
      items: first.items && second.items ? intersect(first.items, second.items) : undefined,
    }),
    ...onlyOne(first.items, second.items),
    ...(first.open || second.open ? { open: true } : {}),
    keywords: intersectKeywords(first.keywords, second.keywords),
  };
}

/** The shape of values that fit any of them; `null` among them only makes it nullable. */
function unite(shapes: readonly Shape[]): Shape {
  const present = shapes.filter((shape) => !isNull(shape));
  const [only] = present;
  if (!only) {
    return shapes[0] ?? ANYTHING;
  }
  const nullable = present.length < shapes.length;
  const united = present.length === 1 ? only : uniteSeveral(present);
  return nullable && united.types
    ? { ...united, types: unionOf([united.types, ["null"]]) }
    : united;
}

function uniteSeveral(shapes: readonly Shape[]): Shape {
  const types = shapes.every((shape) => shape.types)
    ? unionOf(shapes.map((shape) => shape.types ?? []))
    : undefined;
  const kept = types?.filter((type) => type !== "null");
  const keywords = { ...sharedKeywords(shapes), ...unitedEnum(shapes) };
  if (kept?.length !== 1) {
    return { ...defined({ types }), keywords };
  }
  if (kept[0] === "object") {
    const required = requiredInAll(shapes);
    return {
      ...defined({ types, properties: joinProperties(shapes, unite) }),
      ...(required.length > 0 ? { required } : {}),
      ...(shapes.some((shape) => shape.open) ? { open: true } : {}),
      keywords,
    };
  }
  const items = shapes.map((shape) => shape.items ?? ANYTHING);
  return {
    ...defined({ types }),
    ...(kept[0] === "array" ? { items: unite(items) } : {}),
    keywords,
  };
}

function isNull(shape: Shape): boolean {
  return shape.types?.length === 1 && shape.types[0] === "null";
}

function intersectAll(shapes: readonly Shape[]): Shape {
  return shapes.reduce(intersect);
}

function onlyOne(first: Shape | undefined, second: Shape | undefined): { items?: Shape } {
  const items = first && second ? undefined : (first ?? second);
  return items ? { items } : {};
}

function commonTypes(
  first: readonly string[] | undefined,
  second: readonly string[] | undefined,
): readonly string[] | undefined {
  if (!first || !second) {
    return first ?? second;
  }
  const accepts = (types: readonly string[], type: string) =>
    types.includes(type) || (type === "integer" && types.includes("number"));
  const common = unionOf([
    first.filter((type) => accepts(second, type)),
    second.filter((type) => accepts(first, type)),
  ]);
  return common.length > 0 ? common : second;
}

/** All types of the lists, each once; `number` makes `integer` superfluous. */
function unionOf(lists: readonly (readonly string[])[]): readonly string[] {
  const all = new Set(lists.flat());
  if (all.has("number")) {
    all.delete("integer");
  }
  return [...all];
}

function joinProperties(
  shapes: readonly Shape[],
  join: (shapes: readonly Shape[]) => Shape,
): Shape["properties"] {
  const lists = new Map<string, Shape[]>();
  for (const shape of shapes) {
    for (const [name, property] of Object.entries(shape.properties ?? {})) {
      lists.set(name, [...(lists.get(name) ?? []), property]);
    }
  }
  if (!shapes.some((shape) => shape.properties)) {
    return undefined;
  }
  return Object.fromEntries([...lists].map(([name, list]) => [name, join(list)]));
}

function requiredInAll(shapes: readonly Shape[]): string[] {
  const [first, ...others] = shapes.map((shape) => shape.required ?? []);
  return (first ?? []).filter((name) => others.every((required) => required.includes(name)));
}

function intersectKeywords(first: Shape["keywords"], second: Shape["keywords"]) {
  const keywords: Record<string, unknown> = { ...first, ...second };
  for (const keyword of Object.keys(first)) {
    const [one, other] = [first[keyword], second[keyword]];
    if (typeof one === "number" && typeof other === "number") {
      if (RAISED.has(keyword)) {
        keywords[keyword] = Math.max(one, other);
      } else if (LOWERED.has(keyword)) {
        keywords[keyword] = Math.min(one, other);
      }
    }
  }
  return keywords;
}

function sharedKeywords(shapes: readonly Shape[]): Record<string, unknown> {
  const [first, ...others] = shapes.map((shape) => shape.keywords);
  const shared = Object.entries(first ?? {}).filter(
    ([keyword, value]) =>
      keyword !== "enum" &&
      others.every((other) => JSON.stringify(other[keyword]) === JSON.stringify(value)),
  );
  return Object.fromEntries(shared);
}

function unitedEnum(shapes: readonly Shape[]): { enum?: unknown[] } {
  const lists = shapes.map((shape) => shape.keywords.enum);
  return lists.every((list): list is unknown[] => Array.isArray(list))
    ? { enum: [...new Set(lists.flat())] }
    : {};
}

/** The object without undefined members. */
function defined<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}
