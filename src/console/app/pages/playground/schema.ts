/** JSON Schema as forms need it: simple, and with what is wrong with a value in words. */

export interface FormSchema {
  readonly $ref?: string;
  readonly anyOf?: readonly FormSchema[];
  readonly oneOf?: readonly FormSchema[];
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly items?: FormSchema;
  readonly properties?: Readonly<Record<string, FormSchema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** References that are followed from one schema: they may lead in a circle. */
const MAX_REFERENCES = 50;

/**
 * Resolves references into the document, and drops `null` from a choice between it and one other
 * schema.
 */
export function plainSchema(document: object, schema: FormSchema): FormSchema {
  let plain = typeof schema === "object" ? schema : {};
  for (let step = 0; step < MAX_REFERENCES; step += 1) {
    const inner = innerSchema(document, plain);
    if (inner === undefined) {
      break;
    }
    const { $ref: _, anyOf: __, oneOf: ___, ...outer } = plain;
    plain = { ...inner, ...outer };
  }
  if (typeof plain.type === "string" || plain.type === undefined) {
    return plain;
  }
  const { type, ...rest } = plain;
  const [only, ...others] = type.filter((one) => one !== "null");
  return only !== undefined && others.length === 0 ? { ...rest, type: only } : rest;
}

function innerSchema(document: object, { $ref, anyOf, oneOf }: FormSchema): FormSchema | undefined {
  if (typeof $ref === "string") {
    const path = $ref.split("/").slice(1);
    return path.reduce<unknown>((found, part) => {
      const key = decodeURIComponent(part.replaceAll("~1", "/").replaceAll("~0", "~"));
      return (found as Record<string, unknown> | undefined)?.[key];
    }, document) as FormSchema | undefined;
  }
  const [only, ...others] = (anyOf ?? oneOf ?? []).filter(({ type }) => type !== "null");
  return others.length === 0 ? only : undefined;
}

/** The first violation that a form can find, in words; the server checks the rest. */
export function problemOf(document: object, of: FormSchema, given: unknown): string | undefined {
  return problemAt(document, of, given, "");
}

function problemAt(
  document: object,
  of: FormSchema,
  given: unknown,
  path: string,
): string | undefined {
  const schema = plainSchema(document, of);
  const value = asDouble(given);
  const at = path === "" ? "" : `${path}: `;
  if (typeof schema.type === "string" && !fitsType(schema.type, value)) {
    return value === null ? undefined : `${at}must be ${withArticle(schema.type)}`;
  }
  const bound = boundProblem(schema, value);
  if (bound !== undefined) {
    return at + bound;
  }
  const inner = (name: string | number, property: FormSchema, one: unknown) =>
    problemAt(document, property, one, path === "" ? String(name) : `${path}.${name}`);
  if (Array.isArray(value)) {
    return first(value.map((item, index) => inner(index, schema.items ?? {}, item)));
  }
  if (schema.type !== "object") {
    return undefined;
  }
  const members = value as Readonly<Record<string, unknown>>;
  const missing = schema.required?.find((name) => !(name in members));
  if (missing !== undefined) {
    return `${at}'${missing}' is missing`;
  }
  return first(
    Object.entries(schema.properties ?? {})
      .filter(([name]) => name in members)
      .map(([name, property]) => inner(name, property, members[name])),
  );
}

/** A number that stays as it was written is raw JSON, an object: its bounds are those of a double. */
function asDouble(value: unknown): unknown {
  const { isRawJSON } = JSON as { isRawJSON?: (value: unknown) => boolean };
  return isRawJSON?.(value) ? JSON.parse(JSON.stringify(value)) : value;
}

function fitsType(type: string, value: unknown): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

function boundProblem(schema: FormSchema, value: unknown): string | undefined {
  const { enum: choices } = schema;
  if (choices && !choices.includes(value)) {
    return typeof value === "object" ? undefined : `must be one of ${choices.join(", ")}`;
  }
  const below = (bound: number | undefined): boolean =>
    bound !== undefined && (value as number) < bound;
  const above = (bound: number | undefined): boolean =>
    bound !== undefined && (value as number) > bound;
  if (typeof value === "number") {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
    return first([
      below(minimum) ? `must be at least ${minimum}` : undefined,
      above(maximum) ? `must be at most ${maximum}` : undefined,
      below(exclusiveMinimum) || value === exclusiveMinimum
        ? `must be more than ${exclusiveMinimum}`
        : undefined,
      above(exclusiveMaximum) || value === exclusiveMaximum
        ? `must be less than ${exclusiveMaximum}`
        : undefined,
    ]);
  }
  if (typeof value === "string") {
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
    const { length } = [...value];
    if (length < minLength) {
      return length > 0 ? `needs at least ${minLength} characters` : "is required";
    }
    return length > maxLength ? `may have at most ${maxLength} characters` : undefined;
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
    if (value.length < minItems) {
      return `needs at least ${minItems} items`;
    }
    return value.length > maxItems ? `may have at most ${maxItems} items` : undefined;
  }
  return undefined;
}

const withArticle = (type: string): string => (/^[aio]/.test(type) ? `an ${type}` : `a ${type}`);

const first = (problems: readonly (string | undefined)[]): string | undefined =>
  problems.find((problem) => problem !== undefined);
