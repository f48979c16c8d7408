/** The launcher with a platform's own API, on a cluster whose answers the test gives. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { type LauncherOptions, runLauncher } from "../../../src/agent/launcher/launcher.ts";
import type {
  ClusterMachine,
  MachineOrder,
  Machines,
} from "../../../src/agent/launcher/machines.ts";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import {
  type Company,
  type MadeToken,
  newCompany,
  newDeployment,
  newToken,
} from "../../server/rpc/world.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const LAUNCH = {
  ...NO_ACCESS,
  launch: true,
};
const POLL = { timeout: 30_000 };

class Cluster implements Machines {
  readonly orders: MachineOrder[] = [];
  isAway = false;
  /** How long a start takes, by the platform's clock. */
  startMs = 0;

  async start(order: MachineOrder): Promise<void> {
    this.orders.push(order);
    platform.advance(this.startMs);
  }

  async stop(): Promise<void> {}

  async list(): Promise<readonly ClusterMachine[]> {
    if (this.isAway) {
      throw new Error("the controller is down");
    }
    return this.orders.map(({ id, deploymentId }) => ({
      ...{ id, deploymentId, startedAtMs: Date.now() },
      ...{ isWaiting: false, isOver: false, reason: "" },
    }));
  }
}

let platform: TestPlatform;
let company: Company;
let name: string;
let deploymentId: string;
let token: MadeToken;
beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
});
afterAll(() => platform[Symbol.asyncDispose]());
beforeEach(async () => {
  company = await newCompany(platform);
  name = await newDeployment(platform, company);
  const { organizationId } = company;
  const found = await platform.accounts.findDeployment({ organizationId, name });
  deploymentId = found?.deploymentId ?? "";
  token = await newToken(platform, company, { access: LAUNCH, deployments: [name] });
});

/** A node wants so many workers; these machines have joined it. */
async function wants(wanted: number, machines: readonly string[] = []) {
  const { hosting, accounts } = platform.storage;
  const { organizationId } = company;
  const key = { organizationId, deploymentId };
  await accounts.updateDeployment({
    ...platform.deed(),
    ...{ organizationId, name, settings: { maxWorkers: 100 } },
  });
  const record = await accounts.findDeployment({ organizationId, name });
  expect(record?.desiredState).toBe("running");
  const node = { nodeId: "a", nowMs: platform.now() };
  await hosting.beat({ ...node, ttlMs: 600_000 });
  const facts = { revision: 1, targetRevision: 1, version: 1, workers: 0 };
  const report = { ...key, status: "waiting" as const, reason: "", ...facts };
  await hosting.reportDeployments({ ...node, reports: [report] });
  const launched = machines.map((machine) => ({ machine, ready: true }));
  const reports = [{ ...key, workers: [], omitted: 0, wanted, launched }];
  await hosting.reportWorkers({ nodeId: "a", reports });
}

class TestLauncher implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly done: Promise<unknown>;
  readonly #leave = new AbortController();

  constructor(more: Partial<LauncherOptions> = {}, cluster = new Cluster()) {
    this.cluster = cluster;
    this.done = runLauncher(
      {
        ...{ url: platform.origin, token: token.value, on: "exec", hostname: "here" },
        ...{ maxMachines: 10, workers: 1, labels: { gpu: "h200" } },
        ...{ lifetimeMs: 3_600_000, joinWithinMs: 900_000 },
        machines: this.cluster,
        log: { debug() {}, info() {}, warn() {}, error() {} },
        now: Date.now,
        newId: () => crypto.randomUUID(),
        onStarted() {},
        intervalMs: 100,
        ...more,
      },
      this.#leave.signal,
    );
    this.done.catch(() => {
      // Who waits for it sees it.
    });
  }

  leave(): Promise<unknown> {
    this.#leave.abort();
    return this.done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave().catch(() => {});
  }
}

const launches = async () => {
  const { hosting } = platform.storage;
  const { organizationId } = company;
  return hosting.listLaunches({ organizationId, nowMs: platform.now() });
};

