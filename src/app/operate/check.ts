/**
 * `tessera admin check`: whether this machine is fit for a node with these settings.
 * Every part is checked, also where one before it has failed. Nothing is changed.
 */

import { statfs } from "node:fs/promises";
import { loadKeys } from "../../auth/keys.ts";
import type { CheckConfig, DataSecrets } from "../../config/start.ts";
import { isPostgres } from "../../config/values.ts";
import { findProgram, findSandbox } from "../../pool/sandbox/sandbox.ts";
import { examineSqlite } from "../adapters.ts";
import { keysPath } from "../data-folder.ts";
import { checkPostgres } from "./check-postgres.ts";
import type { Check } from "./check-result.ts";
import { openAdministration } from "./open.ts";

type Found = Omit<Check, "name">;

/** Programs of the machine that some services need. */
const NEEDED_BY = {
  "system packages": ["apt-get", "dpkg-deb"],
  "container images": ["skopeo", "umoci"],
};

/** Below it, little is left for logs and artifacts. */
const MIN_FREE_DISK_BYTES = 1024 ** 3;

export async function checkMachine(
  config: CheckConfig,
  secrets: DataSecrets,
): Promise<readonly Check[]> {
  const checks: readonly (readonly [
    name: string,
    check: () => Promise<Found | readonly Check[]>,
  ])[] = [
    [
      "database",
      () =>
        isPostgres(secrets.database) ? checkPostgres(secrets) : checkDatabase(config, secrets),
    ],
    ["disk", () => checkDisk(config)],
    ["keys", async () => checkKeys(config, secrets)],
    ["sandbox", () => checkSandbox(config)],
    ["user", async () => checkUser()],
  ];
  const found: Check[] = [];
  for (const [name, check] of checks) {
    try {
      const checked = await check();
      found.push(...("result" in checked ? [{ name, ...checked }] : checked));
    } catch (err) {
      const detail = err instanceof Error ? err.message : String(err);
      found.push({ name, result: "failed", detail });
    }
  }
  return found;
}

async function checkDatabase(config: CheckConfig, secrets: DataSecrets): Promise<Found> {
  const fault = examineSqlite(secrets.database);
  if (fault !== undefined) {
    return { result: "failed", detail: `${secrets.database}: ${fault}` };
  }
  await using administration = await openAdministration(config, secrets, { create: false });
  const { length } = await administration.organizations();
  return { result: "ok", detail: `it answers, and is whole; organizations: ${length}` };
}

async function checkDisk({ dataFolder }: CheckConfig): Promise<Found> {
  const { bavail, bsize } = await statfs(dataFolder);
  const freeBytes = bavail * bsize;
  const free = `${(freeBytes / 1024 ** 3).toFixed(1)} GiB free in ${dataFolder}`;
  return freeBytes < MIN_FREE_DISK_BYTES
    ? { result: "warning", detail: `${free}: a node needs at least 1 GiB; make room` }
    : { result: "ok", detail: free };
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
    return {
      result: "ok",
      detail: `kernel: ${sandbox.bubblewrap} holds the workers; their memory: ${sandbox.memoryHeldBy}${refusedServices(searchPath)}`,
    };
  }
  const { shortfall = "the setting asks for no more" } = sandbox;
  return {
    result: "warning",
    detail: `permission: deploy only code that you trust; for the kernel's: ${shortfall}; memory: ${sandbox.memoryHeldBy}`,
  };
}

/** The services that this machine refuses for what is not installed, as a part of a sentence. */
function refusedServices(searchPath: string): string {
  return Object.entries(NEEDED_BY)
    .map(([what, programs]) => {
      const missing = programs.filter((name) => findProgram(name, searchPath) === undefined);
      return missing.length === 0
        ? ""
        : `; services with ${what} are refused: there is no ${missing.join(" and no ")}`;
    })
    .join("");
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
