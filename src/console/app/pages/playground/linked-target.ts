/** The target of a playground beside which there are pages of tasks. */
import type { ReactNode } from "react";
import type { PlaygroundTarget } from "./target.ts";

export interface LinkedTarget extends PlaygroundTarget {
  /** The way to the page of a task; undefined where there is none. */
  readonly taskLink?: (taskId: string) => ReactNode;
}
