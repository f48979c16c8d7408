/**
 * What has to be true of a task when everything is over, whatever went wrong
 * meanwhile. It compares three witnesses: what its caller was told, what the
 * queue says of it now, and what its function reported.
 */
import type { Run } from "./ledger.ts";

export interface HistoryEvent {
  readonly sequence: number;
  readonly attempt: number;
  /** Of a state change; undefined for progress and log lines. */
  readonly status: string | undefined;
}

export interface TaskHistory {
  readonly taskId: string;
  /** What it was submitted with. */
  readonly number: number;
  /** Its state now; undefined: there is no such task. */
  readonly status: string | undefined;
  readonly attempt: number;
  readonly events: readonly HistoryEvent[];
  /** Of a task that succeeded. */
  readonly result: unknown;
  readonly runs: readonly Run[];
  /** The caller was told that it is cancelled. */
  readonly cancelled: boolean;
}

export type ViolationKind = "lost" | "ended twice" | "wrong";

export interface Violation {
  readonly kind: ViolationKind;
  readonly taskId: string;
  readonly message: string;
}

const FINAL = ["success", "failure", "cancelled"];

/** What follows what. */
const NEXT: Readonly<Record<string, readonly string[]>> = {
  queued: ["running", "failure", "cancelled"],
  running: ["queued", ...FINAL],
};

/** Everything that is not as promised. */
export function violations(task: TaskHistory): Violation[] {
  const found: Violation[] = [];
  const say = (kind: ViolationKind, message: string): void => {
    found.push({ kind, taskId: task.taskId, message });
  };
  if (task.status === undefined) {
    say("lost", "it was acknowledged and is not there");
    return found;
  }
  if (!FINAL.includes(task.status)) {
    say("lost", `it never ended: it is ${task.status}, attempt ${task.attempt}`);
    return found;
  }
  if (task.cancelled && task.status !== "cancelled") {
    say("ended twice", `its caller was told that it is cancelled, and it is ${task.status}`);
  }
  checkEvents(task, say);
  checkRuns(task, say);
  checkResult(task, say);
  return found;
}

type Say = (kind: ViolationKind, message: string) => void;

function checkEvents({ events, status, attempt }: TaskHistory, say: Say): void {
  const text = events.map((each) => `${each.sequence} ${each.status ?? "-"}`).join(", ");
  for (const [index, { sequence }] of events.entries()) {
    if (sequence <= (events[index - 1]?.sequence ?? 0)) {
      say("wrong", `its event log is not in order: ${text}`);
    }
  }
  const states = events.filter((event) => event.status !== undefined);
  const finals = states.filter((event) => FINAL.includes(event.status ?? ""));
  if (finals.length !== 1) {
    say(finals.length > 1 ? "ended twice" : "wrong", `its log has ${finals.length} ends: ${text}`);
  }
  if (states[0]?.status !== "queued" || events.at(-1)?.status !== status) {
    say("wrong", `its log does not lead from queued to ${status}: ${text}`);
  }
  for (const [index, state] of states.entries()) {
    const before = states[index - 1];
    if (before && !NEXT[before.status ?? ""]?.includes(state.status ?? "")) {
      say("wrong", `its log goes from ${before.status} to ${state.status}: ${text}`);
    }
  }
  const started = states.filter((event) => event.status === "running");
  if (started.some((event, index) => event.attempt !== index + 1) || started.length !== attempt) {
    say("wrong", `its log does not have each of its ${attempt} attempts once: ${text}`);
  }
}

function checkRuns({ runs, attempt, status }: TaskHistory, say: Say): void {
  const seen = new Set<number>();
  for (const run of runs) {
    if (seen.has(run.attempt)) {
      say("ended twice", `attempt ${run.attempt} ran twice`);
    }
    seen.add(run.attempt);
    if (run.attempt > attempt) {
      say("ended twice", `attempt ${run.attempt} ran, and it is ${status} in attempt ${attempt}`);
    }
  }
}

function checkResult({ result, status, ...task }: TaskHistory, say: Say): void {
  if (status !== "success") {
    return;
  }
  const { taskId, attempt, number } = task;
  const expected = JSON.stringify({ number, taskId, attempt });
  if (JSON.stringify(result) !== expected) {
    say("wrong", `its result is ${JSON.stringify(result)}, not ${expected}`);
  }
  const run = task.runs.find((each) => each.attempt === attempt);
  if (run?.endedAtMs === undefined) {
    say("wrong", `it has a result of attempt ${attempt}, which did not run to its end`);
  }
}
