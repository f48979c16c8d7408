import type { DeploymentKey } from "./deployment-key.ts";

/** A line of a deployment's log. */
export interface NewLogLine {
  readonly timeMs: number;
  /** Empty for what is about no worker. */
  readonly worker: string;
  /** 0 for what is about none. */
  readonly revision: number;
  /** `node`: what the node says itself. */
  readonly stream: "stdout" | "stderr" | "node";
  /** Without its end. Cut off after 8,000 characters. */
  readonly text: string;
}

export interface LogLine extends NewLogLine {
  /** Counts the lines of the deployment, from 1. */
  readonly sequence: number;
  readonly nodeId: string;
}

/** What deployments write. Of each, the newest 10,000 lines are kept. */
export interface Logs {
  /** Appends lines; those of a deployment that is deleted are dropped. */
  appendLogs(
    parameters: DeploymentKey & { readonly nodeId: string; readonly lines: readonly NewLogLine[] },
  ): Promise<void>;

  /**
   * Lines in their order: the newest `limit`, or the first `limit` after
   * `afterSequence`. No line appears later with a sequence up to
   * `lastSequence`, which is that of the newest line there is.
   */
  readLogs(
    parameters: DeploymentKey & { readonly afterSequence?: number; readonly limit: number },
  ): Promise<{ readonly lines: LogLine[]; readonly lastSequence: number }>;
}
