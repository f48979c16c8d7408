/** Parses the list of selectors of `match[]`, within limits. */
import { setImmediate } from "node:timers/promises";
import { MatchError } from "./error.ts";
import { parseSelector, type Selector } from "./parse.ts";

/** Selectors in one request: each is evaluated for many series. */
const MAX_SELECTORS = 1_000;

/** What the regexes of all selectors of a request may cost together, in steps of their programs. */
const MAX_LIST_COST_STEPS = 20_000;

/** How long selectors are parsed before other requests get their turn. */
const SELECTOR_PIECE_MS = 10;

/**
 * Parses a list of selectors, without duplicates. Throws a SelectorError for
 * the first invalid one, a MatchError for too many.
 */
export async function parseSelectors(texts: readonly string[]): Promise<Selector[]> {
  if (texts.length > MAX_SELECTORS) {
    throw new MatchError(
      `there are ${texts.length} selectors, and ${MAX_SELECTORS} are allowed: join them with =~ and |`,
    );
  }
  const selectors: Selector[] = [];
  let cost = 0;
  let begunMs = performance.now();
  for (const text of new Set(texts)) {
    const selector = parseSelector(text);
    cost += selector.matchers.reduce((sum, matcher) => sum + matcher.cost, 0);
    if (cost > MAX_LIST_COST_STEPS) {
      throw new MatchError(
        "the regexps of all selectors together are too large: ask for less at a time",
      );
    }
    selectors.push(selector);
    if (performance.now() - begunMs > SELECTOR_PIECE_MS) {
      await setImmediate();
      begunMs = performance.now();
    }
  }
  return selectors;
}
