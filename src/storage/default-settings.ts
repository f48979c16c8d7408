/** What both databases and the checks of settings take for granted of a new deployment. */

import type { DeploymentSettings } from "./accounts/organizations.ts";

/** The settings of a new deployment. */
export const DEFAULT_SETTINGS: DeploymentSettings = {
  minWorkers: 1,
  maxWorkers: 2,
  memoryMib: 512,
  cpu: 1,
  env: {},
  network: { access: "open", hosts: [] },
  queueTimeMs: 1_000,
  retentionMs: 0,
  requires: {},
  place: "any",
};
