/** Numbers of tasks, of an organization and its deployments. */
import { queryOptions } from "@tanstack/react-query";
import type {
  DeploymentTaskStatsJson,
  GetTaskStatsResponseJson,
  TaskStatsJson,
} from "../../../../gen/tessera/v1/organization_task_pb.js";
import { organizationTasks } from "./clients.ts";

/** How often numbers of tasks are read again while somebody looks: the platform shares the answer. */
const REFRESH_MS = 2_000;

/** What waits and runs, and what happened in the last hour. */
export const taskStatsOf = (organization: string) =>
  queryOptions({
    queryKey: ["task-stats", organization],
    queryFn: ({ signal }) => organizationTasks.getTaskStats({ organization }, { signal }),
    refetchInterval: REFRESH_MS,
  });

const NO_TASKS: TaskStatsJson = {};

/** The numbers of one deployment; those without tasks are not in the answer. */
export const statsIn = (
  { deployments = [] }: GetTaskStatsResponseJson,
  name: string | undefined,
): TaskStatsJson => statsOf({ deployments }, name).total ?? NO_TASKS;

/** What is known of one deployment, its calls among it. */
export const statsOf = (
  { deployments = [] }: GetTaskStatsResponseJson,
  name: string | undefined,
): DeploymentTaskStatsJson => deployments.find(({ deployment }) => deployment === name) ?? {};
