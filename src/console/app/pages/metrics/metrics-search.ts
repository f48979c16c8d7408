/** What the page of metrics shows, as its address says. */
import {
  boundsIn,
  type RangeName,
  type RangeSearch,
  readRange,
  SINCE_DEPLOY,
} from "../../ui/time-range.ts";

export interface MetricsSearch extends Omit<RangeSearch, "range"> {
  readonly range?: RangeName | typeof SINCE_DEPLOY;
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
