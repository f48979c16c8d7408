/** Chooses the range of time that a page shows: one that ends now, or back from one between two times. */
import { Link } from "@tanstack/react-router";
import {
  boundsIn,
  type NamedRange,
  RANGES,
  type RangeName,
  type RangeSearch,
  rangeText,
  SINCE_DEPLOY,
} from "./time-range.ts";

interface RangePickerProps {
  readonly search: Omit<RangeSearch, "range"> & { readonly range?: NamedRange };
  /** What is shown without a range in the address: a range, or all that there is. */
  readonly standard: NamedRange | "all";
  /** The words for the range since the newest deploy. Default: the range is not offered. */
  readonly sinceDeploy?: string | undefined;
}

export function RangePicker({ search, standard, sinceDeploy }: RangePickerProps) {
  const bounds = boundsIn(search);
  const chosen = bounds === undefined ? (search.range ?? standard) : undefined;
  return (
    <nav className="segments" aria-label="Time range">
      {bounds !== undefined && <RangeLink isCurrent>{rangeText(bounds, Date.now())}</RangeLink>}
      {standard === "all" && <RangeLink isCurrent={chosen === "all"}>All time</RangeLink>}
      {sinceDeploy && (
        <RangeLink range={SINCE_DEPLOY} isCurrent={chosen === SINCE_DEPLOY}>
          {sinceDeploy}
        </RangeLink>
      )}
      {(Object.keys(RANGES) as RangeName[]).map((name) => (
        <RangeLink
          key={name}
          range={name}
          label={`Last ${RANGES[name][0]}`}
          isCurrent={name === chosen}
        >
          {RANGES[name][0]}
        </RangeLink>
      ))}
    </nav>
  );
}

interface RangeLinkProps {
  readonly range?: NamedRange;
  /** Its name for screen readers. Default: its text. */
  readonly label?: string;
  readonly isCurrent: boolean;
  readonly children: string;
}

function RangeLink({ range, label, isCurrent, children }: RangeLinkProps) {
  return (
    <Link
      to="."
      search={(before: object) => ({ ...before, range, from: undefined, to: undefined })}
      aria-label={label ?? children}
      // Else the router says so of all time, whatever the range is: its address is a part of each.
      activeOptions={{ exact: true, includeSearch: true }}
      aria-current={isCurrent ? "true" : undefined}
    >
      {children}
    </Link>
  );
}
