// @ts-check
/** The output panel of an endpoint. */
import { element, fill } from "./dom.js";
import { piecesView } from "./pieces.js";
import { taskHash } from "./recent.js";
import { errorView, resultView } from "./result.js";
import { taskPanel } from "./task.js";
import { duration } from "./taskparts.js";

/**
 * Creates the panel that shows a result, an error, or a task.
 * @param {import("./service.js").Endpoint} endpoint
 */
export function outputPanel(endpoint) {
  const time = element("span", { class: "hint", "aria-hidden": "true" });
  const spoken = element("p", { class: "unseen", role: "status" });
  const output = element("div", { class: "output" }, emptyText(endpoint));
  const head = element("div", { class: "card-head" }, element("h2", {}, "Output"), time, spoken);
  const root = element(
    "section",
    { class: "card output-card", "aria-label": "Output" },
    head,
    output,
  );
  /** @type {ReturnType<typeof taskPanel> | undefined} */
  let task;
  let shown = "";
  let startedMs = 0;

  /** A browser opens six connections per server, so a hidden task must not hold one. */
  const leave = () => {
    task?.close();
    task = undefined;
  };
  /** @param {Node} view @param {string} [taskId] */
  const show = (view, taskId = "") => {
    shown = taskId;
    time.textContent = "";
    fill(output, view);
  };

  return {
    root,
    leave,
    /**
     * Shows a task, or the one that was shown before.
     * @param {string} [taskId]
     */
    enter: (taskId = shown) => {
      if (!taskId || (task && taskId === shown)) {
        return;
      }
      leave();
      task = taskPanel(endpoint, taskId, (id) => {
        location.hash = taskHash(endpoint.name, id);
      });
      show(task.root, taskId);
    },
    /** Shows how long a call takes; the answer ends it. @returns {() => void} */
    startClock: () => {
      startedMs = performance.now();
      const tick = setInterval(() => {
        time.textContent = duration(performance.now() - startedMs);
      }, 100);
      return () => clearInterval(tick);
    },
    /** @param {Response} res */
    showResult: async (res) => {
      leave();
      show(await resultView(res));
      time.textContent = `Answered in ${duration(performance.now() - startedMs)}`;
      spoken.textContent = time.textContent;
    },
    /** Shows the pieces of a streamed result as they come. @param {Response} res */
    showPieces: async (res) => {
      leave();
      const view = piecesView(res);
      show(view.root);
      const count = await view.read();
      const took = duration(performance.now() - startedMs);
      time.textContent = `${count} ${count === 1 ? "piece" : "pieces"} in ${took}`;
      spoken.textContent = time.textContent;
    },
    /** @param {unknown} err @param {string[]} violations those that stand beside no field */
    showError: (err, violations) => {
      leave();
      show(errorView(err, violations));
    },
    showStopped: () => {
      leave();
      show(element("p", { class: "empty" }, "Stopped."));
    },
  };
}

/** @param {import("./service.js").Endpoint} endpoint */
function emptyText({ isTask, streams }) {
  const answer = streams ? "The answer appears here as it is made." : "The answer appears here.";
  const text = isTask
    ? "Submit queues a task. Its states, progress and log appear here, then its result."
    : answer;
  return element("p", { class: "empty" }, text);
}
