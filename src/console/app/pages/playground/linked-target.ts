/** The target of a playground beside which there are pages of tasks. */
import type { ReactNode } from "react";
import type { PlaygroundTarget } from "./target.ts";

export interface LinkedTarget extends PlaygroundTarget {
  /** Renders the link to the page of a task. Default: tasks have no pages. */
  readonly taskLink?: (taskId: string) => ReactNode;
}
