// @ts-check
/** The buttons of a task: cancel, abort, retry. */
import { send, sendForJson, taskPath } from "./api.js";
import { element, fill } from "./dom.js";

const FINAL = new Set(["success", "failure", "cancelled"]);

/**
 * Whether a state is final.
 * @param {string} status
 */
export function isFinal(status) {
  return FINAL.has(status);
}

/**
 * Creates the buttons for the task's current state.
 * @param {object} options
 * @param {string} options.route of the endpoint
 * @param {string} options.taskId
 * @param {(taskId: string) => void} options.onRetried told the id of the new task
 * @param {(err: unknown) => void} options.complain undefined takes a complaint away
 */
export function taskActions({ route, taskId, onRetried, complain }) {
  const root = element("div", { class: "actions" });
  let status = "";

  const cancel = async () => {
    const more = status === "running" ? { abort: "true" } : undefined;
    await send(taskPath(route, "cancel", taskId, more), { method: "POST" });
  };
  const retry = async () => {
    // A browser may repeat the request by itself when a connection breaks.
    const headers = { "idempotency-key": String(crypto.getRandomValues(new BigUint64Array(2))) };
    const task = await sendForJson(taskPath(route, "retry", taskId), { method: "PUT", headers });
    onRetried(task.task_id);
  };
  /**
   * @param {string} label
   * @param {string} name of the class
   * @param {() => Promise<void>} work
   */
  const action = (label, name, work) => {
    const button = element("button", { type: "button", class: name }, label);
    button.addEventListener("click", async () => {
      complain(undefined);
      button.disabled = true;
      await work().catch(complain);
      button.disabled = false;
    });
    return button;
  };
  return {
    root,
    status: () => status,
    /** @param {string} next the state that the task is in now */
    show: (next) => {
      status = next;
      if (isFinal(status)) {
        fill(root, action("Retry", "", retry));
      } else {
        fill(root, action(status === "running" ? "Abort" : "Cancel", "danger", cancel));
      }
    },
  };
}
