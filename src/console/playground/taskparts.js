// @ts-check
/** The parts of a task's panel: states, progress, log. */
import { element, fill } from "./dom.js";

const MAX_LINES = 1000;

/** The timeline of a task's states, with the duration of each. */
export function timelineView() {
  /** @type {{status: string, time: string, attempt: number}[]} */
  const states = [];
  const list = element("ol", { class: "timeline" });
  const spoken = element("p", { class: "unseen", role: "status" });
  const show = () =>
    fill(list, ...states.map((state, index) => stateItem(state, states[index + 1])));
  return {
    root: element("div", {}, list, spoken),
    /**
     * @param {string} status
     * @param {string} time
     * @param {number} attempt
     */
    add: (status, time, attempt) => {
      states.push({ status, time, attempt });
      spoken.textContent = `The task is in state ${status}.`;
      show();
    },
  };
}

/**
 * @param {{status: string, time: string, attempt: number}} state
 * @param {{time: string} | undefined} next
 */
function stateItem({ status, time, attempt }, next) {
  const stayedMs = next ? Date.parse(next.time) - Date.parse(time) : undefined;
  const again = status === "running" && attempt > 1 ? ` (attempt ${attempt})` : "";
  return element(
    "li",
    { class: next ? "" : "now" },
    element("span", { class: `dot ${status}`, "aria-hidden": "true" }),
    element("span", { class: "state" }, status + again),
    element(
      "time",
      { datetime: time, class: "hint" },
      stayedMs === undefined ? new Date(time).toLocaleTimeString() : duration(stayedMs),
    ),
  );
}

/** The progress that the function reports. */
export function progressView() {
  const bar = element("progress", { max: 1, value: 0, "aria-label": "Progress" });
  const percent = element("span", { class: "percent" });
  const message = element("span");
  const root = element(
    "div",
    { class: "progress", hidden: true },
    bar,
    element("p", { class: "progress-text" }, message, percent),
  );
  return {
    root,
    /** @param {{fraction?: number, message?: string}} progress */
    set: (progress) => {
      const fraction = progress.fraction ?? 0;
      root.hidden = false;
      bar.value = fraction;
      percent.textContent = `${Math.round(fraction * 100)} %`;
      message.textContent = progress.message ?? "";
    },
    /** @param {string} status the state the task ended in */
    end: (status) => {
      root.hidden = root.hidden || status === "success";
    },
  };
}

/** The log lines of the function. */
export function logView() {
  const lines = element("ol", {});
  // What scrolls and is read out; a list in this role would be none.
  const box = element(
    "div",
    { class: "log", tabindex: "0", role: "log", "aria-label": "Log" },
    lines,
  );
  const root = element("section", { hidden: true }, element("h3", {}, "Log"), box);
  return {
    root,
    /**
     * @param {string} time
     * @param {{level: string, message: string, fields?: Record<string, unknown>}} line
     */
    add: (time, { level, message, fields }) => {
      const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
      const more = fields && Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
      lines.append(
        element(
          "li",
          { class: `level-${level}` },
          element("time", { datetime: time }, time.slice(11, 23)),
          element("span", { class: "level" }, level),
          element("span", {}, message, element("span", { class: "log-fields" }, more)),
        ),
      );
      root.hidden = false;
      if (lines.childElementCount > MAX_LINES) {
        lines.firstElementChild?.remove();
      }
      if (atEnd) {
        box.scrollTop = box.scrollHeight;
      }
    },
  };
}

/**
 * A duration for people.
 * @param {number} durationMs
 */
export function duration(durationMs) {
  if (durationMs < 1000) {
    return `${Math.max(0, Math.round(durationMs))} ms`;
  }
  const seconds = durationMs / 1000;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
}
