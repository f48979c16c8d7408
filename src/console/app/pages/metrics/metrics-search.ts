/** What the page of metrics shows, as its address says. */
import { type RangeSearch, readRange } from "../../ui/time-range.ts";

export interface MetricsSearch extends RangeSearch {
  /** What the service counts itself. Default: what the platform measures. */
  readonly show?: "service";
}

export const readMetricsSearch = ({ show, ...rest }: Record<string, unknown>): MetricsSearch => ({
  ...readRange(rest),
  ...(show === "service" && { show }),
});
