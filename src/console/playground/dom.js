// @ts-check
/** DOM helpers. */

/** @typedef {string | boolean | number | undefined | ((event: any) => unknown)} Attribute */
/** @typedef {Node | string | undefined | null | false} Child */

/**
 * Makes an element. Functions become event listeners (`onclick`), `true` an
 * empty attribute; `false` and undefined are left out. Text is never read as HTML.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, Attribute>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(name.slice(2), value);
    } else if (value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...present(children));
  return made;
}

/**
 * Replaces what is in an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren(...present(children));
}

/**
 * The element of the page with this id.
 * @param {string} id
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no element '${id}'`);
  }
  return found;
}

/**
 * A button that puts a text on the clipboard and says so.
 * @param {() => string} text
 * @param {string} what said to screen readers, such as "task id"
 */
export function copyButton(text, what) {
  const label = `Copy ${what}`;
  const button = element(
    "button",
    { type: "button", class: "quiet copy", "aria-label": label },
    "Copy",
  );
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C"; // Without a secure context there is no clipboard.
      selectNear(button);
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  return button;
}

/** @param {HTMLElement} button */
function selectNear(button) {
  const text = button.parentElement?.parentElement?.querySelector("pre, code");
  if (text) {
    getSelection()?.selectAllChildren(text);
  }
}

/** @param {Child[]} children */
function present(children) {
  return children.filter((child) => child instanceof Node || typeof child === "string");
}
