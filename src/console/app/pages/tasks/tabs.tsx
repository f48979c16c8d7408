/** The states to choose from, each with the number of its tasks. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { StateCountJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { countsOf, type TaskFilter } from "../../api/tasks.ts";
import { Strip } from "../../ui/strip.tsx";
import { readSearch, type TaskSearch, WORDS } from "./search.ts";
import { STATES } from "./state.tsx";

const number = new Intl.NumberFormat("en");

/** It is the first state, so that a phone shows it: most people look for what failed. */
const [, FAILURE] = STATES.TASK_STATUS_FAILURE;

interface StateTabsProps {
  readonly search: TaskSearch;
  /** Of the list, with its deployment. */
  readonly filter: TaskFilter;
}

export function StateTabs({ search, filter }: StateTabsProps) {
  const { data: counts } = useQuery(countsOf(useOrganization(), filter));
  return (
    <Strip className="pills states" label="State" current={search.status ?? "all"}>
      {[undefined, FAILURE, ...WORDS.filter((word) => word !== FAILURE)].map((word) => (
        <Link
          key={word ?? ""}
          to="."
          search={readSearch({ ...search, status: word })}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={search.status === word ? "page" : undefined}
        >
          {word ?? "all"}
          {counts !== undefined && (
            <Count
              count={word === undefined ? sumOf(counts) : countIn(counts, word)}
              isBad={word === FAILURE}
            />
          )}
        </Link>
      ))}
    </Strip>
  );
}

type Counts = Readonly<Record<string, StateCountJson | undefined>>;

const countIn = (counts: object, word: string): StateCountJson => (counts as Counts)[word] ?? {};

const sumOf = (counts: object): StateCountJson => ({
  count: WORDS.reduce((sum, word) => sum + (countIn(counts, word).count ?? 0), 0),
  isPartial: WORDS.some((word) => countIn(counts, word).isPartial),
});

interface CountProps {
  readonly count: StateCountJson;
  /** More than none is seen as wrong. */
  readonly isBad: boolean;
}

function Count({ count: { count = 0, isPartial = false }, isBad }: CountProps) {
  return (
    <span
      className={isBad && count > 0 ? "bad" : undefined}
      title={isPartial ? "Only the newest tasks are counted" : undefined}
    >
      {number.format(count)}
      {isPartial && "+"}
    </span>
  );
}
