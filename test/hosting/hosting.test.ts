/** The deployments of a node, of which some sleep. */
import { afterEach, expect, it, vi } from "vitest";
import { Hosting } from "../../src/hosting/hosting.ts";
import { LastServed } from "../../src/hosting/last-served.ts";
import { Maintenance } from "../../src/queue/maintenance/maintenance.ts";
import type { Hint } from "../../src/storage/notifier.ts";
import type { Storage } from "../../src/storage/storage.ts";
import type { Task } from "../../src/tasks/task.ts";
import { TestFolder } from "../storage/sqlite/databases.ts";

type Options = ConstructorParameters<typeof Hosting>[0];

afterEach(() => void vi.useRealTimers());

/** A node whose deployments, named by their ids, all sleep; `storage` has their tasks. */
function sleeping(ids: readonly string[], { folder, storage }: Sleeping) {
  const warned: unknown[] = [];
  const hints: Hint[] = [];
  const log = {
    debug() {},
    info() {},
    warn: (fields: object) => void warned.push(fields),
    error() {},
  };
  const items = ids.map((deploymentId) => ({
    ...{ deploymentId, organizationId: "o", organization: "acme", name: deploymentId, version: 1 },
    ...{ desiredState: "running", targetRevision: 1, digest: "a".repeat(64), manifest: {} },
    settings: { env: {}, requires: {}, network: { access: "open", hosts: [] }, minWorkers: 0 },
  }));
  const maintenance = new Maintenance({
    storage: storage as Storage,
    notifier: {
      isUp: true,
      start() {},
      publish: (hint) => void hints.push(hint),
      subscribe: () => () => {},
      async [Symbol.asyncDispose]() {},
    },
    log,
    now: Date.now,
  });
  const woken: string[] = [];
  const hosting = new Hosting({
    hosting: {
      listHosted: async () => ({ items, next: undefined }),
      reportDeployments: async () => {},
    },
    nodes: { nodeId: "n", count: 1, shareOf: (workers: number) => workers },
    artifacts: { keep: () => () => {} },
    served: new LastServed(folder.path),
    manifests: {
      maySleep: () => true,
      read: ({ deploymentId }: { readonly deploymentId: string }) => {
        woken.push(deploymentId);
        return new Promise(() => {});
      },
    },
    common: { storage, maintenance, now: Date.now },
    caches: { keepOnly: async () => {} },
    changes: { listen: () => () => {} },
    shared: false,
    log,
  } as unknown as Options);
  return { hosting, maintenance, woken, warned, hints };
}

interface Sleeping {
  readonly folder: TestFolder;
  readonly storage: Partial<Storage>;
}

it("starts though one that sleeps cannot be woken in time, and the tasks of another not be counted", async () => {
  using folder = new TestFolder();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { hosting, woken, warned } = sleeping(["busy", "unread", "idle"], {
    folder,
    storage: {
      countTasks: async ({ deploymentId }) => {
        if (deploymentId === "unread") {
          throw new Error("the database is away");
        }
        const queued = deploymentId === "busy" ? 1 : 0;
        return [{ endpoint: "run", queued, running: 0 }];
      },
    },
  });
  const started = hosting.start();
  await vi.waitFor(() => expect(woken).toEqual(["busy"]));
  expect(warned).toEqual([expect.objectContaining({ deploymentId: "unread" })]);
  await vi.advanceTimersByTimeAsync(15_000);
  await started;
});

it("tells other nodes what has become of the tasks of what sleeps, and wakes for those to be run", async () => {
  using folder = new TestFolder();
  const tasks = [
    { taskId: "1", deploymentId: "expiring", endpoint: "run", status: "failure" },
    { taskId: "2", deploymentId: "rescued", endpoint: "run", status: "queued" },
  ] as unknown as Task[];
  const { hosting, maintenance, woken, hints } = sleeping(["expiring", "rescued"], {
    folder,
    storage: {
      countTasks: async () => [],
      survey: async () => ({
        ...{ expiredLeases: true, overdueTasks: true },
        ...{ due: [], suspects: [], schedules: [] },
      }),
      rescueExpired: async () => tasks.slice(1),
      expireTasks: async () => tasks.slice(0, 1),
      listAborts: async () => [],
    } as Partial<Storage>,
  });
  await hosting.start();
  await maintenance.look();
  await expect.poll(() => hints.length).toBeGreaterThanOrEqual(3);
  expect(hints).toContainEqual({ kind: "changed", taskId: "1" });
  expect(hints).toContainEqual({ kind: "changed", taskId: "2" });
  expect(hints).toContainEqual({ kind: "queued", deploymentId: "rescued", endpoint: "run" });
  expect(woken).toEqual(["rescued"]);
});
