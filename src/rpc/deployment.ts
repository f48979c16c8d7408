import type { HandlerContext } from "@connectrpc/connect";
import type { Directory } from "../deployments/directory.ts";
import type { HostedDeployment } from "../deployments/hosted.ts";
import { problem } from "../errors.ts";

/** Names the deployment on hosts that do not: `organization/name`. */
const DEPLOYMENT_HEADER = "tessera-deployment";

/** The deployment that a request is for: by its field, else by its header, else by its host. */
export function deploymentOf(
  directory: Directory,
  named: string,
  ctx: HandlerContext,
): HostedDeployment {
  const header = ctx.requestHeader.get(DEPLOYMENT_HEADER) ?? "";
  if (named !== "" && header !== "" && named !== header) {
    throw problem(
      "REQUEST_INVALID",
      `the request names deployment ${JSON.stringify(named)}, its Tessera-Deployment header ${JSON.stringify(header)}: send one of them, or the same`,
      {
        violations: [
          { field: "deployment", description: "contradicts the Tessera-Deployment header" },
        ],
      },
    );
  }
  return directory.find(named || header);
}
