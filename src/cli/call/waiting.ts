/** Shows a task's progress while a command waits for it. */
import type { Progress, RemoteTask } from "../../client/deployment.ts";
import { ProgressLine } from "../progress.ts";
import type { DeploymentTarget } from "../target.ts";

const BAR_CELLS = 24;
/** Least time between two lines of progress where there is no terminal and every line stays. */
const PROGRESS_LINE_INTERVAL_MS = 1_000;

/** Waits until the task has ended; rejects as `RemoteTask.wait` does. */
export async function waitFor(target: DeploymentTarget, task: RemoteTask): Promise<void> {
  const { terminal, clock, signal, timeoutMs, output } = target;
  const line = new ProgressLine(terminal.streams, { quiet: output === "json" });
  let saidMs = Number.NEGATIVE_INFINITY;
  const onProgress = (progress: Progress): void => {
    const nowMs = clock.now();
    if (
      terminal.interactive ||
      progress.fraction === 1 ||
      nowMs - saidMs >= PROGRESS_LINE_INTERVAL_MS
    ) {
      saidMs = nowMs;
      line.step(terminal.interactive ? barText(progress) : lineText(progress));
    }
  };
  if (terminal.interactive) {
    line.step("waiting for a worker");
  }
  try {
    await task.ended({
      signal,
      onProgress,
      ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    });
  } finally {
    line.end();
  }
}

function barText(progress: Progress): string {
  const full = Math.round(progress.fraction * BAR_CELLS);
  return `${"█".repeat(full)}${"░".repeat(BAR_CELLS - full)} ${lineText(progress)}`;
}

function lineText({ fraction, message }: Progress): string {
  return `${String(Math.floor(fraction * 100)).padStart(3)} %  ${message}`.trimEnd();
}