it("starts what is wanted, each machine with a token and an end of its own, and tells of it", async () => {
  await wants(2);
  await using launcher = new TestLauncher();
  const { orders } = launcher.cluster;
  await expect.poll(() => orders.length, POLL).toBe(2);
  const [first, second] = orders;
  expect(first?.env).toMatchObject({
    TESSERA_JOIN: platform.origin,
    TESSERA_DEPLOYMENT: name,
    TESSERA_WORKERS: "1",
    TESSERA_LABELS: "gpu=h200",
    TESSERA_UNTIL: new Date(first?.endsAtMs ?? 0).toISOString(),
  });
  expect(first?.env.TESSERA_WORKER_TOKEN).toMatch(/^tsrl_/);
  expect(second?.env.TESSERA_WORKER_TOKEN).not.toBe(first?.env.TESSERA_WORKER_TOKEN);
  await expect.poll(launches, POLL).toMatchObject([{ machines: 2, starting: 2, joined: 0 }]);
  await wants(
    2,
    orders.map(({ id }) => id),
  );
  await expect.poll(launches, POLL).toMatchObject([{ machines: 2, starting: 0, joined: 2 }]);
  expect(await launcher.leave()).toEqual({ machines: 2 });
  expect(await launches()).toEqual([]);
});

it("keeps its deployments through starts that last longer than a report counts", async () => {
  await wants(4);
  const cluster = new Cluster();
  cluster.startMs = 20_000;
  await using launcher = new TestLauncher({ now: () => platform.now() }, cluster);
  await expect.poll(() => launcher.cluster.orders.length, POLL).toBe(4);
  await expect
    .poll(launches, POLL)
    .toMatchObject([{ machines: 4, starting: 4, failed: 0, reason: "" }]);
});

it("waits while another launcher has the deployment, and takes over when that ends", async () => {
  await using first = new TestLauncher();
  await expect.poll(launches, POLL).toHaveLength(1);
  await using second = new TestLauncher();
  await wants(1);
  await expect.poll(() => first.cluster.orders.length, POLL).toBe(1);
  expect(second.cluster.orders).toEqual([]);
  const machines = first.cluster.orders.map(({ id }) => id);
  await first.leave();
  await wants(2, machines);
  await expect.poll(() => second.cluster.orders.length, POLL).toBe(1);
  await expect.poll(launches, POLL).toMatchObject([{ starting: 1, joined: 1 }]);
});

it("ends with its token", async () => {
  await using launcher = new TestLauncher();
  await expect.poll(launches, POLL).toHaveLength(1);
  const { headers } = company.admin;
  const { tokenId } = token;
  await platform.call(TokenService.method.deleteToken, { tokenId }, { headers });
  await expect(launcher.done).rejects.toMatchObject({ name: "LauncherRefused" });
});

it("ends when its token expires", async () => {
  const expiresAtMs = platform.now() + 600_000;
  token = await newToken(platform, company, { access: LAUNCH, deployments: [name], expiresAtMs });
  await using launcher = new TestLauncher();
  await expect.poll(launches, POLL).toHaveLength(1);
  platform.advance(600_000);
  await expect(launcher.done).rejects.toMatchObject({ name: "LauncherRefused" });
});

it("is refused with a token of another access", async () => {
  token = await newToken(platform, company);
  await using launcher = new TestLauncher();
  await expect(launcher.done).rejects.toThrow(/launch access/);
});

it("starts and stops nothing while the cluster lists nothing, and says why", async () => {
  await wants(1);
  await using launcher = new TestLauncher();
  await expect.poll(() => launcher.cluster.orders.length, POLL).toBe(1);
  launcher.cluster.isAway = true;
  await wants(3);
  await expect
    .poll(async () => (await launches())[0]?.reason, POLL)
    .toBe("the machines cannot be listed: the controller is down");
  expect(launcher.cluster.orders).toHaveLength(1);
  launcher.cluster.isAway = false;
  await expect.poll(() => launcher.cluster.orders.length, POLL).toBe(3);
  await expect.poll(async () => (await launches())[0]?.reason, POLL).toBe("");
});

it("waits for a platform that is away", async () => {
  const said: string[] = [];
  const log = {
    debug() {},
    info() {},
    error() {},
    warn: (_: object, text: string) => said.push(text),
  };
  await using launcher = new TestLauncher({ url: "http://127.0.0.1:9", log });
  await expect.poll(() => said, POLL).toContain("the launcher waits for the platform");
  expect(await launcher.leave()).toEqual({ machines: 0 });
});
