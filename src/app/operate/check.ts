/**
 * `tessera admin check`: whether this machine is fit for a node with these settings.
 * Every part is checked, also where one before it has failed. Nothing is changed.
 */
import { loadKeys } from "../../auth/keys.ts";
import type { CheckConfig, DataSecrets } from "../../config/config.ts";
import { findSandbox } from "../../pool/sandbox/sandbox.ts";
import { keysPath } from "../data-folder.ts";
import { openAdministration } from "./open.ts";

/** `warning`: a node runs, but is weaker than it could be. */
export type CheckResult = "ok" | "warning" | "failed";

export interface Check {
  /** What was checked. */
  readonly name: string;
  readonly result: CheckResult;
  /** What was found, and what to do where it is not `ok`. */
  readonly detail: string;
}

type Found = Omit<Check, "name">;

export async function checkMachine(
  config: CheckConfig,
  secrets: DataSecrets,
): Promise<readonly Check[]> {
  const checks: readonly (readonly [name: string, check: () => Promise<Found>])[] = [
    ["database", () => checkDatabase(config, secrets)],
    ["keys", async () => checkKeys(config, secrets)],
    ["sandbox", () => checkSandbox(config)],
    ["user", async () => checkUser()],
  ];
  const found: Check[] = [];
  for (const [name, check] of checks) {
    try {
      found.push({ name, ...(await check()) });
    } catch (err) {
      const detail = err instanceof Error ? err.message : String(err);
      found.push({ name, result: "failed", detail });
    }
  }
  return found;
}

async function checkDatabase(config: CheckConfig, secrets: DataSecrets): Promise<Found> {
  await using administration = await openAdministration(config, secrets, { create: false });
  const { length } = await administration.organizations();
  return { result: "ok", detail: `it answers; organizations: ${length}` };
}

async function checkKeys({ dataFolder }: CheckConfig, { keys }: DataSecrets): Promise<Found> {
  if (keys !== undefined) {
    loadKeys({ env: keys });
    return { result: "ok", detail: "read from TESSERA_KEYS" };
  }
  const path = keysPath(dataFolder);
  loadKeys({ path, create: false });
  return { result: "ok", detail: `read from ${path}` };
}

async function checkSandbox({ sandbox: mode, searchPath }: CheckConfig): Promise<Found> {
  const sandbox = await findSandbox(mode, searchPath);
  if (sandbox.level === "kernel") {
    return { result: "ok", detail: `kernel: ${sandbox.bubblewrap} holds the workers` };
  }
  const { shortfall = "the setting asks for no more" } = sandbox;
  return {
    result: "warning",
    detail: `permission: deploy only code that you trust; for the kernel's: ${shortfall}`,
  };
}

async function checkUser(): Promise<Found> {
  return process.getuid?.() === 0
    ? {
        result: "warning",
        detail:
          "root: what breaks out of a worker has the whole machine; run the node as a user of its own",
      }
    : { result: "ok", detail: `user ${process.getuid?.() ?? "unknown"}, not root` };
}
