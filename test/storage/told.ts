/** A webhook in the property test: the outbox has each end of a task once, and nothing else. */
import { expect } from "vitest";
import type { Storage } from "../../src/storage/storage.ts";
import { isFinal } from "../../src/tasks/task.ts";
import { Platform } from "./accounts/fixtures.ts";
import { DEPLOYMENTS, type World } from "./step.ts";

export const [TOLD = "", UNTOLD = ""] = DEPLOYMENTS;

/** Has the first deployment's ends told, and no others; answers whose it is. */
export async function tellEnds({ accounts, hosting }: Storage): Promise<string> {
  const platform = new Platform(accounts);
  const { organizationId } = await platform.setUp();
  const deployment = { organizationId, deploymentId: TOLD, name: "told" };
  const limit = 1;
  await accounts.createDeployment({
    ...platform.deed(),
    ...deployment,
    authorization: true,
    limit,
  });
  const { outcome } = await hosting.createWebhook({
    ...platform.deed(),
    ...{ ...deployment, name: "app", webhookId: "webhook", url: "https://example.com" },
    ...{ ends: ["success", "failure", "cancelled"], endpoint: "", namedOnly: false },
    ...{ sealed: "", limit },
  });
  expect(outcome).toBe("created");
  return organizationId;
}

/** Compares the outbox with the tasks of the model; those that were pruned have been told, too. */
export async function expectTold(
  { model, offered }: World,
  { hosting }: Storage,
  organizationId: string,
): Promise<void> {
  const list = (deploymentId: string) =>
    hosting.listDeliveries({ organizationId, deploymentId, limit: 10_000 });
  const { items } = await list(TOLD);
  const told = new Map(items.map(({ taskId, end }) => [taskId, end]));
  expect(told.size).toBe(items.length);
  for (const { deploymentId, taskId } of offered) {
    const task = model.find({ deploymentId, taskId })?.task;
    if (deploymentId === TOLD && task !== undefined) {
      expect({ taskId, told: told.get(taskId) }).toEqual({
        taskId,
        told: isFinal(task.status) ? task.status : undefined,
      });
    }
  }
  expect((await list(UNTOLD)).items).toEqual([]);
}
