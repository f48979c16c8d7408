/**
 * Texts of a deployment's workers, such as traces and messages of why they failed, as people of the
 * organization see them: files have the names that they have in the artifact, because where a node
 * keeps them is only its operator's concern.
 */
import { dirname, sep } from "node:path";
import type { ServiceCode } from "../pool/worker-options.ts";

/** A line of a secret with fewer characters is left in: it would be found everywhere. */
const MIN_HIDDEN_CHARACTERS = 4;

/** The text with `***` in place of the values of the deployment's secrets, and of each line of them. */
export function withoutSecrets(text: string, service: ServiceCode | undefined): string {
  const { secrets = [], env = {} } = service?.revision ?? {};
  return secrets
    .flatMap((name) => [env[name] ?? "", ...(env[name] ?? "").split("\n")])
    .map((value) => value.trim())
    .filter((value) => value.length >= MIN_HIDDEN_CHARACTERS)
    .sort((a, b) => b.length - a.length)
    .reduce((hidden, value) => hidden.replaceAll(value, "***"), text);
}

/** The text with its paths in the artifact; as it is for a service of `tessera serve`. */
export function withShownPaths(text: string, { servicePath, revision }: ServiceCode): string {
  return revision === undefined ? text : text.replaceAll(`${dirname(servicePath)}${sep}`, "");
}
