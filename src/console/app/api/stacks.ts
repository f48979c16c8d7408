/** The stack traces of a task's attempts, which the log of its deployment has. */
import { queryOptions } from "@tanstack/react-query";
import type {
  DeploymentLogLineJson,
  DeploymentService,
} from "../../../../gen/tessera/v1/deployment_pb.js";
import { watch } from "./stream.ts";
import type { TaskName } from "./tasks.ts";

/** Lines that are read: more than the attempts that a task shows, and what they warned of. */
const MAX_LINES = 500;

/** Nodes write the log a moment after what it tells of. */
const REFRESH_MS = 1_000;
/** How long after the end of an attempt its stack may still come. */
const WRITTEN_AFTER_MS = 10_000;

/** Lines of a task's functions that are warnings or worse; those of `endedAt` and before. */
export const stacksOf = ({ organization, deployment, taskId }: TaskName, endedAt: string) =>
  queryOptions({
    queryKey: ["stacks", organization, deployment, taskId, endedAt],
    queryFn: async ({ signal }) => {
      const lines: DeploymentLogLineJson[] = [];
      const request = { organization, deployment, taskId, minLevel: "warn", tail: MAX_LINES };
      for await (const line of watch<typeof DeploymentService.method.watchDeploymentLogs>(
        "/tessera.v1.DeploymentService/WatchDeploymentLogs",
        request,
        { signal, onOpen: () => undefined },
      )) {
        lines.push(line);
      }
      return lines;
    },
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: () =>
      Date.now() - Date.parse(endedAt) < WRITTEN_AFTER_MS ? REFRESH_MS : false,
    // Who may not read the log of the deployment sees no stack.
    retry: false,
  });
