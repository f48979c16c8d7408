// @ts-check
/** Form controls for JSON Schema types. */
import { element } from "./dom.js";
import { parseExactly } from "./exactjson.js";

/** @typedef {import("./service.js").Schema} Schema */
/**
 * @typedef {object} Control what holds the value of one argument
 * @property {HTMLElement} root
 * @property {HTMLElement} input what a label names and the keyboard reaches
 * @property {() => unknown} read the value; undefined when it is left out; throws when it cannot be read
 * @property {(value: any) => void} write
 */

/**
 * Creates the control for a schema: a choice, a switch, a number, a text, or
 * JSON for everything else.
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Control}
 */
export function controlFor(schema, required) {
  if (Array.isArray(schema.enum)) {
    return choiceControl(schema.enum, schema, required);
  }
  switch (schema.type) {
    case "boolean":
      return typeof schema.default === "boolean"
        ? switchControl(schema)
        : choiceControl([true, false], schema, required);
    case "integer":
    case "number":
      return numberControl(schema);
    case "string":
      return textControl(schema, required);
    default:
      return jsonControl(schema);
  }
}

/**
 * @param {unknown[]} values
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Control}
 */
function choiceControl(values, schema, required) {
  const options = values.map((value, index) => element("option", { value: index }, String(value)));
  const none = required ? "Choose…" : "Not set";
  const input = element("select", {}, element("option", { value: "" }, none), ...options);
  /** @param {unknown} value */
  const write = (value) => {
    const index = values.indexOf(value);
    input.value = index < 0 ? "" : String(index);
  };
  write(schema.default);
  return {
    root: input,
    input,
    write,
    read: () => (input.value === "" ? undefined : values[Number(input.value)]),
  };
}

/**
 * @param {Schema} schema
 * @returns {Control}
 */
function switchControl(schema) {
  const input = element("input", { type: "checkbox", class: "switch" });
  input.checked = schema.default;
  return {
    root: input,
    input,
    write: (value) => {
      input.checked = value ?? schema.default;
    },
    read: () => input.checked,
  };
}

/**
 * @param {Schema} schema
 * @returns {Control}
 */
function numberControl(schema) {
  const step = schema.type === "integer" ? (schema.multipleOf ?? 1) : "any";
  const { minimum: min, maximum: max } = schema;
  const input = element("input", { type: "number", step, min, max, inputmode: "decimal" });
  input.value = String(schema.default ?? "");
  return {
    root: input,
    input,
    write: (value) => {
      input.value = value === undefined || value === null ? "" : JSON.stringify(value);
    },
    read: () => {
      if (input.validity.badInput) {
        throw new Error("must be a number");
      }
      return input.value === "" ? undefined : exactNumber(input.value);
    },
  };
}

/**
 * The number as it was typed; what people may type and JSON does not have, such as `.5`, as JSON.
 * @param {string} text
 */
function exactNumber(text) {
  try {
    return parseExactly(text);
  } catch {
    return Number(text);
  }
}

const ONE_LINE = new Set([
  "date",
  "date-time",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "time",
  "uri",
  "uuid",
]);

/**
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Control}
 */
function textControl(schema, required) {
  const oneLine = ONE_LINE.has(schema.format) || schema.maxLength <= 100;
  const placeholder = schema.examples?.[0] === undefined ? undefined : String(schema.examples[0]);
  const input = oneLine
    ? element("input", { type: "text", placeholder })
    : element("textarea", { rows: 4, placeholder });
  input.value = schema.default ?? "";
  return {
    root: input,
    input,
    write: (value) => {
      input.value = String(value ?? "");
    },
    read: () => (input.value === "" && !required ? undefined : input.value),
  };
}

/**
 * @param {Schema} schema
 * @returns {Control}
 */
function jsonControl(schema) {
  const placeholder = schema.type === "array" ? "[ ]" : schema.type === "object" ? "{ }" : "JSON";
  const input = element("textarea", { rows: 4, class: "code", spellcheck: "false", placeholder });
  /** @param {unknown} value */
  const write = (value) => {
    input.value = value === undefined ? "" : JSON.stringify(value, null, 2);
  };
  write(schema.default);
  return { root: input, input, write, read: () => parseJson(input.value) };
}

/**
 * Reads JSON text; empty text is undefined.
 * @param {string} text
 * @returns {any}
 */
export function parseJson(text) {
  if (text.trim() === "") {
    return undefined;
  }
  try {
    return parseExactly(text);
  } catch (err) {
    throw new Error(`is not JSON: ${err instanceof Error ? err.message : err}`);
  }
}
