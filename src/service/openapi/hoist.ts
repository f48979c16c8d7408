/** Moves JSON Schemas into the components of an OpenAPI document. */
import type { JsonSchema } from "../../protocol/manifest.ts";
import { resolveReference } from "../flatten.ts";

/**
 * A schema as components of an OpenAPI document, by their names: itself, and each schema in it that
 * a reference names (`#/$defs/Item` becomes the component `{component}.Item`). Few generators
 * follow a reference into another component. Anchors and foreign references stay as they are.
 */
export function hoistSchema(
  schema: JsonSchema,
  component: string,
): { [component: string]: JsonSchema } {
  const names = new Map<unknown, string>([[schema, component]]);
  for (const reference of referencesIn(schema)) {
    const found = resolveReference(schema, reference);
    if (typeof found === "object" && found !== null && !names.has(found)) {
      names.set(found, freeName(`${component}.${wordOf(reference)}`, [...names.values()]));
    }
  }
  const { $schema: _, $defs: _defs, definitions: _definitions, ...own } = schema;
  const moved = { schema, names };
  const inner = [...names].filter(([found]) => found !== schema);
  return Object.fromEntries([
    [component, rewritten(own, moved)],
    ...inner.map(([found, name]) => [name, rewritten(found as object, moved)]),
  ]);
}

/** The value of `$ref` that refers to a component. */
export function componentReference(component: string): string {
  return `#/components/schemas/${component}`;
}

/** Keywords whose value is data and not a schema, even if it looks like one. */
const DATA = new Set(["const", "enum", "default", "example", "examples"]);

interface Moved {
  readonly schema: JsonSchema;
  /** The components of the schemas that were moved. */
  readonly names: ReadonlyMap<unknown, string>;
}

function rewrite(value: unknown, moved: Moved): unknown {
  const name = moved.names.get(value);
  if (name !== undefined) {
    return { $ref: componentReference(name) };
  }
  if (Array.isArray(value)) {
    return value.map((member) => rewrite(member, moved));
  }
  return typeof value === "object" && value !== null ? rewritten(value, moved) : value;
}

function rewritten(value: object, moved: Moved): JsonSchema {
  const entries = Object.entries(withoutLimits(withoutRest(value))).map(([key, member]) => {
    if (key === "$ref" && typeof member === "string") {
      const name = moved.names.get(resolveReference(moved.schema, member));
      return [key, name === undefined ? member : componentReference(name)];
    }
    return [key, DATA.has(key) && !isNamedSchema(member) ? member : rewrite(member, moved)];
  });
  return Object.fromEntries(entries);
}

function referencesIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) {
    return [];
  }
  return Object.entries(value).flatMap(([key, member]) => {
    if (key === "$ref" && typeof member === "string") {
      return [member];
    }
    return DATA.has(key) && !isNamedSchema(member) ? [] : referencesIn(member);
  });
}

/** The end of a reference, in letters that names of components may have. */
function wordOf(reference: string): string {
  const last = reference.slice(reference.lastIndexOf("/") + 1);
  return last.replaceAll(/[^A-Za-z0-9_-]/g, "_");
}

function freeName(wanted: string, taken: readonly string[]): string {
  let name = wanted;
  for (let count = 2; taken.includes(name); count += 1) {
    name = `${wanted}${count}`;
  }
  return name;
}

/** The same of a tuple that takes no more, by its length: few generators take `false` for a schema. */
function withoutRest(schema: object): object {
  const { prefixItems, items, maxItems, ...rest } = schema as JsonSchema;
  return Array.isArray(prefixItems) && items === false
    ? { ...rest, prefixItems, maxItems: maxItems ?? prefixItems.length }
    : schema;
}

/**
 * The same with the limits that a number may not reach as the next whole number or, for fractions,
 * where only those look who check values: generators of OpenAPI 3.0 take these keywords for flags.
 */
function withoutLimits(schema: object): object {
  const { exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = schema as JsonSchema;
  const isLimited = typeof above === "number" || typeof below === "number";
  // Without a type, it is such a rule already, or part of one.
  if (!isLimited || rest.type === undefined || "if" in rest) {
    return schema;
  }
  if (rest.type === "integer") {
    const least = typeof above === "number" ? Math.floor(above) + 1 : undefined;
    const most = typeof below === "number" ? Math.ceil(below) - 1 : undefined;
    const minimum = greatest(rest.minimum, least);
    const maximum = smallest(rest.maximum, most);
    return {
      ...rest,
      ...(minimum !== undefined && { minimum }),
      ...(maximum !== undefined && { maximum }),
    };
  }
  const limits = {
    ...(typeof above === "number" && { exclusiveMinimum: above }),
    ...(typeof below === "number" && { exclusiveMaximum: below }),
  };
  return { ...rest, ...unseen([limits]) };
}

function greatest(...bounds: readonly unknown[]): number | undefined {
  const numbers = bounds.filter((bound) => typeof bound === "number");
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}

function smallest(...bounds: readonly unknown[]): number | undefined {
  const numbers = bounds.filter((bound) => typeof bound === "number");
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

/**
 * Rules for those who check values, and for nobody else: generators make types of alternatives at
 * the top of a schema, and fail at them or lose the fields beside them.
 */
export function unseen(rules: readonly JsonSchema[]): JsonSchema {
  const some = rules.filter((rule) => Object.keys(rule).length > 0);
  return some.length === 0
    ? {}
    : { if: some.length > 1 ? { allOf: some } : some[0], else: { not: {} } };
}

/** A property may be called `default` or `enum`; then its value is a schema with a reference. */
function isNamedSchema(value: unknown): boolean {
  return typeof value === "object" && value !== null && "$ref" in value;
}
