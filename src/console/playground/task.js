// @ts-check
/** The live panel of a task. */
import { CallError, send, sendForJson, taskPath } from "./api.js";
import { copyButton, element, fill } from "./dom.js";
import { followEvents } from "./events.js";
import { forgetTask, rememberTask, taskHash } from "./recent.js";
import { errorView, resultView } from "./result.js";
import { isFinal, taskActions } from "./taskactions.js";
import { logView, progressView, timelineView } from "./taskparts.js";

/**
 * Creates the panel of a task, which follows the task until it has ended.
 * @param {{name: string, route: string}} endpoint
 * @param {string} taskId
 * @param {(taskId: string) => void} onRetried told the id of the new task
 * @returns {{root: HTMLElement, close: () => void}}
 */
export function taskPanel({ name: endpoint, route }, taskId, onRetried) {
  const closing = new AbortController();
  const { signal } = closing;
  const [timeline, progress, log] = [timelineView(), progressView(), logView()];
  const [facts, notice, result] = [element("div"), element("div"), element("div")];
  const connection = element("p", { class: "hint", role: "status" });
  /** @param {unknown} err */
  const complain = (err) => fill(notice, err && !signal.aborted ? errorView(err) : undefined);
  const actions = taskActions({ route, taskId, onRetried, complain });
  const root = element(
    "div",
    { class: "task" },
    element(
      "div",
      { class: "task-head" },
      taskName(taskId),
      copyButton(() => taskId, "task id"),
    ),
    ...[facts, timeline.root, progress.root, actions.root, notice, connection, result, log.root],
  );
  let createdAt = new Date().toISOString();

  /**
   * @param {any} event the data of an event
   * @returns {boolean} whether it was the last
   */
  const take = ({ state, time, attempt, progress: reached, log: line }) => {
    if (state) {
      timeline.add(state.status, time, attempt);
      actions.show(state.status);
      rememberTask({ endpoint, id: taskId, status: state.status, createdAt });
    } else if (reached) {
      progress.set(reached);
    } else if (line) {
      log.add(time, line);
    }
    return state !== undefined && isFinal(state.status);
  };

  const follow = async () => {
    const task = await sendForJson(taskPath(route, "status", taskId), { signal });
    createdAt = task.created_at ?? createdAt;
    fill(facts, factsLine(endpoint, task));
    await followEvents(taskPath(route, "events", taskId), {
      signal,
      onEvent: ({ data }) => take(JSON.parse(data)),
      onConnection: (connected) => {
        connection.textContent = connected ? "" : "Connection lost, trying again…";
      },
    });
    if (!signal.aborted) {
      progress.end(actions.status());
      await showEnd(result, actions.status(), taskPath(route, "get", taskId));
    }
  };
  follow().catch((err) => {
    complain(err);
    if (err instanceof CallError && err.status === 404) {
      forgetTask(taskId);
    }
  });
  return { root, close: () => closing.abort() };
}

/**
 * @param {HTMLElement} result where it is shown
 * @param {string} status the state that the task ended in
 * @param {string} path of the result
 */
async function showEnd(result, status, path) {
  if (status === "cancelled") {
    fill(result, element("p", { class: "empty" }, "Cancelled: there is no result."));
    return;
  }
  fill(result, element("p", { class: "hint" }, "Fetching the result…"));
  fill(result, await send(path).then(resultView).catch(errorView));
}

/** @param {string} taskId */
function taskName(taskId) {
  const label = element("span", { class: "hint" }, "Task ");
  return element("p", { class: "task-id" }, label, element("code", {}, taskId));
}

/**
 * @param {string} endpoint
 * @param {{expires_at?: string, retry_of?: string | null}} task
 */
function factsLine(endpoint, { expires_at: expiresAt, retry_of: retryOf }) {
  const kept = expiresAt ? `Kept until ${new Date(expiresAt).toLocaleString()}` : "";
  const original = retryOf
    ? element("a", { href: taskHash(endpoint, retryOf) }, "an earlier task")
    : undefined;
  return element(
    "p",
    { class: "hint" },
    kept,
    original && (kept ? ", a retry of " : "A retry of "),
    original,
  );
}
