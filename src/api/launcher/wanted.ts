/**
 * WatchWorkersWanted: how many workers should join the deployments of a token, and which machines
 * have. Each node says what it wants for its share of the load; what other nodes have reported is
 * up to five seconds old.
 */
import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import {
  type LauncherService,
  type WorkersWanted,
  WorkersWantedSchema,
} from "../../../gen/tessera/v1/launcher_pb.js";
import { launches } from "../../auth/permissions.ts";
import type { TokenPrincipal } from "../../auth/principal.ts";
import type { DeploymentRecord } from "../../storage/accounts/organizations.ts";
import { type DeploymentLists, deploymentsOf } from "../deployments-of.ts";
import { Followers, type ShownById, shownById, tellingDeployments } from "../follow.ts";
import { type AllWorkersOptions, allWorkersOf } from "../machine/machine.ts";

export interface WantedOptions extends AllWorkersOptions {
  readonly accounts: DeploymentLists;
}

type State = ShownById<WorkersWanted>;

/** The implementation of WatchWorkersWanted. */
export function watchWorkersWanted(
  options: WantedOptions,
  tokenOf: (values: ContextValues) => TokenPrincipal,
): ServiceImpl<typeof LauncherService>["watchWorkersWanted"] {
  const followers = new Followers<State>("what deployments want");
  return async function* ({ followFor }, { values, signal }) {
    const token = tokenOf(values);
    const { organizationId, tokenId } = token;
    const read = async (before?: State): Promise<State> => {
      const all = await deploymentsOf(options.accounts, organizationId);
      const own = all.filter(({ deploymentId }) => launches(token, deploymentId));
      const messages = await wantedBy(options, organizationId, own);
      return shownById(
        WorkersWantedSchema,
        messages.map((one) => [one.deploymentId, one] as const),
        before,
      );
    };
    // A token that is changed is followed anew: the stream ends where it loses a deployment.
    const { allDeployments, deployments } = token;
    const key = JSON.stringify([tokenId, allDeployments, deployments]);
    const forMs = followFor && durationMs(followFor);
    yield* followers.follow({ organizationId, key, read, forMs, signal }, tellingDeployments);
  };
}

/** What these deployments of an organization want. */
export async function wantedBy(
  options: WantedOptions,
  organizationId: string,
  deployments: readonly DeploymentRecord[],
): Promise<WorkersWanted[]> {
  const workers = await allWorkersOf(options, organizationId);
  const byDeployment = Map.groupBy(workers, ({ deploymentId }) => deploymentId);
  return deployments.map(({ deploymentId, name, desiredState, settings }) => {
    const nodes = byDeployment.get(deploymentId) ?? [];
    const wanted = nodes.reduce((sum, node) => sum + (node.wanted ?? 0), 0);
    return create(WorkersWantedSchema, {
      deploymentId,
      deployment: name,
      workers: desiredState === "running" ? Math.min(wanted, settings.maxWorkers) : 0,
      requires: { ...settings.requires },
      machines: nodes
        .flatMap(({ launched = [] }) => launched)
        .toSorted((one, other) => (one.machine < other.machine ? -1 : 1)),
    });
  });
}
