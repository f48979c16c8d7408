// @ts-check
/** The control for files. */
import { element, fill } from "./dom.js";

/**
 * A place to choose files or drop them on, with previews of images.
 * @param {{array: boolean, accept: string}} file
 * @returns {import("./controls.js").Control}
 */
export function fileControl({ array, accept }) {
  /** @type {File[]} */
  let files = [];
  const list = element("ul", { class: "files" });
  const input = element("input", { type: "file", class: "file-input", multiple: array, accept });
  const zone = element(
    "div",
    { class: "drop" },
    input,
    element(
      "p",
      { class: "drop-text", "aria-hidden": "true" },
      element("strong", {}, array ? "Choose files" : "Choose a file"),
      ` or drop ${array ? "them" : "it"} here`,
      accept === "*/*" ? "" : element("span", { class: "accept" }, accept),
    ),
  );
  const root = element("div", {}, zone, list);

  /** @param {File[]} chosen */
  const choose = (chosen) => {
    files = chosen;
    fill(
      list,
      ...files.map((file) => fileItem(file, () => choose(files.filter((one) => one !== file)))),
    );
    root.dispatchEvent(new Event("input", { bubbles: true }));
  };
  /** @param {FileList | undefined | null} added */
  const add = (added) => {
    if (added?.length) {
      choose(array ? [...files, ...added] : [...added].slice(0, 1));
    }
  };
  input.addEventListener("change", () => {
    add(input.files);
    input.value = "";
  });
  dropsOn(zone, add);

  return {
    root,
    input,
    read: () => (files.length === 0 ? undefined : files),
    write: () => choose([]),
  };
}

/**
 * @param {HTMLElement} zone
 * @param {(files: FileList | undefined) => void} add
 */
function dropsOn(zone, add) {
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    add(event.dataTransfer?.files);
  });
}

/**
 * @param {File} file
 * @param {() => void} remove
 */
function fileItem(file, remove) {
  const button = element(
    "button",
    { type: "button", class: "quiet", "aria-label": `Remove ${file.name}`, onclick: remove },
    "Remove",
  );
  return element(
    "li",
    {},
    file.type.startsWith("image/") ? preview(file) : undefined,
    element("span", { class: "file-name" }, file.name),
    element("span", { class: "hint" }, sizeOf(file.size)),
    button,
  );
}

/** @param {File} file */
function preview(file) {
  const src = URL.createObjectURL(file);
  const forget = () => URL.revokeObjectURL(src);
  return element("img", { src, alt: "", onload: forget, onerror: forget });
}

/**
 * A size for people.
 * @param {number} bytes
 */
export function sizeOf(bytes) {
  if (bytes < 1000) {
    return `${bytes} bytes`;
  }
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
