/** The part of the hosting port for the log lines of deployments. */
import type { DeploymentKey } from "./deployment-key.ts";

export type LineLevel = "info" | "warn" | "error";

/** A line of a deployment's log. */
export interface NewLogLine {
  readonly timeMs: number;
  /** The worker; empty when the line is not about one. */
  readonly worker: string;
  /** The revision; 0 when the line is not about one. */
  readonly revision: number;
  /** `node`: a line of the node itself. */
  readonly stream: "stdout" | "stderr" | "node";
  /** What workers write to their output is `info`. */
  readonly level: LineLevel;
  /** The task whose function wrote it; empty when the line is not about one. */
  readonly taskId: string;
  /** Without the line break. Cut off after 8,000 characters. */
  readonly text: string;
}

export interface LogLine extends NewLogLine {
  /** Numbers the lines of the deployment, from 1. */
  readonly sequence: number;
  readonly nodeId: string;
}

/** Logs of deployments. The newest 10,000 lines of each are kept. */
export interface Logs {
  /** Appends lines; drops those of a deleted deployment. */
  appendLogs(
    parameters: DeploymentKey & { readonly nodeId: string; readonly lines: readonly NewLogLine[] },
  ): Promise<void>;

  /**
   * Reads lines in order: the newest `limit`, or the first `limit` after
   * `afterSequence`. `lastSequence` is the sequence of the newest line; no line
   * appears later with a sequence up to that.
   */
  readLogs(
    parameters: DeploymentKey & { readonly afterSequence?: number; readonly limit: number },
  ): Promise<{ readonly lines: LogLine[]; readonly lastSequence: number }>;
}
