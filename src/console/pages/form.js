// @ts-check
/** Forms and other shared components of the pages. */
import { element, fill } from "../playground/dom.js";
import { CallError } from "./api.js";

/**
 * @typedef {object} Field
 * @property {string} name of the request's field
 * @property {string} label
 * @property {string} [type]
 * @property {string} [value]
 * @property {string} [hint]
 * @property {string} [autocomplete]
 * @property {boolean} [optional]
 * @property {number} [minLength]
 * @property {number} [maxLength]
 * @property {string} [className]
 */

/**
 * A form with labelled fields, which shows what the server found wrong beside
 * the field it is about.
 * @param {object} options
 * @param {Field[]} options.fields
 * @param {string} options.submit what the button says
 * @param {(values: Record<string, string | boolean>) => Promise<unknown>} options.send
 */
export function form({ fields, submit, send }) {
  const parts = fields.map(fieldOf);
  const problem = element("p", { class: "notice failed", role: "alert", hidden: true });
  const button = element("button", { class: "primary" }, submit);
  const made = element(
    "form",
    {},
    element("div", { class: "fields" }, ...parts.map(({ root }) => root)),
    problem,
    button,
  );
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    for (const part of parts) {
      part.complain("");
    }
    button.disabled = true;
    try {
      await send(Object.fromEntries(parts.map(({ name, input }) => [name, answerOf(input)])));
    } catch (err) {
      show(err, parts, problem);
    } finally {
      button.disabled = false;
    }
  });
  return made;
}

/** @param {HTMLInputElement} input */
function answerOf({ type, checked, value }) {
  return type === "checkbox" ? checked : value;
}

/** @param {Field} field */
function fieldOf({ name, label, hint = "", optional = false, className, ...rest }) {
  const id = `field-${name}`;
  const { type = "text", value, autocomplete, minLength, maxLength } = rest;
  const input = element("input", {
    id,
    name,
    type,
    value,
    autocomplete,
    class: className,
    minlength: minLength,
    maxlength: maxLength,
    required: !optional && type !== "checkbox",
    spellcheck: "false",
    autocapitalize: "none",
    "aria-describedby": `${id}-hint ${id}-problem`,
  });
  const problem = element("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const root = element(
    "div",
    { class: "field" },
    element(
      "div",
      { class: "field-title" },
      element("label", { for: id }, label),
      optional && element("span", { class: "kind" }, "optional"),
    ),
    input,
    element("p", { class: "hint", id: `${id}-hint` }, hint),
    problem,
  );
  /** @param {string} text */
  const complain = (text) => {
    problem.hidden = text === "";
    problem.textContent = text;
    input.ariaInvalid = text === "" ? null : "true";
  };
  return { name, input, root, complain };
}

/**
 * @param {unknown} err
 * @param {ReturnType<typeof fieldOf>[]} parts
 * @param {HTMLElement} problem
 */
function show(err, parts, problem) {
  const violations = err instanceof CallError ? err.violations : [];
  const beside = violations.flatMap(({ field, description }) => {
    const part = parts.find(({ name }) => name === field);
    part?.complain(sentence(description));
    return part ? [part] : [];
  });
  beside[0]?.input.focus();
  if (beside.length === 0) {
    problem.hidden = false;
    fill(problem, messageOf(err));
  }
}

/** @param {unknown} err */
export function messageOf(err) {
  return sentence(err instanceof Error ? err.message : String(err));
}

/** @param {string} text the API's messages begin in lower case */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/**
 * Selects one of the person's organizations: shown as a fact if they have one,
 * as a choice if they have several.
 * @param {import("./api.js").Organization[]} organizations
 * @returns {{facts: Record<string, string>, choice: Node | undefined, chosen: () => string}}
 */
export function organizationChoice(organizations) {
  const [only] = organizations;
  if (organizations.length === 1 && only) {
    const facts = { Organization: only.display_name || only.name };
    return { facts, choice: undefined, chosen: () => only.name };
  }
  const select = element(
    "select",
    { id: "organization" },
    ...organizations.map(({ name, display_name }) =>
      element("option", { value: name }, display_name ? `${display_name} (${name})` : name),
    ),
  );
  const choice = element(
    "div",
    { class: "field" },
    element("label", { for: "organization" }, "Organization"),
    select,
  );
  return { facts: {}, choice, chosen: () => select.value };
}

/**
 * Names with their values.
 * @param {Record<string, string>} entries
 */
export function facts(entries) {
  return element(
    "dl",
    { class: "facts" },
    ...Object.entries(entries).flatMap(([name, value]) => [
      element("dt", {}, name),
      element("dd", {}, value),
    ]),
  );
}

/**
 * Two buttons side by side, with a place for errors.
 * @param {{allow: () => Promise<unknown>, deny: () => Promise<unknown>}} answers
 */
export function allowOrDeny({ allow, deny }) {
  const problem = element("p", { class: "notice failed", role: "alert", hidden: true });
  /** @param {() => Promise<unknown>} answer */
  const answering = (answer) => async () => {
    problem.hidden = true;
    for (const button of buttons) {
      button.disabled = true;
    }
    try {
      await answer();
    } catch (err) {
      problem.hidden = false;
      problem.textContent = messageOf(err);
      for (const button of buttons) {
        button.disabled = false;
      }
    }
  };
  const buttons = [
    element("button", { type: "button", onclick: answering(deny) }, "Deny"),
    element("button", { type: "button", class: "primary", onclick: answering(allow) }, "Allow"),
  ];
  return [problem, element("div", { class: "actions even" }, ...buttons)];
}
