// @ts-check
/** JSON whose numbers stay as they are written: `9007199254740993` and `1.0` are no doubles. */

const { rawJSON } = /** @type {{ rawJSON?: (text: string) => object }} */ (JSON);

/**
 * Parses a text for `JSON.stringify`, which gives the same numbers back; in older browsers they
 * are doubles.
 * @param {string} text
 * @returns {any}
 */
export function parseExactly(text) {
  /** @param {string} _key @param {any} value @param {{ source?: string }} [context] */
  const keep = (_key, value, context) => {
    const source = context?.source;
    const differs = typeof value === "number" && source !== undefined && String(value) !== source;
    return differs && rawJSON !== undefined ? rawJSON(source) : value;
  };
  return JSON.parse(text, /** @type {any} */ (keep));
}

/**
 * The media type of arguments in JSON. One object alone might be taken for the value of the one
 * argument of an endpoint whose body is that, so it is said that it is by name.
 * @param {Record<string, unknown>} values
 */
export function argumentsType(values) {
  const [first, ...others] = Object.values(values);
  const isObject = typeof first === "object" && first !== null && !Array.isArray(first);
  return isObject && others.length === 0
    ? "application/vnd.tessera.arguments+json"
    : "application/json";
}
