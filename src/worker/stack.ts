/**
 * Stack traces for the author of a service: without the frames of the platform, which say nothing
 * to them, and for a deployed one with the paths that its files have in the author's folder.
 */
import { dirname, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { deniedMessage } from "./permission-errors.ts";

/** The folders of the platform's own code, as opposed to the service's. */
export const OWN_FOLDERS: readonly string[] = ["collections", "protocol", "sdk", "worker"].map(
  (name) => fileURLToPath(new URL(`../${name}/`, import.meta.url)),
);

/** Stack of an error that a call reports, with those of its causes. */
const MAX_FAILURE_STACK_CHARACTERS = 16_384;
/** Errors of a chain that are shown. */
const MAX_CAUSES = 5;

let folder: string | undefined;

/** From now on, files are named by their paths from the folder of the service. */
export function nameFilesFrom(servicePath: string): void {
  folder = `${dirname(servicePath)}${sep}`;
}

/** The stack trace of an error, with those of its causes; undefined for what is no error. */
export function stackOf(thrown: unknown): string | undefined {
  const stacks: string[] = [];
  let current = thrown;
  while (current instanceof Error && stacks.length < MAX_CAUSES) {
    const denied = deniedMessage(current);
    const shown = authorsView(String(current.stack));
    stacks.push(denied === undefined ? shown : `${denied}\n${shown}`);
    current = current.cause;
  }
  return stacks.length > 0
    ? stacks.join("\ncaused by: ").slice(0, MAX_FAILURE_STACK_CHARACTERS)
    : undefined;
}

function authorsView(stack: string): string {
  const lines = stack
    .split("\n")
    .filter((line) => !/^\s+at /.test(line) || !OWN_FOLDERS.some((own) => line.includes(own)));
  const text = lines.join("\n");
  return folder === undefined
    ? text
    : text.replaceAll(`file://${folder}`, "").replaceAll(folder, "");
}
