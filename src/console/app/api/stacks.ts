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
    // Who may not read the log of the deployment sees no stack.
    retry: false,
  });
