// @ts-check
/** The fields of the arguments form. */
import { controlFor } from "./controls.js";
import { element } from "./dom.js";
import { fileControl } from "./files.js";
import { problemOf } from "./plain.js";

/** @typedef {import("./service.js").Argument} Argument */
/** @typedef {import("./service.js").Endpoint} Endpoint */
/**
 * @typedef {object} Field a control with its label, hint and problem
 * @property {HTMLElement} root
 * @property {boolean} isFile
 * @property {() => unknown} read throws an Error with what is wrong
 * @property {(value: unknown) => void} write
 * @property {(problem: string) => void} showProblem an empty text takes it away
 * @property {() => void} focus
 */

/**
 * The field of one argument.
 * @param {Endpoint} endpoint
 * @param {string} name
 * @param {Argument} argument
 * @returns {Field}
 */
export function argumentField(endpoint, name, argument) {
  const { schema, required, file } = argument;
  const id = `argument-${endpoint.name}-${name}`;
  const control = file ? fileControl(file) : controlFor(schema, required);
  const { input } = control;
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
  if (required) {
    input.setAttribute("aria-required", "true");
  }
  const problem = element("p", {
    class: "problem",
    id: `${id}-problem`,
    role: "alert",
    hidden: true,
  });
  const title = element(
    "div",
    { class: "field-title" },
    element("label", { for: id }, name),
    element("span", { class: "kind" }, kindOf(schema, argument)),
    required ? element("span", { class: "required" }, "required") : undefined,
  );
  const hint = element("p", { class: "hint", id: `${id}-hint` }, hintOf(schema));
  const root = element(
    "div",
    { class: "field", "data-argument": name },
    title,
    hint,
    control.root,
    problem,
  );
  return {
    root,
    isFile: file !== undefined,
    read: () => checked(endpoint, argument, control.read()),
    write: control.write,
    showProblem: (text) => {
      problem.textContent = text;
      problem.hidden = !text;
      input.toggleAttribute("aria-invalid", text !== "");
      root.classList.toggle("invalid", text !== "");
    },
    focus: () => input.focus(),
  };
}

/**
 * @param {Endpoint} endpoint
 * @param {Argument} argument
 * @param {unknown} value
 */
function checked(endpoint, { schema, required, file }, value) {
  if (value === undefined) {
    if (required) {
      throw new Error("is required");
    }
    return undefined;
  }
  const problem = file ? undefined : problemOf(endpoint.plain, schema, value);
  if (problem) {
    throw new Error(problem);
  }
  return value;
}

/**
 * @param {import("./service.js").Schema} schema
 * @param {Argument} argument
 */
function kindOf(schema, { file }) {
  if (file) {
    return file.array ? "files" : "file";
  }
  if (schema.enum) {
    return "choice";
  }
  return schema.type === "string" ? "text" : (schema.type ?? "JSON");
}

/** @param {import("./service.js").Schema} schema */
function hintOf({ description, minimum: least, maximum: most }) {
  // What every integer in JSON keeps to is nothing to tell.
  const minimum = least === Number.MIN_SAFE_INTEGER ? undefined : least;
  const maximum = most === Number.MAX_SAFE_INTEGER ? undefined : most;
  const range =
    minimum !== undefined && maximum !== undefined
      ? `${minimum} to ${maximum}.`
      : minimum !== undefined
        ? `At least ${minimum}.`
        : maximum !== undefined
          ? `At most ${maximum}.`
          : "";
  return [description, range].filter(Boolean).join(" ");
}
