/** What is wrong with a task, from how it ended and from what its runs said of themselves. */
import type { Run } from "./ledger.ts";

/** How soon a run has told that it lives, and a little more. */
const SIGN_TOLERANCE_MS = 250;

/** How a task ended. */
export interface Outcome {
  /** `gave_up`: its worker was lost too often. */
  readonly kind: "success" | "gave_up";
  /** The text of its result, or the reason. */
  readonly text: string;
}

/** What is known of a task that was acknowledged. */
export interface TaskRecord {
  readonly taskId: string;
  /** How it had ended when it was looked at first; undefined: it was not seen ended. */
  readonly before: Outcome | undefined;
  /** How it has ended now; undefined: it has not. */
  readonly outcome: Outcome | undefined;
  /** As they began. */
  readonly runs: readonly Run[];
}

export interface Verdict {
  /** It has not ended. */
  readonly isLost: boolean;
  /** It has ended in two ways, or as no run has. */
  readonly isEndedTwice: boolean;
  /** For each run that began while the one before was under way: for how long, in milliseconds. */
  readonly overlapsMs: readonly number[];
}

export function judge({ before, outcome, runs }: TaskRecord): Verdict {
  return {
    isLost: outcome === undefined,
    isEndedTwice: outcome !== undefined && isTwice(outcome, before, runs),
    overlapsMs: overlapsOf(runs),
  };
}

function isTwice(outcome: Outcome, before: Outcome | undefined, runs: readonly Run[]): boolean {
  if (before !== undefined && before.text !== outcome.text) {
    return true;
  }
  if (outcome.kind !== "success") {
    return false;
  }
  const { run } = JSON.parse(outcome.text) as { run: string };
  return !runs.some((each) => each.run === run && each.hasEnded);
}

/** A run is compared with all that began before it, because any of them may still go on. */
export function overlapsOf(runs: readonly Run[]): number[] {
  return runs.flatMap((run, at) => {
    const lastMs = Math.max(...runs.slice(0, at).map((each) => each.lastMs));
    return run.beganMs < lastMs - SIGN_TOLERANCE_MS ? [Math.round(lastMs - run.beganMs)] : [];
  });
}
