/** The tasks of an organization, newest first. */
import { useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { deploymentsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { tasksOfAll } from "../../api/tasks.ts";
import { useTaskPage } from "../../api/use-task-page.ts";
import { Page } from "../../ui/page.tsx";
import { TaskFilters } from "./filter.tsx";
import { TaskPages } from "./pages.tsx";
import { filterOf, type TaskSearch } from "./search.ts";
import "./tasks.css";

const route = getRouteApi("/signed-in/o/$organization/tasks");

export function Tasks() {
  const organization = useOrganization();
  const search: TaskSearch = route.useSearch();
  const { data: deployments } = useSuspenseQuery(deploymentsOf(organization));
  return (
    <Page title="Tasks" description="Calls that wait, run or have ended, of all deployments.">
      <TaskFilters search={search} deployments={deployments.map(({ name = "" }) => name)} />
      <TaskList search={search} />
    </Page>
  );
}

function TaskList({ search }: { readonly search: TaskSearch }) {
  const filter = filterOf(search);
  const organization = useOrganization();
  const list = useSuspenseInfiniteQuery(tasksOfAll(organization, filter));
  const stream = useTaskPage(organization, filter);
  const isFiltered = Object.keys(search).length > 0;
  return (
    <TaskPages list={list} isFiltered={isFiltered} filter={filter} stream={stream} ofSeveral />
  );
}
