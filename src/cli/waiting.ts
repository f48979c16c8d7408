/** Shows how far a task is while a command waits for it. */
import type { Progress, RemoteTask } from "../client/index.ts";
import { ProgressLine } from "./progress.ts";
import type { DeploymentTarget } from "./target.ts";

const BAR_CELLS = 24;
/** Where there is no terminal, every line stays. */
const LINE_PAUSE_MS = 1_000;

/** Waits for the end; rejects as `RemoteTask.wait` does. */
export async function waitFor(target: DeploymentTarget, task: RemoteTask): Promise<void> {
  const { terminal, clock, signal, timeoutMs, output } = target;
  const line = new ProgressLine(terminal.streams, { quiet: output === "json" });
  let saidMs = Number.NEGATIVE_INFINITY;
  const onProgress = (progress: Progress): void => {
    const nowMs = clock.now();
    if (terminal.interactive || progress.fraction === 1 || nowMs - saidMs >= LINE_PAUSE_MS) {
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

export function barText(progress: Progress): string {
  const full = Math.round(progress.fraction * BAR_CELLS);
  return `${"█".repeat(full)}${"░".repeat(BAR_CELLS - full)} ${lineText(progress)}`;
}

function lineText({ fraction, message }: Progress): string {
  return `${String(Math.floor(fraction * 100)).padStart(3)} %  ${message}`.trimEnd();
}
