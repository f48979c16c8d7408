/**
 * Types of Python from flat JSON Schemas. Objects become `TypedDict`s in their functional form,
 * which takes any names; types in it are texts, so that their order does not matter.
 */
import { MAX_SCHEMA_DEPTH } from "./generate.ts";
import { type ClassNames, prose, text } from "./python-names.ts";
import type { FlatSchema } from "./schema.ts";

/** Where a type stands: arguments take whatever can be sent, results are what comes. */
type Side = "argument" | "result";

const ANY = "_typing.Any";

/** Writes types, and collects the classes that they need. */
export class PythonTypes {
  /** The declarations of the classes so far. */
  readonly classes: string[] = [];
  readonly #names: ClassNames;

  constructor(names: ClassNames) {
    this.#names = names;
  }

  /** The type of a schema; `path` names the classes that it needs. */
  of(schema: FlatSchema | undefined, side: Side, path: readonly string[]): string {
    if (schema === undefined || path.length > MAX_SCHEMA_DEPTH) {
      return ANY;
    }
    const values = schema.const === undefined ? schema.enum : [schema.const];
    if (Array.isArray(values) && values.length > 0) {
      return literal(values);
    }
    const types = Array.isArray(schema.type) ? schema.type : [schema.type];
    const named = types.map((type) => this.#named(type, schema, side, path));
    return named.includes(ANY) ? ANY : [...new Set(named)].join(" | ");
  }

  #named(type: unknown, schema: FlatSchema, side: Side, path: readonly string[]): string {
    switch (type) {
      case "string":
        return "str";
      case "boolean":
        return "bool";
      case "null":
        return "None";
      case "number":
        return "float";
      case "integer":
        return "int";
      case "file":
        return side === "argument" ? "_t.FileArgument" : "_t.ResultFile";
      case "array":
        return this.#array(schema, side, path);
      case "object":
        return this.#object(schema, side, path);
      default:
        return ANY;
    }
  }

  #array({ items }: FlatSchema, side: Side, path: readonly string[]): string {
    const item = this.of(items, side, [...path, "item"]);
    if (side === "result") {
      return `list[${item}]`;
    }
    // Arrays and tables hold numbers, rows, or what nobody has said.
    const isText = item === "str" || item.startsWith("_t.File") || item.includes("Literal[");
    return `_t.Sequence[${item}]${isText ? "" : " | _t.ArrayLike"}`;
  }

  #object(schema: FlatSchema, side: Side, path: readonly string[]): string {
    const { properties = {}, required = [], additionalProperties } = schema;
    const members = Object.entries(properties);
    if (members.length === 0) {
      const value =
        typeof additionalProperties === "object"
          ? this.of(additionalProperties, side, [...path, "value"])
          : ANY;
      return side === "argument" ? `_t.Mapping[str, ${value}]` : `dict[str, ${value}]`;
    }
    const name = this.#names.of(...path);
    const lines = members.map(([member, property]) => {
      const type = this.of(property, side, [...path, member]);
      const about = property.description ? `        # ${prose(property.description)}\n` : "";
      const declared = required.includes(member) ? type : `_t.NotRequired[${type}]`;
      return `${about}        ${text(member)}: ${text(declared)},\n`;
    });
    this.classes.push(
      `${name} = _typing.TypedDict(\n    ${text(name)},\n    {\n${lines.join("")}    },\n)\n`,
    );
    return name;
  }
}

/** The values of an enumeration; numbers with a fraction have no literal type. */
function literal(values: readonly unknown[]): string {
  const written = values.map((value) => {
    if (value === null) {
      return "None";
    }
    if (typeof value === "boolean") {
      return value ? "True" : "False";
    }
    return typeof value === "string" ? text(value) : String(value);
  });
  const isLiteral = values.every(
    (value) => value === null || ["string", "boolean"].includes(typeof value) || isInteger(value),
  );
  if (isLiteral) {
    return `_typing.Literal[${written.join(", ")}]`;
  }
  return values.every((value) => typeof value === "number") ? "float" : ANY;
}

function isInteger(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value);
}
