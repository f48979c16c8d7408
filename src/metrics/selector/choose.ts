/** Decides which series a list of selectors selects: those that any of them does. */
import { type Labels, labelOf } from "../labels.ts";
import { type Matcher, NAME_LABEL, type Selector } from "./parse.ts";

/** What is left to decide for the series of one name. */
export interface Choice {
  /** Whether a series with these labels is selected. */
  readonly has: (labels: Labels) => boolean;
  /** About what a decision costs, in comparisons. */
  readonly cost: number;
}

/**
 * The part of the selectors that is about names is decided here, once for all
 * series of a name. Undefined: no series of that name can be selected.
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
