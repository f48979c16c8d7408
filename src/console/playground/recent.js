// @ts-check
/** The list of recent tasks, kept in session storage. */
import { byId, element, fill } from "./dom.js";
import { deployment } from "./target.js";

/** @typedef {{endpoint: string, id: string, status: string, createdAt: string}} RecentTask */

const KEY = ["tessera.recent", deployment].filter(Boolean).join(".");
const MAX_TASKS = 20;

/** The tasks of this browser session, newest first. @returns {RecentTask[]} */
function recentTasks() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
  } catch {
    return []; // Written by something else: begin anew.
  }
}

/**
 * Adds a task, or updates its state.
 * @param {RecentTask} task
 */
export function rememberTask(task) {
  const tasks = recentTasks();
  const index = tasks.findIndex(({ id }) => id === task.id);
  if (index < 0) {
    tasks.unshift(task);
  } else {
    tasks[index] = task;
  }
  sessionStorage.setItem(KEY, JSON.stringify(tasks.slice(0, MAX_TASKS)));
  showRecent();
}

/**
 * Removes a task that no longer exists.
 * @param {string} taskId
 */
export function forgetTask(taskId) {
  sessionStorage.setItem(KEY, JSON.stringify(recentTasks().filter(({ id }) => id !== taskId)));
  showRecent();
}

/** Shows the list and marks the task in the address. */
export function showRecent() {
  const tasks = recentTasks();
  const list = byId("recent");
  const focused = list.contains(document.activeElement) ? document.activeElement : undefined;
  byId("recent-section").hidden = tasks.length === 0;
  fill(list, ...tasks.map(recentItem));
  const href = focused?.getAttribute("href");
  if (href) {
    /** @type {HTMLElement | null} */ (list.querySelector(`[href="${CSS.escape(href)}"]`))?.focus();
  }
}

/** @param {RecentTask} task */
function recentItem({ endpoint, id, status, createdAt }) {
  const href = taskHash(endpoint, id);
  const link = element(
    "a",
    { href, "aria-current": location.hash === href && "page" },
    element("span", { class: `dot ${status}`, "aria-hidden": "true" }),
    element("span", { class: "recent-name" }, endpoint),
    element("span", { class: "hint" }, `${status}, ${new Date(createdAt).toLocaleTimeString()}`),
  );
  return element("li", {}, link);
}

/**
 * The address of a task in this page.
 * @param {string} endpoint
 * @param {string} taskId
 */
export function taskHash(endpoint, taskId) {
  return `#/${encodeURIComponent(endpoint)}/${encodeURIComponent(taskId)}`;
}
