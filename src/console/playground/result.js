// @ts-check
/** Views of results and errors. */
import { CallError } from "./api.js";
import { copyButton, element } from "./dom.js";
import { parseExactly } from "./exactjson.js";
import { sizeOf } from "./files.js";

/** Texts beyond this are offered as a file: a page with more becomes slow. */
const MAX_SHOWN = 500_000;

/**
 * Shows what a function returned, by its content type.
 * @param {Response} res
 * @returns {Promise<HTMLElement>}
 */
export async function resultView(res) {
  const contentType = res.headers.get("content-type") ?? "application/octet-stream";
  const media = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  const blob = await res.blob();
  const name = fileName(res, media);
  if (isText(media) && blob.size <= MAX_SHOWN) {
    return textView(await blob.text(), { media, size: blob.size });
  }
  // Under a type that shows nothing: a page of ours must not run what a service wrote.
  const src = keepUrl(new Blob([blob], { type: isHarmless(media) ? media : UNSHOWN }));
  const link = element("a", { href: src, download: name, class: "button" }, `Download ${name}`);
  const facts = element("span", { class: "hint" }, `${media} · ${sizeOf(blob.size)}`);
  const view = mediaView(media, media.startsWith(SVG) ? await dataUrl(blob) : src);
  return element(
    "div",
    { class: "result" },
    view,
    element("div", { class: "result-foot" }, link, facts),
  );
}

const UNSHOWN = "application/octet-stream";

/** Pictures that may hold scripts, which run where such a picture is opened by itself. */
const SVG = "image/svg";

/** @param {string} media */
function isHarmless(media) {
  return /^(?:image|audio|video)\//.test(media) && !media.startsWith(SVG);
}

/**
 * Browsers open no page from such a URL.
 * @param {Blob} blob
 * @returns {Promise<string>}
 */
async function dataUrl(blob) {
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([blob], { type: "image/svg+xml" }));
  await new Promise((resolve) => reader.addEventListener("loadend", resolve));
  return String(reader.result);
}

/** Object URLs of results; the oldest are revoked, because a long session would fill the memory. */
const MAX_KEPT = 12;
/** @type {string[]} */
const kept = [];

/** @param {Blob} blob */
function keepUrl(blob) {
  const url = URL.createObjectURL(blob);
  kept.push(url);
  if (kept.length > MAX_KEPT) {
    URL.revokeObjectURL(kept.shift() ?? "");
  }
  return url;
}

/**
 * Shows an error.
 * @param {unknown} err
 * @param {string[]} [violations] those that stand beside no field
 */
export function errorView(err, violations = []) {
  const { message, status, code, reason, retryAfter } =
    err instanceof CallError
      ? err
      : new CallError(err instanceof Error ? err.message : String(err), {});
  const facts = [status ? `HTTP ${status}` : "", code, reason].filter(Boolean);
  return element(
    "div",
    { class: "error-box", role: "alert" },
    element("p", { class: "error-facts" }, ...facts.map((fact) => element("code", {}, fact))),
    element("p", {}, message),
    violations.length > 0
      ? element("ul", {}, ...violations.map((violation) => element("li", {}, violation)))
      : undefined,
    retryAfter ? element("p", { class: "hint" }, `Try again in ${retryAfter} s.`) : undefined,
  );
}

/**
 * @param {string} text
 * @param {{media: string, size: number}} facts
 */
function textView(text, { media, size }) {
  const isJson = media.endsWith("json");
  const shown = isJson ? prettyJson(text) : text;
  const body = element("pre", { class: isJson ? "json" : "text", tabindex: "0" });
  body.append(...(isJson ? coloured(shown) : [shown]));
  const head = element(
    "div",
    { class: "result-foot" },
    copyButton(() => shown, "result"),
    element("span", { class: "hint" }, `${media} · ${sizeOf(size)}`),
  );
  return element("div", { class: "result" }, body, head);
}

/**
 * @param {string} media
 * @param {string} src
 */
function mediaView(media, src) {
  switch (media.split("/")[0]) {
    case "image":
      return element("img", { src, alt: "The image that the function returned" });
    case "audio":
      return element("audio", { src, controls: true });
    case "video":
      return element("video", { src, controls: true });
    default:
      return undefined;
  }
}

/** @param {string} media */
function isText(media) {
  return media.startsWith("text/") || /^application\/([^/]+\+)?json$/.test(media);
}

/** @param {string} text */
function prettyJson(text) {
  try {
    return JSON.stringify(parseExactly(text), null, 2);
  } catch {
    return text; // Not JSON after all: shown as it came.
  }
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;

/**
 * Highlights JSON: splits it into nodes by token type.
 * @param {string} json
 * @returns {(Node | string)[]}
 */
function coloured(json) {
  if (json.length > 50_000) {
    return [json];
  }
  /** @type {(Node | string)[]} */
  const parts = [];
  let end = 0;
  for (const match of json.matchAll(TOKEN)) {
    const [whole, string, colon] = match;
    const kind = colon ? "key" : string ? "string" : "literal";
    parts.push(json.slice(end, match.index), element("span", { class: `json-${kind}` }, whole));
    end = match.index + whole.length;
  }
  return [...parts, json.slice(end)];
}

/**
 * @param {Response} res
 * @param {string} media
 */
function fileName(res, media) {
  const disposition = res.headers.get("content-disposition") ?? "";
  const extended = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  const plain = /filename="?([^";]+)"?/i.exec(disposition)?.[1];
  const extension = (media.split("/")[1] ?? "bin").split("+")[0];
  try {
    return extended ? decodeURIComponent(extended) : (plain ?? `result.${extension}`);
  } catch {
    return plain ?? `result.${extension}`; // A name in broken percent-encoding.
  }
}
