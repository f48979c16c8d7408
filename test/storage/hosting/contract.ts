/**
 * The contract of the hosting port, for any database: every method and every
 * promise of `src/storage/hosting`. Each test gets a database of its own.
 */
import { describe, test } from "vitest";
import type { ContractOptions, CreateDatabase } from "../contract.ts";
import { alertsContract } from "./contract/alerts.ts";
import { budgetsContract } from "./contract/budgets.ts";
import { confirmedSecretsContract } from "./contract/confirmed-secrets.ts";
import { deletedContract } from "./contract/deleted.ts";
import { filesContract } from "./contract/files.ts";
import { logsContract } from "./contract/logs.ts";
import { machinesContract } from "./contract/machines.ts";
import { manifestsContract } from "./contract/manifests.ts";
import { modelsContract } from "./contract/models.ts";
import { nodesContract } from "./contract/nodes.ts";
import { pausesContract } from "./contract/pauses.ts";
import { racesContract } from "./contract/races.ts";
import { revisionsContract } from "./contract/revisions.ts";
import { schedulesContract } from "./contract/schedules.ts";
import { secretsContract } from "./contract/secrets.ts";
import { usageContract } from "./contract/usage.ts";
import { webhooksContract } from "./contract/webhooks.ts";
import { HostingPlatform } from "./fixtures.ts";

/** Declares a test on a platform with one organization, `acme`. */
export type It = (name: string, run: (platform: HostingPlatform) => Promise<void>) => void;

export function hostingContract(
  name: string,
  createDatabase: CreateDatabase,
  { skip = [] }: ContractOptions = {},
): void {
  const it: It = (testName, run) => {
    const skipped = skip.find(({ tests }) => tests.includes(testName));
    if (skipped) {
      test.skip(`${testName} (skipped: ${skipped.reason})`);
      return;
    }
    test(testName, async () => {
      await using database = await createDatabase();
      await using storage = await database.open();
      await run(await HostingPlatform.on(storage));
    });
  };
  describe(`hosting contract on ${name}`, () => {
    describe("files", () => filesContract(it));
    describe("revisions", () => revisionsContract(it));
    describe("secrets", () => secretsContract(it));
    describe("secrets of a revision", () => confirmedSecretsContract(it));
    describe("schedules", () => schedulesContract(it));
    describe("paused endpoints", () => pausesContract(it));
    describe("nodes", () => nodesContract(it));
    describe("machines", () => machinesContract(it));
    describe("logs", () => logsContract(it));
    describe("manifests", () => manifestsContract(it));
    describe("models", () => modelsContract(it));
    describe("webhooks", () => webhooksContract(it));
    describe("alerts", () => alertsContract(it));
    describe("usage", () => usageContract(it));
    describe("budgets", () => budgetsContract(it));
    describe("deleted deployments", () => deletedContract(it));
    describe("races", () => racesContract(it));
  });
}
