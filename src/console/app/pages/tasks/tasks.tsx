/** The tasks of an organization, newest first. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { deploymentsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { Page } from "../../ui/page.tsx";
import { AllActions } from "./bulk.tsx";
import { TaskFilters } from "./filter.tsx";
import { TaskList } from "./list.tsx";
import { type TaskSearch, useFilter } from "./search.ts";
import { StateTabs } from "./tabs.tsx";
import { Views } from "./views.tsx";
import "./table.css";

const route = getRouteApi("/signed-in/o/$organization/tasks");

export function Tasks() {
  const organization = useOrganization();
  const search: TaskSearch = route.useSearch();
  const filter = useFilter(search);
  const { data: deployments } = useSuspenseQuery(deploymentsOf(organization));
  return (
    <Page title="Tasks" description="Tasks of all deployments." actions={<Views search={search} />}>
      <div className="task-bar">
        <StateTabs search={search} filter={filter} />
        <TaskFilters search={search} deployments={deployments.map(({ name = "" }) => name)}>
          <AllActions filter={filter} />
        </TaskFilters>
      </div>
      <TaskList isFiltered={Object.keys(search).length > 0} filter={filter} ofSeveral />
    </Page>
  );
}
