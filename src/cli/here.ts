/** What `tessera.yaml` in this folder says to commands that name no deployment. */
import { readFile, stat } from "node:fs/promises";
import { usageError } from "./failure.ts";
import { plain } from "./plain.ts";

export const FILE_NAME = "tessera.yaml";

/** File `tessera.yaml` of a service. */
export const MAX_TESSERA_YAML_BYTES = 1024 * 1024;

/** The argument of commands about a deployment that only read. */
export const NAME_OR_HERE = [
  "[name]",
  "the deployment's name (default: the name in ./tessera.yaml)",
] as const;

/** The deployment that is named, or else that of this folder. Throws a usage error without any. */
export async function nameOrHere(given: string | undefined): Promise<string> {
  const name = given ?? (await deploymentHere());
  if (name === undefined) {
    throw usageError(
      "it is not said which deployment: give its name",
      "tessera deployment list shows those that there are",
    );
  }
  return name;
}

/** The name in the file; undefined where the file has none. The file as a whole is read by a deploy. */
export async function deploymentHere(): Promise<string | undefined> {
  const { size } = await stat(FILE_NAME).catch(() => ({ size: 0 }));
  if (size === 0 || size > MAX_TESSERA_YAML_BYTES) {
    return undefined;
  }
  const { parse } = await import("yaml");
  try {
    const { name } = (parse(await readFile(FILE_NAME, "utf8")) ?? {}) as { name?: unknown };
    return typeof name === "string" ? name : undefined;
  } catch (err) {
    const reason = err instanceof Error ? err.message.split("\n", 1)[0] : "";
    throw usageError(`${FILE_NAME} cannot be read: ${plain(String(reason))}`);
  }
}
