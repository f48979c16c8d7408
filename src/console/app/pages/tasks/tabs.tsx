/** The states to choose from, each with the number of its tasks. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { StateCountJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { countsOf, type TaskFilter } from "../../api/tasks.ts";
import { Strip } from "../../ui/strip.tsx";
import { readSearch, type TaskSearch, WORDS } from "./search.ts";

const number = new Intl.NumberFormat("en");

interface StateTabsProps {
  readonly search: TaskSearch;
  /** Of the list, with its deployment. */
  readonly filter: TaskFilter;
}

export function StateTabs({ search, filter }: StateTabsProps) {
  const { data: counts } = useQuery(countsOf(useOrganization(), filter));
  return (
    <Strip className="pills states" label="State" current={search.status ?? "all"}>
      {[undefined, ...WORDS].map((word) => (
        <Link
          key={word ?? ""}
          to="."
          search={readSearch({ ...search, status: word })}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={search.status === word ? "page" : undefined}
        >
          {word ?? "all"}
          {counts !== undefined && word !== undefined && (
            <Count count={counts[word as keyof typeof counts] as StateCountJson | undefined} />
          )}
        </Link>
      ))}
    </Strip>
  );
}

function Count({ count: { count = 0, isPartial = false } = {} }: { count?: StateCountJson }) {
  return (
    <span title={isPartial ? "Only the newest tasks are counted" : undefined}>
      {number.format(count)}
      {isPartial && "+"}
    </span>
  );
}
