// @ts-check
/** The view of one endpoint. */

import { CallError, pathBelow, send } from "./api.js";
import { element } from "./dom.js";
import { argumentsType } from "./exactjson.js";
import { argumentsForm } from "./form.js";
import { outputPanel } from "./output.js";
import { taskHash } from "./recent.js";
import { snippetsPanel } from "./snippets.js";

/** @typedef {import("./service.js").Endpoint} Endpoint */

/**
 * Creates the view of one endpoint: its form and its output.
 * @param {Endpoint} endpoint
 * @returns {{root: HTMLElement, enter: (taskId?: string) => void, leave: () => void}}
 */
export function endpointView(endpoint) {
  const form = argumentsForm(endpoint);
  const snippets = snippetsPanel(endpoint, form.peek);
  const output = outputPanel(endpoint);
  const card = callCard(endpoint, form, output);
  card.addEventListener("input", () => snippets.update());
  card.addEventListener("click", () => snippets.update());
  const input = element("div", { class: "column" }, card, snippets.root);
  const columns = element("div", { class: "columns" }, input, output.root);
  const root = element("article", { class: "endpoint" }, heading(endpoint), columns);
  return { root, enter: output.enter, leave: output.leave };
}

/**
 * @param {Endpoint} endpoint
 * @param {import("./form.js").ArgumentsForm} form
 * @param {ReturnType<typeof outputPanel>} output
 */
function callCard(endpoint, form, output) {
  const label = endpoint.isTask ? "Submit" : "Call";
  const button = element("button", { type: "submit", class: "primary" }, label);
  const stop = element("button", { type: "button", hidden: true }, "Stop");
  const actions = element("div", { class: "actions" }, button, stop, shortcutHint());
  const card = element("form", { class: "card", novalidate: true }, form.root, actions);

  const run = async () => {
    const args = button.disabled ? undefined : form.read();
    if (!args) {
      return;
    }
    const calling = new AbortController();
    stop.onclick = () => calling.abort();
    stop.hidden = endpoint.isTask;
    button.disabled = true;
    const stopClock = output.startClock();
    try {
      const res = await post(endpoint, args, calling.signal);
      if (endpoint.isTask) {
        location.hash = taskHash(endpoint.name, (await res.json()).task_id);
      } else if (isEventStream(res)) {
        await output.showPieces(res);
      } else {
        await output.showResult(res);
      }
    } catch (err) {
      if (calling.signal.aborted) {
        output.showStopped();
      } else {
        const violations = err instanceof CallError ? form.showViolations(err.violations) : [];
        output.showError(err, violations);
      }
    } finally {
      stopClock();
      button.disabled = false;
      stop.hidden = true;
    }
    reveal(card.querySelector("[aria-invalid]") ?? output.root);
  };
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  card.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  return card;
}

/**
 * @param {Endpoint} endpoint
 * @param {import("./form.js").Arguments} args
 * @param {AbortSignal} signal
 */
function post(endpoint, { values, files }, signal) {
  const path = pathBelow(endpoint.route, endpoint.isTask ? "submit" : undefined);
  // The bytes of a file are no events: they are shown as what they make.
  const showsPieces =
    endpoint.streams && /^(text\/|application\/x-ndjson)/.test(endpoint.resultType);
  /** @type {Record<string, string>} */
  const accept = showsPieces ? { accept: "text/event-stream, */*;q=0.1" } : {};
  if (Object.keys(files).length === 0) {
    const headers = { ...accept, "content-type": argumentsType(values) };
    return send(path, { method: "POST", headers, body: JSON.stringify(values), signal });
  }
  const body = new FormData();
  for (const [name, list] of Object.entries(files)) {
    for (const file of list) {
      body.append(name, file, file.name);
    }
  }
  for (const [name, value] of Object.entries(values)) {
    body.append(name, JSON.stringify(value));
  }
  return send(path, { method: "POST", headers: accept, body, signal });
}

/** @param {Response} res */
function isEventStream(res) {
  return (res.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

/** @param {Endpoint} endpoint */
function heading({ name, route, isTask, description }) {
  const path = decodeURI(pathBelow(route, isTask ? "submit" : undefined));
  const method = element("code", { class: "path" }, `POST ${path}`);
  return element(
    "header",
    { class: "heading" },
    element("div", { class: "heading-line" }, element("h1", {}, name), kindBadge(isTask), method),
    description ? element("p", { class: "description" }, description) : undefined,
  );
}

/**
 * A badge with the endpoint's kind.
 * @param {boolean} isTask
 */
export function kindBadge(isTask) {
  const kind = isTask ? "task" : "api";
  return element("span", { class: `badge ${kind}` }, kind);
}

/**
 * Scrolls to an element whose start is not visible, as on a phone.
 * @param {Element} target
 */
function reveal(target) {
  const { top } = target.getBoundingClientRect();
  if (top < 0 || top > innerHeight * 0.8) {
    target.scrollIntoView({ block: "start" });
  }
}

function shortcutHint() {
  const key = navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl";
  return element(
    "span",
    { class: "hint shortcut" },
    element("kbd", {}, key),
    " ",
    element("kbd", {}, "Enter"),
  );
}
