/** Matches series against a list of selectors; a series is selected when any of them matches. */
import { type Labels, labelOf } from "../labels.ts";
import { type Matcher, NAME_LABEL, type Selector } from "./parse.ts";

/** The remaining decision for the series of one name. */
export interface Choice {
  /** Whether a series with these labels is selected. */
  readonly has: (labels: Labels) => boolean;
  /** Approximate cost of a decision, in comparisons. */
  readonly cost: number;
}

/**
 * Evaluates the conditions on the name once for all series of that name.
 * Undefined: no series of that name can be selected.
 */
export function choose(selectors: readonly Selector[], name: string): Choice | undefined {
  const left: (readonly Matcher[])[] = [];
  for (const { matchers } of selectors) {
    const fits = matchers.every((one) => one.label !== NAME_LABEL || one.matches(name));
    if (matchers.length > 0 && fits) {
      left.push(matchers.filter(({ label }) => label !== NAME_LABEL));
    }
  }
  if (left.length === 0) {
    return undefined;
  }
  if (left.some((matchers) => matchers.length === 0)) {
    return { has: () => true, cost: 1 };
  }
  const cost = left.flat().reduce((sum, matcher) => sum + 1 + matcher.cost, 0);
  return {
    has: (labels) =>
      left.some((matchers) => matchers.every((one) => one.matches(labelOf(labels, one.label)))),
    cost,
  };
}
