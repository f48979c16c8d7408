/** What the page of metrics shows, as its address says. */
import {
  boundsIn,
  type NamedRange,
  RANGES,
  type RangeSearch,
  readRange,
  SINCE_DEPLOY,
} from "../../ui/time-range.ts";

export interface MetricsSearch extends Omit<RangeSearch, "range"> {
  readonly range?: NamedRange;
  /** What the service counts itself. Default: what the platform measures. */
  readonly show?: "service";
}

export function readMetricsSearch({ show, ...rest }: Record<string, unknown>): MetricsSearch {
  const read = readRange(rest);
  return {
    ...read,
    ...(rest.range === SINCE_DEPLOY && boundsIn(read) === undefined && { range: SINCE_DEPLOY }),
    ...(show === "service" && { show }),
  };
}

/**
 * The range that a name means, in seconds back from now or from a time on, with the name of what is
 * shown: an hour, if nothing is kept since the newest deploy.
 */
export function namedRange(
  asked: NamedRange,
  deployedMs: number | undefined,
): { readonly name: NamedRange; readonly range: number | { readonly fromMs: number } } {
  if (asked === SINCE_DEPLOY && deployedMs !== undefined) {
    return { name: asked, range: { fromMs: deployedMs } };
  }
  const name = asked === SINCE_DEPLOY ? "1h" : asked;
  return { name, range: RANGES[name][1] };
}
