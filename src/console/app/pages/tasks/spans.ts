/** The life of a task in spans of time: waiting, attempts, and the pauses before the next ones. */
import type { TaskAttemptJson, TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { capitalized } from "../../api/errors.ts";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";

/** A shorter wait between a pause and the next attempt is not worth a line. */
const MIN_SHOWN_WAIT_MS = 100;

export interface Span {
  readonly kind: "scheduled" | "queued" | "attempt" | "pause" | "left-out";
  readonly fromMs: number;
  readonly toMs: number;
  /** It goes on. */
  readonly isOpen: boolean;
  /** Of an attempt. */
  readonly attempt?: TaskAttemptJson;
  /** How many attempts the platform has not kept in this time. */
  readonly leftOut?: number;
}

/** How many attempts a task has that all failed with the same message; 0 where they did not. */
export function failedAlike({ attempts = [] }: TaskJson): number {
  const [first, ...others] = attempts;
  const message = first?.failure?.message;
  return message !== undefined && others.every(({ failure }) => failure?.message === message)
    ? attempts.length
    : 0;
}

/** How many attempts share one error, in words; empty if only one has it. */
export function alikeText(task: TaskJson): string {
  const alike = failedAlike(task);
  const isWhole = task.attempts?.at(-1)?.number === alike;
  return alike > 1 ? `All ${alike} ${isWhole ? "" : "shown "}attempts:` : "";
}

/** The spans of a task, the first one first; those that go on end now. */
export function spansOf(task: TaskJson, nowMs: number): readonly Span[] {
  const { attempts = [], createdAt = "", finishedAt, runAt } = task;
  const endMs =
    finishedAt === undefined ? Math.max(nowMs, Date.parse(createdAt)) : Date.parse(finishedAt);
  const isOver = finishedAt !== undefined;
  const spans: Span[] = [];
  const add = (
    kind: Span["kind"],
    fromMs: number,
    toMs: number,
    more: Partial<Span> = {},
  ): void => {
    spans.push({ kind, fromMs, toMs: Math.max(fromMs, toMs), isOpen: false, ...more });
  };
  let fromMs = Date.parse(createdAt);
  /** When the next attempt may start. */
  let dueMs = attempts.length === 0 && runAt !== undefined ? Date.parse(runAt) : fromMs;
  let number = 0;
  const wait = (toMs: number, isOpen: boolean, leftOut: number): void => {
    if (leftOut > 0) {
      add("left-out", fromMs, toMs, { leftOut });
      return;
    }
    const pauseEndMs = Math.min(dueMs, toMs);
    if (pauseEndMs > fromMs) {
      add(number === 0 ? "scheduled" : "pause", fromMs, pauseEndMs, {
        isOpen: isOpen && dueMs > toMs,
      });
    }
    const waitedMs = toMs - Math.max(pauseEndMs, fromMs);
    if (waitedMs >= MIN_SHOWN_WAIT_MS || (number === 0 && dueMs <= toMs)) {
      add("queued", Math.max(pauseEndMs, fromMs), toMs, { isOpen });
    }
  };
  for (const attempt of attempts) {
    const startMs = Date.parse(attempt.startedAt ?? "");
    wait(startMs, false, (attempt.number ?? 0) - number - 1);
    number = attempt.number ?? 0;
    const isOpen = attempt.endedAt === undefined && !isOver;
    const attemptEndMs = attempt.endedAt === undefined ? endMs : Date.parse(attempt.endedAt);
    add("attempt", startMs, attemptEndMs, { attempt, isOpen });
    fromMs = attemptEndMs;
    dueMs = attempt.retryAt === undefined ? fromMs : Date.parse(attempt.retryAt);
  }
  const last = attempts.at(-1);
  if (last === undefined || (last.endedAt !== undefined && endMs > fromMs && !isOver)) {
    wait(endMs, !isOver, 0);
  }
  return spans;
}

/** What a task did in a span by its kind, and what it does in one that goes on. */
const DID: Readonly<Record<Span["kind"], readonly [did: string, does: string]>> = {
  scheduled: ["scheduled", "waiting for"],
  queued: ["queued", "queued for"],
  attempt: ["ran", "running for"],
  pause: ["backoff", "in backoff for"],
  "left-out": ["not kept", "not kept"],
};

/** Such as `Queued 2 s · ran 312 ms in 2 attempts · backoff 1 s`, or `running for 34 s`: the sum of each kind of span. */
export function timingText(spans: readonly Span[]): string {
  const sums = [...Map.groupBy(spans, ({ kind }) => kind)].map(([kind, of]) => {
    const ms = of.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
    const [did, does] = DID[kind];
    const words = of.some(({ isOpen }) => isOpen) ? does : did;
    const times = kind === "attempt" && of.length > 1 ? ` in ${counted(of.length, "attempt")}` : "";
    return `${words} ${duration(ms)}${times}`;
  });
  return capitalized(sums.join(" · "));
}
