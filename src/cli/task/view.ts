/** Formats tasks and their events for people and for programs. */
import type { AttemptState, TaskFault, TaskLogEvent, TaskState } from "../../client/deployment.ts";
import { fields } from "../output.ts";
import { plain } from "../plain.ts";

/** A state as JSON, with the names of the HTTP interface. */
export function stateJson(state: TaskState): object {
  return {
    task_id: state.id,
    status: state.value,
    created_at: state.createdAt,
    started_at: state.startedAt ?? null,
    finished_at: state.finishedAt ?? null,
    expires_at: state.expiresAt ?? null,
    attempt: state.attempt,
    attempts: state.attempts.map((each) => ({
      number: each.number,
      worker: each.worker,
      node: each.node,
      started_at: each.startedAt,
      ended_at: each.endedAt ?? null,
      failure: each.failure ?? null,
      retry_at: each.retryAt ?? null,
      peak_memory_bytes: each.peakMemoryBytes ?? null,
    })),
    priority: state.priority,
    run_at: state.runAt ?? null,
    start_by: state.startBy ?? null,
    progress: state.progress ?? null,
    retry_of: state.retryOf ?? null,
    ...(state.key !== undefined && { key: state.key }),
    tags: state.tags,
    failure: state.failure ?? null,
    ...(state.queuePosition !== undefined && { queue_position: state.queuePosition }),
    ...(state.estimatedStart !== undefined && { estimated_start: state.estimatedStart }),
    ...(state.waitsFor !== undefined && { waits_for: state.waitsFor }),
    ...(state.queuedReason !== undefined && { queued_reason: state.queuedReason }),
  };
}

/** A state as lines of names and values, then each attempt that failed. */
export function stateText(state: TaskState): string {
  const failed = state.attempts.flatMap((each) =>
    each.failure ? [plain(attemptText(each, each.failure))] : [],
  );
  return [stateFields(state), ...failed].join("\n");
}

function attemptText(each: AttemptState, failure: TaskFault): string {
  const { number, endedAt, node, retryAt, peakMemoryBytes } = each;
  const where = node === "" ? "" : ` on ${node}`;
  const peak = peakMemoryBytes === undefined ? "" : `, ${memory(peakMemoryBytes)} at its peak`;
  return `${time(endedAt)}  ${failedText(number, failure, retryAt)}${where}${peak}`;
}

/** In the unit of limits. */
const memory = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;

/** `attempt 1 failed: flaky (error); next at 2026-01-31 12:00:03Z` */
function failedText(number: number, { message, reason }: TaskFault, retryAt?: Date): string {
  const verb = RETURNED_REASONS.has(reason) ? "was interrupted" : "failed";
  const next = retryAt === undefined ? "" : `; next at ${time(retryAt)}`;
  return `attempt ${number} ${verb}: ${message} (${reason})${next}`;
}

/** Reasons that are nobody's fault. */
const RETURNED_REASONS = new Set(["interrupted", "node_lost"]);

function stateFields(state: TaskState): string {
  const { progress, failure, queuePosition, runAt, createdAt } = state;
  const peak = state.attempts.at(-1)?.peakMemoryBytes;
  return fields([
    ["task", state.id],
    ["status", state.value],
    ["progress", progress ? `${percent(progress.fraction)} ${progress.message}`.trimEnd() : ""],
    ["failure", failure ? `${failure.message} (${failure.reason})` : ""],
    ["place in the queue", queuePosition === undefined ? "" : String(queuePosition)],
    ["starts about", time(state.estimatedStart)],
    ["queued because", state.queuedReason?.message ?? state.waitsFor ?? ""],
    ["attempt", state.attempt > 1 ? String(state.attempt) : ""],
    ["memory at its peak", peak === undefined ? "" : memory(peak)],
    ["retry of", state.retryOf ?? ""],
    ["key", state.key ?? ""],
    ["tags", state.tags.join(", ")],
    ["created", time(createdAt)],
    ["starts after", runAt !== undefined && runAt > createdAt ? time(runAt) : ""],
    ["starts before", time(state.startBy)],
    ["started", time(state.startedAt)],
    ["finished", time(state.finishedAt)],
    ["kept until", time(state.expiresAt)],
  ]);
}

/**
 * An event as one line, after one that says how many lines of the log are missing since the log
 * line before.
 */
export function eventText(event: TaskLogEvent, before?: TaskLogEvent): string {
  const text = `${event.time.toISOString()}  ${plain(whatHappened(event))}`;
  const missing = missingLines(event, before);
  return missing > 0 ? `… ${missing} lines left out …\n${text}` : text;
}

function missingLines(event: TaskLogEvent, before: TaskLogEvent | undefined): number {
  if (event.type !== "log" || before?.type !== "log" || event.attempt !== before.attempt) {
    return 0;
  }
  return before.line > 0 && event.line > 0 ? event.line - before.line - 1 : 0;
}

function whatHappened(event: TaskLogEvent): string {
  switch (event.type) {
    case "state": {
      if (event.status === "queued" && event.failure) {
        return `queued: ${failedText(event.attempt, event.failure, event.retryAt)}`;
      }
      const why = event.failure ? `: ${event.failure.message} (${event.failure.reason})` : "";
      return event.status + why;
    }
    case "progress":
      return `${percent(event.fraction).padStart(5)} ${event.message}`.trimEnd();
    case "log": {
      const given = Object.keys(event.fields).length > 0 ? ` ${JSON.stringify(event.fields)}` : "";
      return `${event.level}: ${event.message}${given}`;
    }
  }
}

function percent(fraction: number): string {
  return `${Math.floor(fraction * 100)} %`;
}

function time(date: Date | undefined): string {
  return date === undefined ? "" : `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;
}
