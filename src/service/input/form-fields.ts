/**
 * Turns the texts of a form into JSON, by what the endpoint's schema says of each argument. It
 * waits for nothing and keeps nothing, so that it runs on the serving thread for small forms and
 * on another for large ones (`threads.ts`).
 */
import { MAX_JSON_VALUES, tooMany, type ValueRoom } from "../../collections/json-bounds.ts";
import { JsonFault, scanJson } from "../../collections/json-scan.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
import { resolveReference } from "../flatten.ts";
import type { JsonFields } from "./json-fields.ts";

type FormEndpoint = Pick<EndpointManifest, "input" | "check" | "json">;

/** The texts of the arguments of a form, by name, each in the order of their parts. */
export type FormTexts = Map<string, string[]>;

/**
 * The JSON texts of the values by name, in which numbers are as they were sent, and what cannot be
 * one. Throws BODY_MALFORMED for JSON beyond the bounds.
 */
export function fieldsOfForm(
  endpoint: FormEndpoint,
  texts: FormTexts,
): { readonly fields: JsonFields; readonly violations: readonly FieldViolation[] } {
  return new FormFields(endpoint).of(texts);
}

class FormFields {
  readonly #endpoint: FormEndpoint;
  /** All texts of the form share the bound of one body. */
  readonly #room: ValueRoom = { values: MAX_JSON_VALUES };

  constructor(endpoint: FormEndpoint) {
    this.#endpoint = endpoint;
  }

  of(all: FormTexts) {
    const fields: JsonFields = new Map();
    const violations: FieldViolation[] = [];
    const { input } = this.#endpoint;
    for (const [name, texts] of all) {
      const property = propertyOf(input, name);
      const [first = "", ...others] = texts;
      if (takesList(property, input)) {
        const whole = others.length === 0 ? this.#wholeOf(name, first) : undefined;
        const items = (whole === undefined ? texts : []).map((text, index) =>
          this.#jsonOf(text, itemOf(property, index, input)),
        );
        fields.set(name, whole ?? `[${items.join(",")}]`);
      } else if (others.length === 0) {
        fields.set(name, this.#jsonOf(first, property, this.#checked(name)));
      } else if (takesAny(property, input)) {
        const values = texts.map((text) => this.#jsonOf(text, property));
        fields.set(name, `[${values.join(",")}]`);
      } else {
        const description = `takes one value, ${texts.length} were sent`;
        violations.push({ field: name, description });
      }
    }
    return { fields, violations };
  }

  /** The one value of an argument that may be a list; undefined where it is an item of it. */
  #wholeOf(name: string, text: string): string | undefined {
    const { input, check } = this.#endpoint;
    const property = propertyOf(input, name);
    const { values } = this.#room;
    const json = this.#jsonOf(text, property, this.#checked(name));
    const isWhole =
      json.startsWith("[") ||
      takesJson(json, property, input) ||
      takesJson(json, this.#checked(name), check ?? input);
    if (!isWhole) {
      // It is read once more, as an item.
      this.#room.values = values;
    }
    return isWhole ? json : undefined;
  }

  /** What the check says of an argument, which takes more than its description says. */
  #checked(name: string): unknown {
    const { check } = this.#endpoint;
    return check === undefined ? undefined : propertyOf(check, name);
  }

  #jsonOf(text: string, schema: unknown, checked?: unknown): string {
    const { input, check = input } = this.#endpoint;
    if (!mayBeJson(text, schema, input) && !mayBeNumber(text, checked, check)) {
      return JSON.stringify(text);
    }
    try {
      const constants = this.#endpoint.json === "python" || !/^\s*[NI]/.test(text);
      // A service in Python reads its own numbers, and any other refuses them by their name.
      this.#room.values -= scanJson(Buffer.from(text), { constants }).objects;
    } catch (err) {
      if (!(err instanceof JsonFault)) {
        throw err;
      }
      if (!err.isSyntax) {
        throw problem("BODY_MALFORMED", `the form ${err.message}`);
      }
      // Not JSON: bare text.
      return JSON.stringify(text);
    }
    if (this.#room.values < 0) {
      throw problem("BODY_MALFORMED", `the form ${tooMany(MAX_JSON_VALUES)}`);
    }
    return text.trim();
  }
}

