// @ts-check
/** Simplifies JSON Schemas for forms, and validates values against them. */

/** @typedef {import("./service.js").Schema} Schema */

const MAX_STEPS = 50;

/**
 * Simplifies a schema for a form: resolves references, and drops `null` from a
 * choice between it and one other schema.
 * @param {any} docs the document that references point into
 * @param {Schema | boolean} schema
 * @returns {Schema}
 */
export function plainSchema(docs, schema) {
  /** @type {Schema} */
  let plain = typeof schema === "object" ? schema : {};
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const inner = innerSchema(docs, plain);
    if (!inner) {
      break;
    }
    const { $ref: _, anyOf: __, oneOf: ___, ...outer } = plain;
    plain = { ...inner, ...outer };
  }
  return withoutNull(plain);
}

/**
 * Describes the first violation that a form can detect; the server checks the
 * rest.
 * @param {(schema: Schema) => Schema} follow
 * @param {Schema} unfollowed
 * @param {any} value
 * @param {string} [path]
 * @returns {string | undefined}
 */
export function problemOf(follow, unfollowed, value, path = "") {
  const schema = follow(unfollowed);
  const at = path ? `${path}: ` : "";
  if (schema.type && !fitsType(schema.type, value)) {
    return value === null ? undefined : `${at}must be ${withArticle(schema.type)}`;
  }
  const bound = boundProblem(schema, value);
  if (bound) {
    return at + bound;
  }
  if (Array.isArray(value)) {
    return first(
      value.map((item, index) => problemOf(follow, schema.items ?? {}, item, join(path, index))),
    );
  }
  if (schema.type === "object") {
    const missing = (schema.required ?? []).find((/** @type {string} */ name) => !(name in value));
    if (missing) {
      return `${at}'${missing}' is missing`;
    }
    const properties = Object.entries(schema.properties ?? {}).filter(([name]) => name in value);
    return first(
      properties.map(([name, property]) =>
        problemOf(follow, property, value[name], join(path, name)),
      ),
    );
  }
  return undefined;
}

/**
 * @param {any} docs
 * @param {Schema} schema
 */
function innerSchema(docs, schema) {
  if (typeof schema.$ref === "string") {
    return pointedAt(docs, schema.$ref);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  const others = choices?.filter((/** @type {Schema} */ choice) => choice.type !== "null");
  return others?.length === 1 ? others[0] : undefined;
}

/**
 * @param {any} docs
 * @param {string} reference
 */
function pointedAt(docs, reference) {
  const names = reference.split("/").slice(1);
  return names.reduce((found, name) => {
    const key = decodeURIComponent(name.replaceAll("~1", "/").replaceAll("~0", "~"));
    return found?.[key];
  }, docs);
}

/**
 * @param {Schema} schema
 * @returns {Schema}
 */
function withoutNull(schema) {
  if (!Array.isArray(schema.type)) {
    return schema;
  }
  const types = schema.type.filter((type) => type !== "null");
  const { type: _, ...rest } = schema;
  return types.length === 1 ? { ...rest, type: types[0] } : rest;
}

/**
 * @param {string} type
 * @param {unknown} value
 */
function fitsType(type, value) {
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

/**
 * @param {Schema} schema
 * @param {any} value
 */
function boundProblem(schema, value) {
  if (schema.enum && !schema.enum.some((/** @type {unknown} */ one) => one === value)) {
    return typeof value === "object" ? undefined : `must be one of ${schema.enum.join(", ")}`;
  }
  if (typeof value === "number") {
    if (value < schema.minimum || value <= schema.exclusiveMinimum) {
      return `must be ${value < schema.minimum ? `at least ${schema.minimum}` : `more than ${schema.exclusiveMinimum}`}`;
    }
    if (value > schema.maximum || value >= schema.exclusiveMaximum) {
      return `must be ${value > schema.maximum ? `at most ${schema.maximum}` : `less than ${schema.exclusiveMaximum}`}`;
    }
  }
  if (typeof value === "string" && [...value].length < schema.minLength) {
    return value ? `needs at least ${schema.minLength} characters` : "is required";
  }
  if (typeof value === "string" && [...value].length > schema.maxLength) {
    return `may have at most ${schema.maxLength} characters`;
  }
  if (Array.isArray(value) && value.length < schema.minItems) {
    return `needs at least ${schema.minItems} items`;
  }
  if (Array.isArray(value) && value.length > schema.maxItems) {
    return `may have at most ${schema.maxItems} items`;
  }
  return undefined;
}

/** @param {string} type */
function withArticle(type) {
  return /^[aio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/**
 * @param {string} path
 * @param {string | number} name
 */
function join(path, name) {
  return path ? `${path}.${name}` : String(name);
}

/** @param {(string | undefined)[]} problems */
function first(problems) {
  return problems.find((problem) => problem !== undefined);
}
