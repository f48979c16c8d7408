/** Chooses the range of time that a page shows: one that ends now, or back from one between two times. */
import { Link } from "@tanstack/react-router";
import { boundsIn, RANGES, type RangeName, type RangeSearch, rangeText } from "./time-range.ts";

interface RangePickerProps {
  readonly search: RangeSearch;
  /** What is shown without a range in the address: a range, or all that there is. */
  readonly standard: RangeName | "all";
}

export function RangePicker({ search, standard }: RangePickerProps) {
  const bounds = boundsIn(search);
  const chosen = bounds === undefined ? (search.range ?? standard) : undefined;
  return (
    <nav className="segments" aria-label="Time range">
      {bounds !== undefined && <RangeLink isCurrent>{rangeText(bounds, Date.now())}</RangeLink>}
      {standard === "all" && <RangeLink isCurrent={chosen === "all"}>All time</RangeLink>}
      {(Object.keys(RANGES) as RangeName[]).map((name) => (
        <RangeLink key={name} range={name} isCurrent={name === chosen}>
          {RANGES[name][0]}
        </RangeLink>
      ))}
    </nav>
  );
}

interface RangeLinkProps {
  readonly range?: RangeName;
  readonly isCurrent: boolean;
  readonly children: string;
}

function RangeLink({ range, isCurrent, children }: RangeLinkProps) {
  return (
    <Link
      to="."
      search={(before: object) => ({ ...before, range, from: undefined, to: undefined })}
      aria-label={range === undefined ? children : `Last ${children}`}
      aria-current={isCurrent ? "true" : undefined}
    >
      {children}
    </Link>
  );
}
