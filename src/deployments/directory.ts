import { problem } from "../errors.ts";
import type { HostedDeployment } from "./hosted.ts";

/** Which deployment a request is for. */
export interface Directory {
  /**
   * The deployment of this name (`organization/name`); the empty name is the
   * one that the request's host or header names. Throws DEPLOYMENT_NOT_FOUND.
   */
  find(name: string): HostedDeployment;
}

/** A node that serves one deployment, whatever host it is asked on. */
export function singleDeployment(deployment: HostedDeployment): Directory {
  return {
    find(name) {
      if (name === "" || name === deployment.name) {
        return deployment;
      }
      throw problem(
        "DEPLOYMENT_NOT_FOUND",
        `deployment ${JSON.stringify(name.slice(0, 127))} does not exist; this server has ${deployment.name}`,
      );
    },
  };
}
