/** The deployments of a node, of which some sleep. */
import { afterEach, expect, it, vi } from "vitest";
import { Hosting } from "../../src/hosting/hosting.ts";
import { LastServed } from "../../src/hosting/last-served.ts";
import { Maintenance } from "../../src/queue/maintenance/maintenance.ts";
import type { Hint } from "../../src/storage/notifier.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import type { Task } from "../../src/tasks/task.ts";
import { TestFolder } from "../storage/sqlite/databases.ts";

type Options = ConstructorParameters<typeof Hosting>[0];

afterEach(() => void vi.useRealTimers());

/** A node whose deployments, named by their ids, all sleep; `storage` has their tasks. */
function sleeping(ids: readonly string[], { folder, storage, others }: Sleeping) {
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
    pausedEndpoints: [],
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
      listWorkers: async () => others,
    },
    routing: {
      find: ({ named }: { readonly named: string }) =>
        items.find(({ deploymentId }) => deploymentId === named),
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
    shared: others !== undefined,
    log,
  } as unknown as Options);
  return { hosting, maintenance, woken, warned, hints };
}

interface Sleeping {
  readonly folder: TestFolder;
  readonly storage: Partial<Storage>;
  /** What nodes report of their workers. Default: this one is alone. */
  readonly others?: readonly object[];
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

/** Of what sleeps, or is woken by the question. */
const AT_REST = ["NO_WORKER_YET", "WORKER_STARTING"];

it.each([
  ["they have ready workers", 2, ["ON_OTHER_NODES"]],
  ["they have none", 0, AT_REST],
])(
  "tells why a task is queued of what does not serve here, by other nodes where %s",
  async (_, ready, codes) => {
    using folder = new TestFolder();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const task = { taskId: createIdSource()(), endpoint: "work", status: "queued", runAtMs: 0 };
    const read = { ...task, returned: [], expiresAtMs: Number.MAX_SAFE_INTEGER } as unknown as Task;
    const worker = { ready: true };
    const { hosting } = sleeping(["busy"], {
      folder,
      storage: {
        getTask: async ({ taskId }) => (taskId === task.taskId ? read : undefined),
        findDeleted: async () => undefined,
      },
      others: [
        { nodeId: "n", workers: [worker] },
        { nodeId: "other", workers: [{ ready: false }, ...Array(ready).fill(worker)] },
      ],
    });
    const started = hosting.start();
    await vi.advanceTimersByTimeAsync(60_000);
    await started;
    const finding = hosting.find({ named: "busy", header: "", host: "" }, { kind: "anonymous" });
    await vi.advanceTimersByTimeAsync(60_000);
    const located = await finding;
    expect(() => located.deployment()).toThrow("is starting");
    const stored = located.stored?.();
    expect(stored?.name).toBe("acme/busy");
    const found = await stored?.tasks.get({ taskId: task.taskId });
    expect(found).toBe(read);
    await expect(stored?.tasks.get({ taskId: createIdSource()() })).rejects.toThrow(
      "does not exist",
    );
    expect(codes).toContain((await located.whyQueued(read)).code);
    // Of lists, by what this node knows.
    expect(AT_REST).toContain(hosting.whyQueued("busy", read)?.code);
    expect(hosting.whyQueued("unknown", read)).toBeUndefined();
  },
);
