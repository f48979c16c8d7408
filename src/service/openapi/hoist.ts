/** Moves JSON Schemas into the components of an OpenAPI document. */
import type { JsonSchema } from "../../protocol/manifest.ts";

/**
 * Turns a schema into a component of an OpenAPI document: references within the
 * schema (`#/$defs/Item`) become references from the document's root
 * (`#/components/schemas/{component}/$defs/Item`). Anchors and foreign
 * references stay as they are.
 */
export function hoistSchema(schema: JsonSchema, component: string): JsonSchema {
  const { $schema: _, ...hoisted } = rewrite(schema, componentReference(component)) as JsonSchema;
  return hoisted;
}

/** The value of `$ref` that refers to a component. */
export function componentReference(component: string): string {
  return `#/components/schemas/${component}`;
}

/** Keywords whose value is data and not a schema, even if it looks like one. */
const DATA = new Set(["const", "enum", "default", "example", "examples"]);

function rewrite(value: unknown, base: string): unknown {
  if (Array.isArray(value)) {
    return value.map((member) => rewrite(member, base));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const entries = Object.entries(value).map(([key, member]) => {
    if (key === "$ref" && typeof member === "string") {
      return [key, member === "#" || member.startsWith("#/") ? base + member.slice(1) : member];
    }
    return [key, DATA.has(key) && !isNamedSchema(member) ? member : rewrite(member, base)];
  });
  return Object.fromEntries(entries);
}

/** A property may be called `default` or `enum`; then its value is a schema with a reference. */
function isNamedSchema(value: unknown): boolean {
  return typeof value === "object" && value !== null && "$ref" in value;
}