function propertyOf(input: JsonSchema, name: string): unknown {
  const properties = (input.properties ?? {}) as { readonly [name: string]: unknown };
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/**
 * Reads a text of a form as the value of an argument. Client libraries send JSON, and people and
 * browsers bare text; many texts are both. The types that the argument's schema takes decide: `12`
 * is a text for a text, an enum of texts or their list, a number for a number, and what it is in
 * JSON where both are taken.
 */
type JsonType = "string" | "number" | "boolean" | "null" | "array" | "object";

/** The types that a schema takes; undefined: any, or more than this knows. */
type Taken = ReadonlySet<JsonType> | undefined;

/** References and alternatives within each other that are followed. */
const MAX_DEPTH = 16;

/**
 * True for a text that may be JSON of a type that the schema takes, or JSON at all where it takes no
 * text. Its beginning decides: the rest of what is no JSON then is a text.
 */
function mayBeJson(text: string, schema: unknown, root: JsonSchema): boolean {
  const type = BEGINNINGS.get(/\S/.exec(text)?.[0] ?? "");
  if (type === undefined) {
    return false;
  }
  const taken = typesOf(schema, { root, depth: MAX_DEPTH });
  return taken === undefined || taken.has(type) || !taken.has("string");
}

/**
 * True for a text that may be a number, where a schema names that: what is described as a text, such
 * as a duration, may be taken as a number too.
 */
function mayBeNumber(text: string, schema: unknown, root: JsonSchema): boolean {
  const type = BEGINNINGS.get(/\S/.exec(text)?.[0] ?? "");
  return type === "number" && typesOf(schema, { root, depth: MAX_DEPTH })?.has("number") === true;
}

/** The types of JSON by their first character. */
const BEGINNINGS: ReadonlyMap<string, JsonType> = new Map([
  ["{", "object"],
  ["[", "array"],
  ['"', "string"],
  ["t", "boolean"],
  ["f", "boolean"],
  ["n", "null"],
  // Of Python's `NaN` and `Infinity`, too.
  ...Array.from("-0123456789NI", (digit): [string, JsonType] => [digit, "number"]),
]);

/** True for the schema of a list, also one that may be something else. */
function takesList(schema: unknown, root: JsonSchema): boolean {
  return listOf(schema, { root, depth: MAX_DEPTH }) !== undefined;
}

/** True for a schema that says nothing of types. */
function takesAny(schema: unknown, root: JsonSchema): boolean {
  return typesOf(schema, { root, depth: MAX_DEPTH }) === undefined;
}

/** True for JSON of a type that the schema names. */
function takesJson(json: string, schema: unknown, root: JsonSchema): boolean {
  const type = BEGINNINGS.get(json[0] ?? "");
  const taken = typesOf(schema, { root, depth: MAX_DEPTH });
  return type !== undefined && taken?.has(type) === true;
}

/** The schema of an item of a list; undefined where the list says nothing of it. */
function itemOf(schema: unknown, index: number, root: JsonSchema): unknown {
  const list = listOf(schema, { root, depth: MAX_DEPTH });
  const first = Array.isArray(list?.prefixItems) ? list.prefixItems : [];
  return index < first.length ? first[index] : list?.items;
}

interface Within {
  /** Where references lead. */
  readonly root: JsonSchema;
  readonly depth: number;
}

function typeOfValue(value: unknown): JsonType {
  if (value === null) {
    return "null";
  }
  return Array.isArray(value) ? "array" : (typeof value as JsonType);
}

function typesOf(schema: unknown, within: Within): Taken {
  if (!isSchema(schema) || within.depth === 0) {
    return schema === false ? new Set() : undefined;
  }
  const inner = { ...within, depth: within.depth - 1 };
  if (schema.const !== undefined) {
    return new Set([typeOfValue(schema.const)]);
  }
  if (Array.isArray(schema.enum)) {
    return new Set(schema.enum.map(typeOfValue));
  }
  if (schema.type !== undefined) {
    const types = [schema.type].flat().map((type) => (type === "integer" ? "number" : type));
    return new Set(types as JsonType[]);
  }
  if (typeof schema.$ref === "string") {
    return typesOf(resolveReference(within.root, schema.$ref), inner);
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives)) {
    const all = alternatives.map((each) => typesOf(each, inner));
    return all.includes(undefined) ? undefined : new Set(all.flatMap((each) => [...(each ?? [])]));
  }
  const [first] = Array.isArray(schema.allOf)
    ? schema.allOf.map((each) => typesOf(each, inner)).filter((each) => each !== undefined)
    : [];
  return first;
}

function listOf(schema: unknown, within: Within): JsonSchema | undefined {
  if (!isSchema(schema) || within.depth === 0) {
    return undefined;
  }
  if ([schema.type].flat().includes("array")) {
    return schema;
  }
  const inner = { ...within, depth: within.depth - 1 };
  if (typeof schema.$ref === "string") {
    return listOf(resolveReference(within.root, schema.$ref), inner);
  }
  const parts = [schema.anyOf, schema.oneOf, schema.allOf].filter(Array.isArray).flat();
  return parts.map((each) => listOf(each, inner)).find((each) => each !== undefined);
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
