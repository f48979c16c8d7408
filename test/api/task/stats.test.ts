import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OrganizationTaskService } from "../../../gen/tessera/v1/organization_task_pb.js";
import { Clock, MeasuringNode, TICK_MS } from "../../metrics/history/node.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newMember, newToken } from "../../server/rpc/world.ts";
import { type App, CALLS, OrganizationTasks } from "./organization-tasks.ts";

const { getTaskStats: method } = OrganizationTaskService.method;

/** Counts the calls of a method of a port. */
function countCalls<Name extends string>(
  port: { [name in Name]: (parameters: never) => Promise<unknown> },
  name: Name,
  calls: { count: number },
): void {
  const call = port[name].bind(port);
  port[name] = (parameters: never) => {
    calls.count += 1;
    return call(parameters);
  };
}

describe.each(DATABASES)("statistics of tasks on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let tasks: OrganizationTasks;
  let first: App;
  let second: App;
  const queries = { count: 0 };

  beforeAll(async () => {
    const storage = await open();
    countCalls(storage, "queueStates", queries);
    countCalls(storage.accounts, "listDeployments", queries);
    countCalls(storage.metrics, "readHistory", queries);
    platform = await TestPlatform.start(storage);
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
    tasks = new OrganizationTasks(platform, company);
    const apps = [await tasks.newApp(), await tasks.newApp()];
    [first, second] = apps.sort((one, other) => (one.name < other.name ? -1 : 1)) as [App, App];
  });

  const ask = (request: object = {}, headers: Record<string, string> = company.admin.headers) =>
    platform.call(method, { organization: company.name, ...request }, { headers });

  /** Has a node count what `ran` tells it, in the ten seconds that end now. */
  async function measured(ran: (node: MeasuringNode) => void): Promise<void> {
    const clock = new Clock(Math.ceil(platform.now() / TICK_MS) * TICK_MS);
    const { organizationId } = company;
    const node = new MeasuringNode(platform.storage.metrics, { clock, organizationId });
    ran(node);
    await node.recorder.record(true);
    expect(node.errors).toEqual([]);
    platform.advance(TICK_MS + 2_000);
  }

  it("are zeros where there is no task", async () => {
    const { body } = await ask();
    expect(body.total).toEqual({});
    expect(body.deployments ?? []).toEqual([]);
    const lengthMs = Date.parse(body.endTime) - Date.parse(body.startTime);
    expect(lengthMs).toBeGreaterThanOrEqual(3_600_000);
    expect(lengthMs).toBeLessThan(3_660_000);
  });

  it("have what waits and runs now, and what ended in the window", async () => {
    await tasks.queue(first, first, { ...second, endpoint: "other" });
    await measured((node) => {
      const counted = node.deployment(first.deploymentId);
      for (let task = 0; task < 60; task += 1) {
        counted.taskStarted("work", 0.3);
        counted.taskFinished("work", task < 6 ? "failure" : "success", 20);
      }
      node.deployment(second.deploymentId).taskFinished("late", "cancelled", undefined);
    });
    const { body } = await ask({}, (await newMember(platform, company)).headers);
    expect(body.deployments.map((one: { deployment: string }) => one.deployment)).toEqual([
      first.name,
      second.name,
    ]);
    const [one, other] = body.deployments;
    const minutes = (Date.parse(body.endTime) - Date.parse(body.startTime)) / 60_000;
    const { finishedPerMinute, queueTime, runTime, oldestQueuedAge, ...counts } = one.total;
    expect(counts).toEqual({ queued: 2, succeeded: 54, failed: 6 });
    expect(finishedPerMinute).toBeCloseTo(60 / minutes);
    expect(queueTime).toEqual({ p50: "0.300s", p95: "0.480s", p99: "0.496s" });
    expect(runTime.p50).toBe("20s");
    expect(Number.parseFloat(oldestQueuedAge)).toBeGreaterThan(60);
    expect(one.endpoints).toEqual([{ endpoint: "work", stats: one.total }]);
    expect(other.endpoints).toMatchObject([
      { endpoint: "late", stats: { cancelled: 1 } },
      { endpoint: "other", stats: { queued: 1 } },
    ]);
    expect(other.endpoints[0].stats.runTime).toBeUndefined();
    expect(body.total).toMatchObject({ queued: 3, succeeded: 54, failed: 6, cancelled: 1 });
  });

  it("have the calls of each deployment, and those that failed, also where there is no task", async () => {
    await measured((node) => {
      const counted = node.deployment(first.deploymentId);
      for (const code of ["ok", "ok", "internal"]) {
        counted.requestFinished("read", { protocol: "http", seconds: 0.02, code });
      }
      counted.requestFinished("list", { protocol: "http", seconds: 4, code: "ok" });
      node.deployment(second.deploymentId).taskFinished("work", "success", 1);
    });
    const { body } = await ask();
    const callTime = { p50: "0.020s", p95: "4.500s", p99: "4.900s" };
    expect(body).toMatchObject({ calls: 4, failedCalls: 1, callTime });
    expect(body.deployments).toMatchObject([
      { deployment: first.name, calls: 4, failedCalls: 1, callTime },
      { deployment: second.name, total: { succeeded: 1 } },
    ]);
    expect(body.deployments[0].endpoints ?? []).toEqual([]);
    expect(body.deployments[0].endpointCalls).toEqual([
      {
        ...{ endpoint: "list", calls: 1, failures: [] },
        callTime: { p50: "3.750s", p95: "4.875s", p99: "4.975s" },
      },
      {
        ...{ endpoint: "read", calls: 3, failedCalls: 1 },
        callTime: { p50: "0.018s", p95: "0.024s", p99: "0.025s" },
        failures: [{ code: "internal", calls: 1 }],
      },
    ]);
    expect(body.deployments[1]).not.toHaveProperty("calls");
    expect(body.deployments[1].endpointCalls ?? []).toEqual([]);
  });

  it("are of the window that is asked for", async () => {
    await measured((node) =>
      node.deployment(first.deploymentId).taskFinished("work", "success", 1),
    );
    const succeeded = async (window: string) => (await ask({ window })).body.total.succeeded ?? 0;
    expect([await succeeded("60s"), await succeeded("86400s")]).toEqual([1, 1]);
    platform.advance(600_000);
    expect([await succeeded("60s"), await succeeded("7200s")]).toEqual([0, 1]);
  });

  it("are of its own deployments for a token, also their total", async () => {
    await tasks.queue(first, second);
    await measured((node) => {
      node.deployment(first.deploymentId).taskFinished("work", "success", 1);
      node.deployment(second.deploymentId).taskFinished("work", "success", 1);
    });
    const { headers } = await newToken(platform, company, {
      access: CALLS,
      deployments: [first.name],
    });
    const { body } = await ask({}, headers);
    expect(body.deployments).toHaveLength(1);
    expect(body.total).toMatchObject({ queued: 1, succeeded: 1 });
    const refused = await ask({ deployments: [second.name] }, headers);
    expect(refused).toMatchObject({ status: 404, outcome: "DEPLOYMENT_NOT_FOUND" });
  });

  it("are of the deployments that are named, also of one that is new", async () => {
    await tasks.queue(first, second);
    const { body } = await ask({ deployments: [second.name, second.name] });
    expect(body.deployments).toMatchObject([{ deployment: second.name, total: { queued: 1 } }]);
    const added = await tasks.newApp();
    await tasks.queue(added);
    expect((await ask({ deployments: [added.name] })).body.total.queued).toBe(1);
    const unknown = await ask({ deployments: ["not-there"] });
    expect(unknown).toMatchObject({ status: 404, outcome: "DEPLOYMENT_NOT_FOUND" });
  });

  it.each([{ window: "59s" }, { window: "86401s" }, { window: "-60s" }, { deployments: [""] }])(
    "are refused for %j",
    async (request) => {
      expect(await ask(request)).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
    },
  );

  it("cost the database a few queries however many people ask", async () => {
    await tasks.queue(first, second);
    await ask();
    platform.advance(TICK_MS);
    queries.count = 0;
    await Promise.all(Array.from({ length: 100 }, () => ask()));
    // Deployments and queues, and rows of minutes and of ten seconds: 4, and again for who comes after.
    expect(queries.count).toBeGreaterThanOrEqual(3);
    expect(queries.count).toBeLessThan(30);
  });

  it("are the same over REST, Connect, gRPC and gRPC-Web", async () => {
    await tasks.queue(first, second);
    const { headers } = await newToken(platform, company, { access: CALLS, allDeployments: true });
    const path = `/api/v1/organizations/${company.name}/task-stats?window=7200s&deployments=${first.name}`;
    const { body } = await platform.rest("GET", path, undefined, { headers });
    expect(body.total.queued).toBe(1);
    expect(body.total.oldest_queued_age).toMatch(/^6\d/);
    const { origin: baseUrl } = platform;
    const sessionManager = new Http2SessionManager(baseUrl);
    for (const transport of [
      createConnectTransport({ baseUrl, httpVersion: "1.1" }),
      createGrpcTransport({ baseUrl, sessionManager }),
      createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    ]) {
      const answer = await createClient(OrganizationTaskService, transport).getTaskStats(
        {
          organization: company.name,
          deployments: [first.name],
          window: { seconds: 7_200n, nanos: 0 },
        },
        { headers },
      );
      expect(answer.total).toMatchObject({ queued: 1, running: 0 });
      expect(answer.deployments.map(({ deployment }) => deployment)).toEqual([first.name]);
    }
    sessionManager.abort();
  });
});
