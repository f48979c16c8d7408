/**
 * The ports of accounts and hosting where tasks are in cells: home's, with what concerns the cells done
 * before or after.
 */
import { HOME_CELL } from "../../tasks/id.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { HostingStorage } from "../hosting/hosting.ts";
import type { EndedTask, TakenDelivery } from "../hosting/webhooks.ts";
import { prepared } from "../postgres/session.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import type { QueueCount } from "../queues.ts";
import { carryDeliveries, carryUsage } from "./carry.ts";
import type { Cells } from "./cells.ts";
import { summedCounts } from "./merge.ts";

type Method = (parameters: never) => Promise<unknown>;

/** Brings what has changed at home to the cells before it is answered. */
function bringing<Ask extends Method>(cells: Cells, ask: Ask): Ask {
  return (async (parameters: never) => {
    const answer = await ask(parameters);
    await cells.bring();
    return answer;
  }) as Ask;
}

/** Takes to home what cells have for it before home is asked. */
function after<Ask extends Method>(carry: () => Promise<unknown>, ask: Ask): Ask {
  return (async (parameters: never) => {
    await carry();
    return ask(parameters);
  }) as Ask;
}

export function cellsAccounts(cells: Cells): Accounts {
  const { accounts } = cells.home;
  const deleteDeployment: Accounts["deleteDeployment"] = async (parameters) => {
    const { organizationId, name, force = false } = parameters;
    const found = await accounts.findDeployment({ organizationId, name });
    if (found === undefined) {
      return { outcome: "not_found" };
    }
    const { deploymentId } = found;
    const count = async (storage: PostgresStorage, number: number): Promise<QueueCount[]> =>
      number === HOME_CELL ? [] : storage.countTasks({ deploymentId });
    const counts = summedCounts(await (force ? cells.each(count) : cells.all(count)));
    const elsewhere = {
      queued: counts.reduce((sum, one) => sum + one.queued, 0),
      running: counts.reduce((sum, one) => sum + one.running, 0),
    };
    return accounts.deleteDeployment({ ...parameters, elsewhere });
  };
  return { ...accounts, deleteDeployment: bringing(cells, deleteDeployment) };
}

const ENDS = prepared(
  "carried_ends",
  `SELECT deployment_id, delivery_id, ended FROM carried_ends
   JOIN json_to_recordset($1) AS given (deployment_id text, delivery_id text)
     USING (deployment_id, delivery_id)`,
);

const FORGET_ENDS = prepared(
  "forget_carried_ends",
  `DELETE FROM carried_ends WHERE NOT EXISTS (
     SELECT FROM webhook_deliveries AS d WHERE d.deployment_id = carried_ends.deployment_id
       AND d.delivery_id = carried_ends.delivery_id)`,
);

export function cellsHosting(cells: Cells): HostingStorage {
  const { home } = cells;
  const { hosting } = home;
  const deliveries = (): Promise<unknown> =>
    cells.each((storage, number) =>
      number === HOME_CELL
        ? Promise.resolve()
        : storage.beside((db) => home.beside((at) => carryDeliveries(db, at))),
    );
  const usage = (): Promise<unknown> =>
    cells.each((storage, number) =>
      number === HOME_CELL
        ? Promise.resolve()
        : storage.beside((db) => home.beside((at) => carryUsage(db, at, number))),
    );
  return {
    ...hosting,
    pauseEndpoint: bringing(cells, hosting.pauseEndpoint),
    resumeEndpoint: bringing(cells, hosting.resumeEndpoint),
    createWebhook: bringing(cells, hosting.createWebhook),
    updateWebhook: bringing(cells, hosting.updateWebhook),
    deleteWebhook: bringing(cells, hosting.deleteWebhook),
    listDeliveries: after(deliveries, hosting.listDeliveries),
    getDelivery: after(deliveries, hosting.getDelivery),
    readUsage: after(usage, hosting.readUsage),
    createBudget: after(usage, hosting.createBudget),
    countBudgets: after(usage, hosting.countBudgets),
    pruneUsage: after(usage, hosting.pruneUsage),
    async takeDeliveries(parameters) {
      await deliveries();
      return withEnds(cells, await hosting.takeDeliveries(parameters));
    },
    async recordDelivery(parameters) {
      const recorded = await hosting.recordDelivery(parameters);
      if (parameters.disable !== undefined) {
        await cells.bring();
      }
      return recorded;
    },
    async pruneDeliveries(parameters) {
      await deliveries();
      const pruned = await hosting.pruneDeliveries(parameters);
      await home.beside((db) => db.query(FORGET_ENDS));
      await cells.bring();
      return pruned;
    },
    async pruneHosting(parameters) {
      // The tombstones of deployments stay until all cells have deleted their tasks.
      if (!cells.isWhole) {
        return 0;
      }
      const left = await cells.all((storage) => storage.pruneDeleted(parameters));
      if (left.some((deleted) => deleted > 0)) {
        return 0;
      }
      const pruned = await hosting.pruneHosting(parameters);
      if (pruned > 0) {
        await cells.bring();
      }
      return pruned;
    },
  };
}

/** What JSON leaves out. */
const NOTHING_ENDED = {
  startedAtMs: undefined,
  retryOf: undefined,
  tags: undefined,
  failure: undefined,
  result: undefined,
  resultBytes: undefined,
};

/** Deliveries with their tasks, of those that cells have told of. */
async function withEnds(cells: Cells, taken: readonly TakenDelivery[]): Promise<TakenDelivery[]> {
  const lacking = taken.filter(({ task, body }) => task === undefined && body === undefined);
  if (lacking.length === 0) {
    return [...taken];
  }
  const keys = lacking.map(({ deploymentId, deliveryId }) => ({
    deployment_id: deploymentId,
    delivery_id: deliveryId,
  }));
  const rows = await cells.home.beside((db) => db.query(ENDS, JSON.stringify(keys)));
  const ends = new Map(
    rows.map((row) => [
      `${row.deployment_id}/${row.delivery_id}`,
      { ...NOTHING_ENDED, ...(JSON.parse(String(row.ended)) as EndedTask) },
    ]),
  );
  return taken.map((delivery) => {
    const ended = ends.get(`${delivery.deploymentId}/${delivery.deliveryId}`);
    return ended === undefined || delivery.body !== undefined
      ? delivery
      : { ...delivery, task: ended };
  });
}
