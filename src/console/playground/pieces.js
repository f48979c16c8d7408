// @ts-check
/** The view of a streamed result: its pieces as they come. */
import { CallError } from "./api.js";
import { copyButton, element } from "./dom.js";
import { readEvents } from "./events.js";
import { errorView } from "./result.js";

/** Texts beyond this are no longer shown: a page with more becomes slow. */
const MAX_SHOWN = 500_000;

/**
 * Creates the view. `read` resolves with the number of pieces when the stream has ended.
 * @param {Response} res Server-Sent Events
 * @returns {{root: HTMLElement, read: () => Promise<number>}}
 */
export function piecesView(res) {
  const isText = res.headers.get("tessera-pieces") === "text";
  const body = element("pre", { class: "text", tabindex: "0" });
  const facts = element("span", { class: "hint" });
  let whole = "";
  const foot = element(
    "div",
    { class: "result-foot" },
    copyButton(() => whole, "result"),
    facts,
  );
  const root = element("div", { class: "result" }, body, foot);

  /** @param {string} data */
  const append = (data) => {
    const text = isText ? JSON.parse(data) : `${data}\n`;
    whole += text;
    if (whole.length <= MAX_SHOWN) {
      body.append(text);
    } else {
      facts.textContent = "There is more: copy the result to see it whole.";
    }
  };

  const read = async () => {
    let count = 0;
    for await (const { event, data } of readEvents(res)) {
      if (event === "end") {
        return count;
      }
      if (event === "error") {
        root.append(errorView(errorOf(data)));
        return count;
      }
      append(data);
      count += 1;
    }
    root.append(errorView(new CallError("The connection broke before the end.", {})));
    return count;
  };
  return { root, read };
}

/** @param {string} data */
function errorOf(data) {
  const { code, message, details = [] } = JSON.parse(data);
  const info = details.find((/** @type {any} */ one) => one.type === "google.rpc.ErrorInfo");
  return new CallError(message, { code, reason: info?.debug?.reason });
}
