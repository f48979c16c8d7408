/** Keeps deployments as they are now, by their stream. */
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type {
  DeploymentJson,
  DeploymentService,
  WatchDeploymentsResponseJson,
} from "../../../../gen/tessera/v1/deployment_pb.js";
import { deploymentOf, deploymentsOf, revisionsOf } from "./deployments.ts";
import { CallError } from "./errors.ts";
import { type StreamOptions, watch } from "./stream.ts";
import { type StreamState, useStream } from "./use-stream.ts";

/** How often a deployment is read again where another stream is followed. */
const REFRESH_MS = 5_000;

const watchDeployments = (
  request: { readonly organization: string; readonly deployment?: string },
  options: StreamOptions,
) =>
  watch<typeof DeploymentService.method.watchDeployments>(
    "/tessera.v1.DeploymentService/WatchDeployments",
    request,
    options,
  );

/** The deployments of an organization, by name. */
export function useDeployments(organization: string): {
  readonly deployments: readonly DeploymentJson[];
  readonly stream: StreamState;
} {
  const queryClient = useQueryClient();
  const query = deploymentsOf(organization);
  const { data: deployments } = useSuspenseQuery(query);
  const byId = useRef(new Map<string, DeploymentJson>());
  const stream = useStream<WatchDeploymentsResponseJson>(
    organization,
    (options) => {
      byId.current = new Map();
      return watchDeployments({ organization }, options);
    },
    ({ deployments: changed = [], removedDeploymentIds = [] }) => {
      for (const one of changed) {
        byId.current.set(one.deploymentId ?? "", one);
      }
      for (const id of removedDeploymentIds) {
        byId.current.delete(id);
      }
      // An answer that is under way may be older.
      void queryClient.cancelQueries({ queryKey: query.queryKey });
      queryClient.setQueryData(query.queryKey, [...byId.current.values()].sort(byName));
    },
  );
  return { deployments, stream };
}

const byName = (one: DeploymentJson, other: DeploymentJson): number =>
  (one.name ?? "") < (other.name ?? "") ? -1 : 1;

interface FollowedDeployment {
  /** As it was last, if it is deleted. */
  readonly deployment: DeploymentJson;
  readonly isDeleted: boolean;
  readonly stream: StreamState;
}

/**
 * One deployment. A browser opens six connections to a host over HTTP/1.1, for all its tabs, so a
 * page follows one stream: on one that has another (`hasStream`) the deployment is read every 5 s.
 */
export function useDeployment(
  organization: string,
  name: string,
  { hasStream }: { readonly hasStream: boolean },
): FollowedDeployment {
  const queryClient = useQueryClient();
  const query = deploymentOf(organization, name);
  const { data: deployment, error } = useSuspenseQuery({
    ...query,
    refetchInterval: ({ state }) => hasStream && !isGone(state.error) && REFRESH_MS,
  });
  const { deploymentId = "" } = deployment;
  // Known before the page is drawn again, when the stream ends.
  const gone = useRef<string>(undefined);
  const [goneId, setGoneId] = useState<string>();
  const stream = useStream<WatchDeploymentsResponseJson>(
    hasStream ? undefined : `${organization}/${deploymentId}`,
    (options) => watchUntilDeleted({ organization, deployment: name }, options, deploymentId),
    ({ deployments: [changed] = [], removedDeploymentIds = [] }) => {
      [gone.current] = removedDeploymentIds;
      setGoneId(gone.current);
      if (changed !== undefined) {
        void queryClient.cancelQueries({ queryKey: query.queryKey });
        queryClient.setQueryData(query.queryKey, changed);
        if (changed.version !== deployment.version) {
          const { queryKey } = revisionsOf(organization, name);
          void queryClient.invalidateQueries({ queryKey });
        }
      }
    },
    () => gone.current === deploymentId,
  );
  return { deployment, isDeleted: goneId === deploymentId || isGone(error), stream };
}

/** Also tells of a deletion that nobody followed, because the connection was lost. */
async function* watchUntilDeleted(
  request: { readonly organization: string; readonly deployment: string },
  options: StreamOptions,
  deploymentId: string,
): AsyncGenerator<WatchDeploymentsResponseJson, void, undefined> {
  try {
    yield* watchDeployments(request, options);
  } catch (err) {
    if (!isGone(err)) {
      throw err;
    }
    yield { removedDeploymentIds: [deploymentId] };
  }
}

const isGone = (err: unknown): boolean =>
  err instanceof CallError && err.reason === "DEPLOYMENT_NOT_FOUND";
