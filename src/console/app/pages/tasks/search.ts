/** The filter of a list of tasks, which is in the address: a link shows the same. */
import type { TaskFilter } from "../../api/tasks.ts";
import { type ShownState, STATES } from "./state.tsx";

/** What the address says of the filter: the word of a state, names, and a text. */
export interface TaskSearch {
  readonly status?: string;
  readonly endpoint?: string;
  readonly deployment?: string;
  readonly error?: string;
}

/** The states with their words. */
export const WORDS: readonly (readonly [state: string, word: string])[] = Object.entries(
  STATES,
).map(([state, [, word]]) => [state, word]);

/** Leaves out what no filter has. */
export function readSearch(given: Record<string, unknown>): TaskSearch {
  const { status, endpoint, deployment, error } = given;
  return {
    ...(typeof status === "string" && WORDS.some(([, word]) => word === status) && { status }),
    ...(typeof endpoint === "string" && endpoint !== "" && { endpoint }),
    ...(typeof deployment === "string" && deployment !== "" && { deployment }),
    ...(typeof error === "string" && error !== "" && { error }),
  };
}

export function filterOf({ status, ...rest }: TaskSearch): TaskFilter {
  const state = WORDS.find(([, word]) => word === status)?.[0] as ShownState | undefined;
  return { ...rest, status: state };
}
