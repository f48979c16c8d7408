/** Reads of schedules, again while somebody looks, and the times at which one would call. */
import { queryOptions } from "@tanstack/react-query";
import type { ScheduleJson, ScheduleService } from "../../../../gen/tessera/v1/schedule_pb.js";
import { organizationTasks } from "./clients.ts";
import { createClient } from "./rpc.ts";

/** Of its own, because the other pages do not call it. */
export const schedules = createClient<typeof ScheduleService>("tessera.v1.ScheduleService");

/** How often schedules are read while somebody looks at them. */
const SCHEDULES_REFRESH_MS = 5_000;
/** The newest tasks of an endpoint, among which the runs of a schedule are looked for. */
const MAX_SEARCHED_TASKS = 200;
/** Runs of a schedule that are shown. */
const MAX_SHOWN_RUNS = 5;
/** How long somebody who writes a schedule stops before its times are asked for. */
const TYPING_PAUSE_MS = 300;

export const schedulesOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["schedules", organization, deployment],
    queryFn: async ({ signal }) =>
      (await schedules.listSchedules({ organization, deployment }, { signal })).schedules ?? [],
    refetchInterval: SCHEDULES_REFRESH_MS,
  });

/** The newest tasks that a schedule has submitted, among the newest ones of its endpoint. */
export const runsOf = (organization: string, deployment: string, schedule: ScheduleJson) => {
  const { name = "", endpoint = "" } = schedule;
  return queryOptions({
    queryKey: ["schedules", organization, deployment, { name, endpoint }],
    queryFn: async ({ signal }) => {
      const deployments = [deployment];
      const asked = { organization, deployments, endpoint, pageSize: MAX_SEARCHED_TASKS };
      const { tasks = [] } = await organizationTasks.listOrganizationTasks(asked, { signal });
      return tasks.filter((task) => task.schedule === name).slice(0, MAX_SHOWN_RUNS);
    },
    refetchInterval: SCHEDULES_REFRESH_MS,
  });
};

/** The next times of a schedule that is being written. It is checked, and nothing is stored. */
export const timesOf = (organization: string, deployment: string, draft: ScheduleJson) =>
  queryOptions({
    queryKey: ["schedule-times", organization, deployment, draft],
    queryFn: async ({ signal }) => {
      await new Promise((resolve) => setTimeout(resolve, TYPING_PAUSE_MS));
      signal.throwIfAborted();
      // Its own name may be missing still, and says nothing of its times.
      const schedule = { ...draft, name: "draft" };
      const asked = { organization, deployment, schedule, validateOnly: true };
      return (await schedules.createSchedule(asked, { signal })).nextTimes ?? [];
    },
    gcTime: 0,
    retry: false,
  });
