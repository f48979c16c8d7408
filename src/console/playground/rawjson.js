// @ts-check
/** The JSON editor for arguments. */
import { parseJson } from "./controls.js";
import { element } from "./dom.js";

/**
 * All arguments but files as one JSON text.
 * @param {string} endpoint
 */
export function rawEditor(endpoint) {
  const id = `raw-${endpoint}`;
  const input = element("textarea", {
    id,
    class: "code",
    rows: 10,
    spellcheck: "false",
    "aria-describedby": `${id}-problem`,
  });
  const problem = element("p", {
    class: "problem",
    id: `${id}-problem`,
    role: "alert",
    hidden: true,
  });
  const label = element("label", { for: id }, "Arguments as JSON");
  return {
    root: element("div", { class: "field", hidden: true }, label, input, problem),
    read: () => {
      const value = parseJson(input.value) ?? {};
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new Error("must be a JSON object of arguments");
      }
      return value;
    },
    /** @param {Record<string, unknown>} values */
    write: (values) => {
      input.value = JSON.stringify(values, null, 2);
    },
    /** @param {string} text */
    showProblem: (text) => {
      problem.textContent = text;
      problem.hidden = !text;
      input.toggleAttribute("aria-invalid", text !== "");
    },
    focus: () => input.focus(),
  };
}

/**
 * The choice between fields and JSON.
 * @param {(raw: boolean) => boolean} show false: what stands there cannot be read yet
 * @param {() => void} useExample
 */
export function modeBar(show, useExample) {
  const modes = ["Form", "JSON"].map((name) => {
    const button = element(
      "button",
      { type: "button", "aria-pressed": String(name === "Form") },
      name,
    );
    button.addEventListener("click", () => {
      if (show(name === "JSON")) {
        for (const mode of modes) {
          mode.setAttribute("aria-pressed", String(mode === button));
        }
      }
    });
    return button;
  });
  return element(
    "div",
    { class: "mode-bar" },
    element(
      "div",
      { class: "segments", role: "group", "aria-label": "How to enter the arguments" },
      ...modes,
    ),
    element("button", { type: "button", class: "quiet", onclick: useExample }, "Use example"),
  );
}
