/** Deployments with their state on all nodes, as messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DeploymentSchema } from "../../../gen/tessera/v1/deployment_pb.js";
import type { DeploymentRecord } from "../../storage/accounts/organizations.ts";
import type { NodeStorage } from "../../storage/hosting/nodes.ts";
import { toDeploymentMessage } from "./messages.ts";

export interface DescribeOptions {
  readonly hosting: Pick<NodeStorage, "describeDeployments">;
  readonly now: () => number;
  /** The URL of a deployment. */
  readonly urlOf: (deployment: DeploymentRecord) => string;
}

/** Describes deployments of one organization, in their order. */
export type Describe = (
  organizationId: string,
  records: readonly DeploymentRecord[],
) => Promise<MessageInitShape<typeof DeploymentSchema>[]>;

export function describer({ hosting, now, urlOf }: DescribeOptions): Describe {
  return async (organizationId, deployments) => {
    const nowMs = now();
    const states = await hosting.describeDeployments({ organizationId, deployments, nowMs });
    return deployments.flatMap((record, index) => {
      const state = states[index];
      return state === undefined ? [] : [toDeploymentMessage(record, state, urlOf(record))];
    });
  };
}
