/**
 * The deployment of the property test that a platform knows: its webhook, whose outbox has each end of
 * a task once and nothing else, and pauses of its endpoints.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { Storage } from "../../src/storage/storage.ts";
import { isFinal } from "../../src/tasks/task.ts";
import { Platform } from "./accounts/fixtures.ts";
import { DEPLOYMENTS, endpoint, type Hosted, type Step, type World } from "./step.ts";

export const [TOLD = "", UNTOLD = ""] = DEPLOYMENTS;

const NAME = "told";

/** Pauses an endpoint, or resumes it. */
export const pauseSteps = fc.record({ endpoint, pauses: fc.boolean() }).map(
  ({ endpoint, pauses }): Step => ({
    check: () => true,
    async run({ model }, { storage: { hosting }, hosted: { platform, organizationId } }) {
      const change = { ...platform.deed(), organizationId, name: NAME, endpoint };
      const { outcome } = pauses
        ? await hosting.pauseEndpoint({ ...change, limit: 2 })
        : await hosting.resumeEndpoint(change);
      expect(outcome).toBe("changed");
      model.paused[pauses ? "add" : "delete"](`${TOLD}/${endpoint}`);
    },
    toString: () => `${pauses ? "pause" : "resume"} ${endpoint}`,
  }),
);

/** Has the first deployment's ends told, and no others. */
export async function tellEnds({ accounts, hosting }: Storage): Promise<Hosted> {
  const platform = new Platform(accounts);
  const { organizationId } = await platform.setUp();
  const deployment = { organizationId, deploymentId: TOLD, name: NAME };
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
  return { platform, organizationId };
}

/** Compares the outbox with the tasks of the model; those that were pruned have been told, too. */
export async function expectTold(
  { model, offered }: World,
  { hosting }: Storage,
  { organizationId }: Hosted,
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
