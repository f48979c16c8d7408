/**
 * Texts of a deployment's workers, such as traces and messages of why they failed, as people of the
 * organization see them: files have the names that they have in the artifact, because where a node
 * keeps them is only its operator's concern.
 */
import { dirname, sep } from "node:path";
import type { ServiceCode } from "../pool/worker-options.ts";

/** The text with its paths in the artifact; as it is for a service of `tessera serve`. */
export function withShownPaths(text: string, { servicePath, revision }: ServiceCode): string {
  return revision === undefined ? text : text.replaceAll(`${dirname(servicePath)}${sep}`, "");
}
