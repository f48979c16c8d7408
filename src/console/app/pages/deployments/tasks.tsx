/** The tasks of a deployment, newest first. */
import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { tasksOfAll } from "../../api/tasks.ts";
import { useTaskPage } from "../../api/use-task-page.ts";
import { TaskFilters } from "../tasks/filter.tsx";
import { TaskPages } from "../tasks/pages.tsx";
import { filterOf, type TaskSearch } from "../tasks/search.ts";
import { DeploymentFrame } from "./frame.tsx";
import "../tasks/tasks.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/tasks");

export function DeploymentTasks() {
  const search: TaskSearch = route.useSearch();
  return (
    <DeploymentFrame title="Tasks" hasStream>
      {(deployment) => (
        <>
          <TaskFilters search={search} endpoints={taskEndpoints(deployment)} />
          <TaskList deployment={deployment.name ?? ""} search={search} />
        </>
      )}
    </DeploymentFrame>
  );
}

const taskEndpoints = ({ endpoints = [] }: DeploymentJson): string[] =>
  endpoints
    .filter(({ kind }) => kind === "ENDPOINT_KIND_TASK" || kind === "ENDPOINT_KIND_SERVER")
    .map(({ name = "" }) => name);

function TaskList({
  deployment,
  search,
}: {
  readonly deployment: string;
  readonly search: TaskSearch;
}) {
  const organization = useOrganization();
  const filter = { ...filterOf(search), deployment };
  const list = useSuspenseInfiniteQuery(tasksOfAll(organization, filter));
  const stream = useTaskPage(organization, filter);
  const isFiltered = search.status !== undefined || search.endpoint !== undefined;
  return <TaskPages list={list} isFiltered={isFiltered} filter={filter} stream={stream} />;
}
