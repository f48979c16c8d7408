/** Reads of the workers of an organization, on all machines. */
import { queryOptions } from "@tanstack/react-query";
import type {
  DeploymentJson,
  DeploymentWorkerJson,
} from "../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "./clients.ts";

/** Deployments whose workers are read at first, and with each press for more: those with most workers. */
export const MAX_DEPLOYMENTS_PER_READ = 50;

/** Calls under way for them. */
const MAX_WORKER_CALLS_AT_ONCE = 4;

/** How often they are read again: nodes tell of their workers every 5 s. */
const MACHINES_REFRESH_MS = 10_000;

/** Whether workers of a deployment may be somewhere: ready ones, or some that start. */
const hasWorkers = ({ workers = 0, placements = [], status }: DeploymentJson): boolean =>
  workers > 0 || placements.length > 0 || status === "DEPLOYMENT_STATUS_STARTING";

/** The workers of the `limit` deployments that have most of them. */
export const allWorkersOf = (
  organization: string,
  listed: readonly DeploymentJson[],
  limit: number,
) => {
  const names = listed
    .filter(hasWorkers)
    .toSorted((one, other) => (other.workers ?? 0) - (one.workers ?? 0))
    .map(({ name = "" }) => name);
  const asked = names.slice(0, limit);
  return queryOptions({
    queryKey: ["all-workers", organization, asked],
    queryFn: async ({ signal }) => {
      const workers: DeploymentWorkerJson[] = [];
      const left = [...asked];
      const work = async (): Promise<void> => {
        for (let deployment = left.shift(); deployment !== undefined; deployment = left.shift()) {
          const read = await deployments.listWorkers({ organization, deployment }, { signal });
          workers.push(...(read.workers ?? []));
        }
      };
      await Promise.all(Array.from({ length: MAX_WORKER_CALLS_AT_ONCE }, work));
      return { workers, leftOut: names.length - asked.length };
    },
    refetchInterval: MACHINES_REFRESH_MS,
  });
};
