/** Where workers of a deployment, or of one of its endpoints, may run, in words. */
import type {
  DeploymentEndpointJson,
  DeploymentSettingsJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";

const PLACES: Readonly<Record<string, string>> = {
  WORKER_PLACE_LOCAL: "the nodes only",
  WORKER_PLACE_REMOTE: "other machines, from which they join",
};

/** Empty for anywhere. */
export function placeOf({
  place,
  requires = {},
}: Pick<DeploymentSettingsJson & DeploymentEndpointJson, "place" | "requires">): string {
  const labels = Object.entries(requires).map((label) => label.join("="));
  const where = PLACES[place ?? ""] ?? (labels.length > 0 ? "the nodes and other machines" : "");
  return labels.length === 0 ? where : `${where}, with ${labels.join(", ")}`;
}
