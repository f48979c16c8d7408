/**
 * WatchDeployments: the deployments of an organization, or one, and what changes of them. All are
 * read once a second while anybody follows any, once for all followers: two queries.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Deployment,
  DeploymentSchema,
  type DeploymentService,
  type WatchDeploymentsResponseSchema,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { memberOf } from "../../server/rpc/engine/caller.ts";
import { type DeploymentLists, deploymentsOf } from "../deployments-of.ts";
import {
  Followers,
  type ShownById,
  shownById,
  type Telling,
  tellingDeployments,
} from "../follow.ts";
import type { Describe } from "./describe.ts";
import { deploymentNotFound } from "./refusals.ts";

type WatchDeployments = ServiceImpl<typeof DeploymentService>["watchDeployments"];
type State = ShownById<Deployment>;
type DeploymentTelling = Telling<State, MessageInitShape<typeof WatchDeploymentsResponseSchema>>;

/** The implementation of WatchDeployments. */
export function watchDeployments(accounts: DeploymentLists, describe: Describe): WatchDeployments {
  const followers = new Followers<State>("deployments");
  return async function* ({ deployment, followFor }, { values, signal }) {
    const { organizationId } = memberOf({ values });
    const read = async (before?: State) => {
      const described = await describe(
        organizationId,
        await deploymentsOf(accounts, organizationId),
      );
      const messages = described.map((init) => create(DeploymentSchema, init));
      return shownById(
        DeploymentSchema,
        messages.map((one) => [one.deploymentId, one] as const),
        before,
      );
    };
    const forMs = followFor && durationMs(followFor);
    const telling = deployment === "" ? tellingDeployments : tellingOf(deployment);
    yield* followers.follow({ organizationId, key: organizationId, read, forMs, signal }, telling);
  };
}

/** Tells of the deployment that has this name at first, until it is deleted. */
function tellingOf(name: string): DeploymentTelling {
  let id: string | undefined;
  const only = (state: State): State => {
    id ??= [...state.values()].find(({ message }) => message.name === name)?.message.deploymentId;
    if (id === undefined) {
      throw deploymentNotFound(name);
    }
    const one = state.get(id);
    return new Map(one && [[id, one]]);
  };
  return {
    changeOf: (sent, next) => tellingDeployments.changeOf(sent && only(sent), only(next)),
    unchanged: tellingDeployments.unchanged,
    isOver: (state) => only(state).size === 0,
  };
}
