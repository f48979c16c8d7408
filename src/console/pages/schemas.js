// @ts-check
/** Short descriptions of JSON Schemas, for the reference. */

/** @typedef {Record<string, any>} Schema */

/**
 * @typedef {{
 *   info: {version: string},
 *   tags: {name: string, description?: string}[],
 *   paths: Record<string, Record<string, any>>,
 *   components: Schema,
 * }} OpenApi
 */

/**
 * What a reference names; anything else as it is.
 * @param {OpenApi} document
 * @param {Schema} value
 * @returns {Schema}
 */
export function resolve(document, value) {
  const path = typeof value.$ref === "string" ? value.$ref.slice("#/".length).split("/") : [];
  return path.length === 0
    ? value
    : path.reduce((/** @type {any} */ found, /** @type {string} */ key) => found[key], document);
}

/**
 * `text, 1 to 63 characters`, or the name of a message with its fields.
 * @param {OpenApi} document
 * @param {Schema} schema
 * @returns {string}
 */
export function typeOf(document, schema) {
  const { $ref, type, items, enum: values, format } = schema;
  if ($ref) {
    const { properties = {} } = resolve(document, schema);
    return `${$ref.split("/").at(-1)} {${Object.keys(properties).join(", ")}}`;
  }
  if (values) {
    return values.join(" | ");
  }
  if (type === "array") {
    return `list of ${typeOf(document, items ?? {})}`;
  }
  return [type ?? "any value", format, bounds(schema)].filter(Boolean).join(", ");
}

/** @param {Schema} schema */
function bounds({ minimum, maximum, minLength, maxLength, pattern }) {
  /**
   * @param {number | undefined} from
   * @param {number | undefined} to
   * @param {string} unit
   */
  const range = (from, to, unit) =>
    from === undefined && to === undefined
      ? ""
      : `${from === undefined ? "up" : `from ${from}`}${to === undefined ? "" : ` to ${to}`}${unit}`;
  return [
    range(minimum, maximum, ""),
    range(minLength, maxLength, " characters"),
    pattern && `matches ${pattern}`,
  ]
    .filter(Boolean)
    .join(", ");
}
