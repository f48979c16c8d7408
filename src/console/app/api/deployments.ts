/** Reads of deployments, shared by pages. */
import { queryOptions } from "@tanstack/react-query";
import type {
  DeploymentEndpointJson,
  DeploymentLogLineJson,
  DeploymentService,
  RevisionJson,
} from "../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "./clients.ts";
import { watch } from "./stream.ts";

/** The most that one call lists. */
const MAX_PAGE = 1_000;

/** The deployments of an organization, by name. */
export const deploymentsOf = (organization: string) =>
  queryOptions({
    queryKey: ["deployments", organization],
    queryFn: async ({ signal }) => {
      const request = { organization, pageSize: MAX_PAGE };
      return (await deployments.listDeployments(request, { signal })).deployments ?? [];
    },
  });

/** One deployment. */
export const deploymentOf = (organization: string, name: string) =>
  queryOptions({
    queryKey: ["deployment", organization, name],
    queryFn: ({ signal }) =>
      deployments.getDeployment({ organization, deployment: name }, { signal }),
  });

/** The secrets of a deployment at a version of it. */
export const secretsOf = (organization: string, deployment: string, version: number) =>
  queryOptions({
    queryKey: ["secrets", organization, deployment, version],
    queryFn: async ({ signal }) =>
      (await deployments.listSecrets({ organization, deployment }, { signal })).secrets ?? [],
  });

/** How often the workers of a deployment are read while somebody looks at them. */
const WORKERS_REFRESH_MS = 5_000;

/** Its workers, on all nodes. */
export const workersOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["workers", organization, deployment],
    queryFn: ({ signal }) => deployments.listWorkers({ organization, deployment }, { signal }),
    refetchInterval: WORKERS_REFRESH_MS,
  });

/** What a revision changed since another. What was deployed does not change any more. */
export const comparisonOf = (
  organization: string,
  deployment: string,
  { revision, base }: { readonly revision: number; readonly base: number },
) =>
  queryOptions({
    queryKey: ["comparison", organization, deployment, revision, base],
    queryFn: ({ signal }) =>
      deployments.compareRevisions({ organization, deployment, revision, base }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Its revisions, newest first. */
export const revisionsOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["revisions", organization, deployment],
    queryFn: async ({ signal }) => {
      const request = { organization, deployment, pageSize: MAX_PAGE };
      return (await deployments.listRevisions(request, { signal })).revisions ?? [];
    },
  });

/** A file of a revision. What was deployed does not change any more. */
export const revisionFileOf = (
  organization: string,
  deployment: string,
  { revision, path }: { readonly revision: number; readonly path: string },
) =>
  queryOptions({
    queryKey: ["revision-file", organization, deployment, revision, path],
    queryFn: ({ signal }) =>
      deployments.getRevisionFile({ organization, deployment, revision, path }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Lines of a roll-out's log that are read. */
const MAX_ROLLOUT_LINES = 200;

/** How long after a roll-out its log ends, so that its last line is there. */
const ROLLOUT_TAIL_MS = 2_000;

/** What a revision wrote until it served; while it does not, its newest lines. */
export const rolloutLogOf = (
  organization: string,
  deployment: string,
  { revision = 0, servedAt }: RevisionJson,
) =>
  queryOptions({
    queryKey: ["rollout-log", organization, deployment, revision, servedAt],
    queryFn: async ({ signal }) => {
      const request = {
        ...{ organization, deployment, revision, tail: MAX_ROLLOUT_LINES },
        ...(servedAt !== undefined && {
          endTime: new Date(Date.parse(servedAt) + ROLLOUT_TAIL_MS).toISOString(),
        }),
      };
      const lines: DeploymentLogLineJson[] = [];
      const path = "/tessera.v1.DeploymentService/WatchDeploymentLogs";
      for await (const line of watch<typeof DeploymentService.method.watchDeploymentLogs>(
        path,
        request,
        { signal, onOpen: () => {} },
      )) {
        lines.push(line);
      }
      return lines;
    },
  });

/** The names of the endpoints that tasks are of. */
export const tasksOf = (endpoints: readonly DeploymentEndpointJson[]): readonly string[] =>
  endpoints.filter(({ kind }) => kind === "ENDPOINT_KIND_TASK").map(({ name = "" }) => name);
