import { create } from "@bufbuild/protobuf";
import { createClient, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  DeleteTasksRequestSchema,
  OrganizationTaskService,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskStatus } from "../../../gen/tessera/v1/task_pb.js";
import { bulkHandlers } from "../../../src/api/task/bulk.ts";
import { setPrincipal, type TokenPrincipal } from "../../../src/auth/principal.ts";
import type { CallTarget, Located } from "../../../src/deployments/directory.ts";
import { problem } from "../../../src/errors.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newToken } from "../../server/rpc/world.ts";
import { type App, CALLS, OrganizationTasks } from "./organization-tasks.ts";

const { cancelTasks, deleteTasks, retryTasks } = OrganizationTaskService.method;

/** A token of the organization that calls all of its deployments. */
function callerOf({ organizationId, name }: Company): TokenPrincipal {
  return {
    ...{
      kind: "token",
      tokenId: "t",
      tokenKind: "organization",
      tokenName: "calls",
      generation: 1,
    },
    ...{ organizationId, organization: name, access: CALLS, user: undefined },
    ...{ allDeployments: true, deployments: [], allowedNetworks: [] },
    expiresAtMs: Number.POSITIVE_INFINITY,
  };
}

describe.each(DATABASES)("many tasks of an organization on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let tasks: OrganizationTasks;
  let first: App;
  let second: App;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
    tasks = new OrganizationTasks(platform, company);
    [first, second] = [await tasks.newApp(), await tasks.newApp()];
  });

  const ask = (
    method: typeof cancelTasks | typeof deleteTasks | typeof retryTasks,
    request: object,
    headers: Record<string, string> = company.admin.headers,
  ) => platform.call(method, { organization: company.name, ...request }, { headers });

  async function count(...asked: Parameters<typeof ask>): Promise<unknown> {
    const [method, request, headers] = asked;
    const { outcome, body } = await ask(method, { ...request, dryRun: true }, headers);
    expect(outcome).toBe("ok");
    expect(body.skipped).toEqual([]);
    return body.changed ?? 0;
  }

  it("are counted and left alone by a dry run", async () => {
    const named = { ...second, key: "ada", tags: ["nightly"] };
    await tasks.queue(first, named, { ...second, endpoint: "other" });
    await tasks.fail(first, "Disk full");
    for (const method of [cancelTasks, deleteTasks]) {
      expect(await count(method, { filter: { tags: ["nightly"] } })).toBe(1);
      expect(await count(method, { filter: { tags: ["night"] } })).toBe(0);
      expect(await count(method, { filter: { key: "ada" } })).toBe(1);
      expect(await count(method, { filter: { key: "ad" } })).toBe(0);
    }
    expect(await count(retryTasks, { filter: { tags: ["nightly"] } })).toBe(0);
    expect(await count(cancelTasks, { filter: { all: true } })).toBe(3);
    expect(await count(cancelTasks, { filter: { endpoint: "other" } })).toBe(1);
    expect(await count(cancelTasks, { filter: { deployments: [second.name] } })).toBe(2);
    expect(await count(retryTasks, { filter: { all: true } })).toBe(1);
    expect(await count(retryTasks, { filter: { errorContains: "disk" } })).toBe(1);
    expect(await count(retryTasks, { filter: { errorContains: "net" } })).toBe(0);
    expect(await count(retryTasks, { filter: { statuses: ["TASK_STATUS_SUCCESS"] } })).toBe(0);
    expect(await count(cancelTasks, { filter: { all: true } })).toBe(3);
    expect(await count(deleteTasks, { filter: { all: true } })).toBe(4);
    expect(await count(deleteTasks, { filter: { errorContains: "disk" } })).toBe(1);
    expect(await count(deleteTasks, { filter: { statuses: ["TASK_STATUS_QUEUED"] } })).toBe(3);
  });

  it("are not chosen by the page token of another method", async () => {
    await tasks.queue(first, first);
    const { body } = await platform.call(
      OrganizationTaskService.method.listOrganizationTasks,
      { organization: company.name, pageSize: 1 },
      { headers: company.admin.headers },
    );
    expect(body.nextPageToken).toMatch(/./);
    const foreign = { filter: { all: true }, pageToken: body.nextPageToken };
    expect(await ask(cancelTasks, foreign)).toMatchObject({
      status: 400,
      outcome: "REQUEST_INVALID",
    });
  });

  it("are those of a token's own deployments", async () => {
    await tasks.queue(first, second);
    const { headers } = await newToken(platform, company, {
      access: CALLS,
      deployments: [first.name],
    });
    expect(await count(cancelTasks, { filter: { all: true } }, headers)).toBe(1);
    const named = { filter: { deployments: [second.name] } };
    expect(await ask(cancelTasks, named, headers)).toMatchObject({
      outcome: "DEPLOYMENT_NOT_FOUND",
    });
  });

  it("are skipped with the reason that a call of their deployment would have", async () => {
    await tasks.queue(first, second);
    await tasks.fail(first, "no");
    for (const [method, number] of [
      [cancelTasks, 2],
      [retryTasks, 1],
      [deleteTasks, 3],
    ] as const) {
      const { body } = await ask(method, { filter: { all: true } });
      expect(body.changed ?? 0).toBe(0);
      expect(body.skipped).toEqual([
        { reason: "DEPLOYMENT_STOPPED", count: number, message: "the deployment is stopped" },
      ]);
    }
  });

  it("are in the audit log as far as they were deleted, when a fault ends the call", async () => {
    const ours = { ...first, key: "ada" };
    await tasks.queue(ours, ours, { ...second, key: "ada" });
    const { deploymentId } = first;
    const { organizationId, name: organization } = company;
    const deleteAll = (taskIds: readonly string[]) =>
      platform.storage.deleteTasks({ deploymentId, taskIds, nowMs: platform.now() });
    const located = {
      facts: { ...first, organizationId, organization, authorization: true },
      deployment: () => ({ queue: { amending: { deleteAll } } }),
    } as unknown as Located;
    const find = async ({ named }: CallTarget): Promise<Located> => {
      if (named !== `${organization}/${first.name}`) {
        throw problem("SHUTTING_DOWN", "the node stops");
      }
      return located;
    };
    const { accounts, newId } = platform;
    const handlers = bulkHandlers({
      ...{ accounts, tasks: platform.storage, directory: { find }, newId },
      now: () => platform.now(),
    });
    const filter = { deployments: [first.name, second.name], scheduled: false, key: "ada" };
    const request = create(DeleteTasksRequestSchema, { organization, filter });
    const values = setPrincipal(createContextValues(), callerOf(company));
    const ctx = { values, signal: new AbortController().signal } as HandlerContext;
    const deleting = handlers.deleteTasks(request, ctx);
    await expect(deleting).rejects.toMatchObject({ reason: "SHUTTING_DOWN" });
    const { items } = await accounts.listAuditEvents({ organizationId, limit: 10 });
    expect(items.filter(({ action }) => action === "task.delete_all")).toMatchObject([
      {
        subject: organization,
        details: {
          ...{ tasks: "2", deployments: `${first.name} ${second.name}` },
          ...{ key: "given", scheduled: "false" },
        },
      },
    ]);
  });

  it.each([
    [cancelTasks, {}],
    [retryTasks, {}],
    [cancelTasks, { filter: {} }],
    [retryTasks, { filter: { all: false } }],
    [deleteTasks, { filter: {} }],
    [cancelTasks, { filter: { statuses: ["TASK_STATUS_FAILURE"] } }],
    [cancelTasks, { filter: { errorContains: "x" } }],
    [retryTasks, { filter: { statuses: ["TASK_STATUS_RUNNING"] } }],
    [retryTasks, { filter: { all: true }, idempotencyKey: "a".repeat(201) }],
    [retryTasks, { filter: { all: true }, pageToken: "nonsense" }],
  ])("are not changed: %# %j", async (method, request) => {
    expect(await ask(method, request)).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
  });

  it("are counted over REST and gRPC alike", async () => {
    await tasks.queue(first, second);
    const { headers } = await newToken(platform, company, { access: CALLS, allDeployments: true });
    const path = `/api/v1/organizations/${company.name}/tasks:cancel`;
    const filter = { deployments: [first.name, second.name], statuses: ["queued", "running"] };
    const { status, body } = await platform.rest(
      "POST",
      path,
      { filter, dry_run: true },
      { headers },
    );
    expect([status, body]).toEqual([200, { changed: 2, skipped: [] }]);
    const client = createClient(
      OrganizationTaskService,
      createGrpcTransport({ baseUrl: platform.origin }),
    );
    const counted = await client.cancelTasks(
      {
        organization: company.name,
        filter: { statuses: [TaskStatus.QUEUED] },
        dryRun: true,
      },
      { headers },
    );
    expect(counted.changed).toBe(2);
  });
});
