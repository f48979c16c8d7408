import { type Client, createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OrganizationTaskService } from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskStatus } from "../../../gen/tessera/v1/task_pb.js";
import { timeOfTaskId } from "../../../src/tasks/id.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newMember, newToken } from "../../server/rpc/world.ts";
import { type App, CALLS, OrganizationTasks } from "./organization-tasks.ts";

const { listOrganizationTasks: method, countTasks } = OrganizationTaskService.method;
describe.each(DATABASES)("tasks of an organization on $database", ({ open }) => {
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

  const ask = (request: object = {}, headers: Record<string, string> = company.admin.headers) =>
    platform.call(method, { organization: company.name, ...request }, { headers });

  async function idsOf(...asked: Parameters<typeof ask>): Promise<string[]> {
    const { outcome, body } = await ask(...asked);
    expect(outcome).toBe("ok");
    return (body.tasks ?? []).map(({ taskId }: { taskId: string }) => taskId);
  }

  it("are listed to every member, newest first, with the deployment that each is of", async () => {
    const [a, b, c] = await tasks.queue(first, second, first);
    const other = new OrganizationTasks(platform, await newCompany(platform));
    await other.queue(await other.newApp());
    const { headers } = await newMember(platform, company);
    const { body } = await ask({}, headers);
    expect(body.tasks).toMatchObject([
      { taskId: c, deployment: `${company.name}/${first.name}`, status: "TASK_STATUS_QUEUED" },
      { taskId: b, deployment: `${company.name}/${second.name}` },
      { taskId: a, deployment: `${company.name}/${first.name}` },
    ]);
  });

  it("are found by one text, and at once by a whole id", async () => {
    const json = '{"city":"Nürnberg"}';
    const [a, b, c] = await tasks.queue(
      first,
      { ...second, arguments: { json, files: [] } },
      { ...first, endpoint: "resize" },
    );
    const failed = await tasks.fail(second, "disk full");
    expect(await idsOf({ text: "NÜRN" })).toEqual([]);
    expect(await idsOf({ text: "nürnBERG" })).toEqual([b]);
    expect(await idsOf({ text: "size" })).toEqual([c]);
    expect(await idsOf({ text: "DISK" })).toEqual([failed]);
    expect(await idsOf({ text: a })).toEqual([a]);
    expect(await idsOf({ text: a?.slice(-12) })).toEqual([a]);
    expect(await idsOf({ text: a, deployments: [second.name] })).toEqual([]);
    expect(await idsOf({ text: a, statuses: ["TASK_STATUS_FAILURE"] })).toEqual([]);
    const { body } = await ask({ text: "city" });
    expect(body.tasks).toMatchObject([{ taskId: b, argumentsPreview: json }]);
  });

  it("are found by the task that they retry, and as scheduled ones", async () => {
    const [a = "", b] = await tasks.queue(first, {
      ...first,
      retryOf: "0190a1b2-0000-7000-8000-000000000000",
      runAtMs: platform.now() + 60_000,
    });
    expect(await idsOf({ retryOf: "0190a1b2-0000-7000-8000-000000000000" })).toEqual([b]);
    expect(await idsOf({ retryOf: a })).toEqual([]);
    expect(await idsOf({ scheduled: true })).toEqual([b]);
    expect(await idsOf({ scheduled: false })).toEqual([a]);
    expect(await idsOf({ scheduled: true, statuses: ["TASK_STATUS_RUNNING"] })).toEqual([]);
  });

  it("are counted by state, those of a token's deployments alone", async () => {
    await tasks.queue(first, second, { ...first, runAtMs: platform.now() + 60_000 });
    await tasks.fail(first, "disk full");
    const count = async (
      request: object,
      headers: Record<string, string> = company.admin.headers,
    ) =>
      (await platform.call(countTasks, { organization: company.name, ...request }, { headers }))
        .body;
    expect(await count({})).toEqual({
      scheduled: { count: 1 },
      queued: { count: 2 },
      running: {},
      success: {},
      failure: { count: 1 },
      cancelled: {},
    });
    expect(await count({ text: "full" })).toMatchObject({ queued: {}, failure: { count: 1 } });
    const { headers } = await newToken(platform, company, {
      access: CALLS,
      deployments: [second.name],
    });
    expect(await count({}, headers)).toMatchObject({ queued: { count: 1 }, failure: {} });
    const refused = { organization: company.name, deployments: [first.name] };
    expect(await platform.call(countTasks, refused, { headers })).toMatchObject({
      outcome: "DEPLOYMENT_NOT_FOUND",
    });
  });

  it("are none where there is no deployment", async () => {
    const other = await newCompany(platform);
    const organization = other.name;
    expect(await idsOf({ organization }, other.admin.headers)).toEqual([]);
  });

  it("are listed to a token of its own deployments only", async () => {
    const [a] = await tasks.queue(first, second);
    const { headers } = await newToken(platform, company, {
      access: CALLS,
      deployments: [first.name],
    });
    expect(await idsOf({}, headers)).toEqual([a]);
    expect(await idsOf({ deployments: [first.name] }, headers)).toEqual([a]);
    const refused = await ask({ deployments: [second.name] }, headers);
    expect(refused).toMatchObject({ status: 404, outcome: "DEPLOYMENT_NOT_FOUND" });
  });

  it("are of the deployments that are named, of which each has to exist", async () => {
    const [, b] = await tasks.queue(first, second);
    expect(await idsOf({ deployments: [second.name] })).toEqual([b]);
    const both = await idsOf({ deployments: [second.name, first.name, second.name] });
    expect(both).toHaveLength(2);
    const unknown = await ask({ deployments: ["not-there"] });
    expect(unknown).toMatchObject({ status: 404, outcome: "DEPLOYMENT_NOT_FOUND" });
  });

  it("are filtered by states, endpoint, time and the text of the error", async () => {
    const failed = await tasks.fail(first, "Disk full");
    const [a, b = "", c = ""] = await tasks.queue(first, { ...second, endpoint: "other" }, second);
    expect(await idsOf({ statuses: ["TASK_STATUS_FAILURE", "TASK_STATUS_CANCELLED"] })).toEqual([
      failed,
    ]);
    expect(await idsOf({ statuses: ["TASK_STATUS_QUEUED"] })).toEqual([c, b, a]);
    expect(await idsOf({ endpoint: "other" })).toEqual([b]);
    expect(await idsOf({ errorContains: "disk" })).toEqual([failed]);
    const [createdFrom, createdBefore] = [b, c].map((id) => new Date(timeOfTaskId(id)));
    expect(await idsOf({ createdFrom, createdBefore })).toEqual([b]);
  });

  it("are found by their tags", async () => {
    const [tagged, both] = await tasks.queue(
      { ...first, tags: ["customer:42"] },
      { ...second, tags: ["nightly", "customer:42"] },
      second,
    );
    expect(await idsOf({ tags: ["customer:42"] })).toEqual([both, tagged]);
    expect(await idsOf({ tags: ["customer:42", "nightly"] })).toEqual([both]);
    expect((await ask({ tags: ["nightly"] })).body.tasks).toMatchObject([
      { tags: ["nightly", "customer:42"] },
    ]);
    expect(await ask({ tags: [""] })).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
  });

  it("come in pages, whose tokens are of one filter", async () => {
    const ids = await tasks.queue(first, second, first, second, first);
    const found: string[] = [];
    let pageToken = "";
    do {
      const { body } = await ask({ pageSize: 2, pageToken });
      found.push(...(body.tasks ?? []).map((task: { taskId: string }) => task.taskId));
      pageToken = body.nextPageToken ?? "";
    } while (pageToken !== "");
    expect(found).toEqual(ids.toReversed());
    const { body } = await ask({ pageSize: 2 });
    const other = await ask({ pageToken: body.nextPageToken, endpoint: "work" });
    expect(other).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
  });

  it("are left out after their retention", async () => {
    await tasks.fail(first, "no");
    platform.advance(700_000);
    expect(await idsOf()).toEqual([]);
  });

  it.each([
    { statuses: ["TASK_STATUS_UNSPECIFIED"] },
    { errorContains: "a".repeat(201) },
    { deployments: [""] },
    { pageSize: -1 },
    { pageToken: "nonsense" },
  ])("are not listed for %j", async (request) => {
    expect(await ask(request)).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
  });

  it("are the same over REST, Connect and gRPC", async () => {
    const ids = await tasks.queue(first, second);
    const { headers } = await newToken(platform, company, {
      access: CALLS,
      allDeployments: true,
    });
    const query = `statuses=queued&statuses=running&deployments=${first.name}&deployments=${second.name}`;
    const path = `/api/v1/organizations/${company.name}/tasks?${query}`;
    const { body } = await platform.rest("GET", path, undefined, { headers });
    expect(body.tasks.map((task: { task_id: string }) => task.task_id)).toEqual(ids.toReversed());
    const { origin: baseUrl } = platform;
    const sessionManager = new Http2SessionManager(baseUrl);
    for (const transport of [
      createConnectTransport({ baseUrl, httpVersion: "1.1" }),
      createGrpcTransport({ baseUrl, sessionManager }),
    ]) {
      const client: Client<typeof OrganizationTaskService> = createClient(
        OrganizationTaskService,
        transport,
      );
      const { tasks } = await client.listOrganizationTasks(
        {
          organization: company.name,
          deployments: [first.name, second.name],
          statuses: [TaskStatus.QUEUED, TaskStatus.RUNNING],
        },
        { headers },
      );
      expect(tasks.map(({ taskId }) => taskId)).toEqual(ids.toReversed());
    }
    sessionManager.abort();
  });
});
