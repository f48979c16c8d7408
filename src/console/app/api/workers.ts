/** How a worker on another machine joins a deployment. */
import type { DeploymentJson } from "../../../../gen/tessera/v1/deployment_pb.js";

/** The labels with which a machine runs every endpoint that workers which join may run. */
export function labelsOf({ endpoints = [] }: DeploymentJson): Readonly<Record<string, string>> {
  const joinable = endpoints.filter(({ place }) => place !== "WORKER_PLACE_LOCAL");
  return Object.assign({}, ...joinable.map(({ requires }) => requires));
}

/**
 * The command for the other machine. Without a token it is for those who have one; labels
 * that may have any value are left to be filled in.
 */
export function joinCommand(
  deployment: string,
  token = "TOKEN",
  requires: Readonly<Record<string, string>> = {},
): string {
  const labels = Object.entries(requires).map(
    ([name, value]) => ` --label ${name}=${value === "*" ? "VALUE" : value}`,
  );
  return `TESSERA_WORKER_TOKEN=${token} npx tessera-platform worker --join ${location.origin} --deployment ${deployment}${labels.join("")}`;
}
