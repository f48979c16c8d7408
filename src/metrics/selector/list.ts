/** Lists of selectors, as `match[]` gives them. */
import { setImmediate } from "node:timers/promises";
import { MatchError } from "./error.ts";
import { parseSelector, type Selector } from "./parse.ts";

/** More selectors are refused: each is looked at for many series. */
export const MAX_SELECTORS = 1_000;

/** What the regexes of a list may cost together, in steps of their programs. */
const MAX_COST = 20_000;

/** How long selectors are read before others get their turn. */
const PIECE_MS = 10;

/**
 * Reads a list of selectors; the same text twice is one. Throws a
 * SelectorError for the first that is wrong, a MatchError for too many.
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
    if (cost > MAX_COST) {
      throw new MatchError(
        "the regexps of all selectors together are too large: ask for less at a time",
      );
    }
    selectors.push(selector);
    if (performance.now() - begunMs > PIECE_MS) {
      await setImmediate();
      begunMs = performance.now();
    }
  }
  return selectors;
}
