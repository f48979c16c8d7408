/**
 * What an argument may be made of, where the scan of JSON sees all that its schema says: numbers,
 * texts, arrays and objects of them, nested or not, and what may be anything. Such an argument is
 * not parsed to be checked: parsing and checking take four times as long as the scan.
 */
import { type JsonShape, KIND, MAX_NAMED_MEMBERS } from "../../collections/json-kinds.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";

const NUMBER = KIND.integer | KIND.wide | KIND.fraction | KIND.constant;

const KINDS: Readonly<Record<string, number>> = {
  integer: KIND.integer | KIND.wide,
  number: NUMBER,
  string: KIND.string,
  boolean: KIND.boolean,
  null: KIND.null,
  array: KIND.array,
  object: KIND.object,
};

const ANYTHING: JsonShape = {
  kinds: NUMBER | KIND.string | KIND.boolean | KIND.null | KIND.array | KIND.object,
};

/** Keywords by which no value is refused. */
const TOLD = new Set([
  ...["title", "description", "default", "examples", "deprecated", "$comment", "describedAs"],
]);

/** Schemas within that of an argument, where references count each time; no more are looked at. */
const MAX_SCHEMAS = 500;

/** A reference to a schema beside that of all arguments. */
const REFERENCE = /^#\/(\$defs|definitions)\/([^/~%]+)$/;

/** The shape of an argument; undefined for a schema that says more than a scan sees. `root` has what it refers to. */
export function shapeOf(schema: unknown, root: JsonSchema = {}): JsonShape | undefined {
  return new ShapeReader(root).read(schema);
}

class ShapeReader {
  readonly #root: JsonSchema;
  #left = MAX_SCHEMAS;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  read(schema: unknown): JsonShape | undefined {
    this.#left -= 1;
    if (schema === true || schema === undefined) {
      return ANYTHING;
    }
    if (typeof schema !== "object" || schema === null || this.#left < 0) {
      return undefined;
    }
    const said = Object.entries(schema as JsonSchema).filter(([keyword]) => !TOLD.has(keyword));
    const { type, items, minItems, maxItems, properties, required, ...more } = Object.fromEntries(
      said,
    ) as JsonSchema;
    const { additionalProperties, $ref, anyOf, ...rest } = more;
    if ($ref !== undefined || anyOf !== undefined) {
      return said.length === 1 ? (this.#referred($ref) ?? this.#anyOf(anyOf)) : undefined;
    }
    const bounded = safeIntegers(type, rest);
    if (bounded === undefined && Object.keys(rest).length > 0) {
      return undefined;
    }
    const inner = this.read(items);
    const isOpen =
      properties === undefined && required === undefined && additionalProperties === undefined;
    const members = isOpen ? undefined : this.#members(properties, required, additionalProperties);
    if (inner === undefined || (members === undefined && !isOpen)) {
      return undefined;
    }
    return {
      kinds: bounded ?? kindsOf(type),
      ...(inner !== ANYTHING && { items: inner }),
      ...(typeof minItems === "number" && { minItems }),
      ...(typeof maxItems === "number" && { maxItems }),
      ...(members && { members }),
    };
  }

  #members(properties: unknown, required: unknown, additional: unknown): JsonShape["members"] {
    const names = Array.isArray(required) ? required.map(String) : [];
    const described = new Map(Object.entries((properties ?? {}) as JsonSchema));
    for (const name of names) {
      described.set(name, described.get(name) ?? (additional as object | undefined));
    }
    // The validator takes `__proto__` for no property, whatever is said of it.
    if (described.size > MAX_NAMED_MEMBERS || described.has("__proto__")) {
      return undefined;
    }
    const others = additional === false ? undefined : this.read(additional);
    if (others === undefined && additional !== false) {
      return undefined;
    }
    const named: { quoted: Uint8Array; shape: JsonShape }[] = [];
    for (const [name, schema] of described) {
      const shape = this.read(schema);
      if (shape === undefined) {
        return undefined;
      }
      named.push({ quoted: Buffer.from(JSON.stringify(name)), shape });
    }
    const order = [...described.keys()];
    const bits = names.reduce((all, name) => all | (1 << order.indexOf(name)), 0);
    return { named, required: bits, others };
  }

  #referred(reference: unknown): JsonShape | undefined {
    const [, among = "", name = ""] = REFERENCE.exec(String(reference)) ?? [];
    const schemas = this.#root[among];
    const isThere = typeof schemas === "object" && schemas !== null && Object.hasOwn(schemas, name);
    return isThere ? this.read((schemas as JsonSchema)[name]) : undefined;
  }

  /** One of several: what a scan sees if they differ in their kinds alone. */
  #anyOf(schemas: unknown): JsonShape | undefined {
    const shapes = Array.isArray(schemas) ? schemas.map((each) => this.read(each)) : [];
    let kinds = 0;
    let described: JsonShape | undefined;
    for (const shape of shapes) {
      const isPlain = shape !== undefined && Object.keys(shape).length === 1;
      if (shape === undefined || (!isPlain && described !== undefined)) {
        return undefined;
      }
      // What is said of an array or an object holds only where no other one may be either.
      if (!isPlain) {
        described = shape;
      }
      kinds |= shape.kinds;
    }
    return shapes.length === 0 ? undefined : { ...described, kinds };
  }
}

function kindsOf(type: unknown): number {
  if (type === undefined) {
    return ANYTHING.kinds;
  }
  return [type].flat().reduce<number>((kinds, each) => kinds | (KINDS[String(each)] ?? 0), 0);
}

/** Integers that are safe in JavaScript, as Zod's `int()` says it: one of few digits is within. */
function safeIntegers(type: unknown, bounds: JsonSchema): number | undefined {
  const { minimum, maximum, ...rest } = bounds;
  return type === "integer" &&
    minimum === Number.MIN_SAFE_INTEGER &&
    maximum === Number.MAX_SAFE_INTEGER &&
    Object.keys(rest).length === 0
    ? KIND.integer
    : undefined;
}

/** Whether a value of a shape may be anything. */
export function takesAnything({ kinds, ...said }: JsonShape): boolean {
  return kinds === ANYTHING.kinds && Object.keys(said).length === 0;
}

/** Whether values of a shape are counted as those that are parsed: objects whose members are told. */
export function countsObjects({ items, members }: JsonShape): boolean {
  return members !== undefined || (items !== undefined && countsObjects(items));
}
