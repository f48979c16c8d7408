import { type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  OrganizationTaskService,
  type WatchTasksResponse,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { TaskStatus } from "../../../gen/tessera/v1/task_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newToken } from "../../server/rpc/world.ts";
import { type App, CALLS, OrganizationTasks } from "./organization-tasks.ts";

describe.each(DATABASES)("tasks of an organization that are followed on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let tasks: OrganizationTasks;
  let app: App;
  let client: Client<typeof OrganizationTaskService>;
  let headers: Record<string, string>;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
    client = clientOver(createGrpcTransport({ baseUrl: platform.origin }));
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
    tasks = new OrganizationTasks(platform, company);
    app = await tasks.newApp();
    ({ headers } = await newToken(platform, company, { access: CALLS, allDeployments: true }));
  });

  const clientOver = (transport: Transport) => createClient(OrganizationTaskService, transport);

  /** Follows a page; `next` gives what changed, without the messages that say nothing. */
  function follow(request: object = {}, more: { headers?: Record<string, string> } = {}) {
    const leaving = new AbortController();
    const options = { headers, ...more, signal: leaving.signal };
    const asked = { organization: company.name, ...request };
    const messages = client.watchTasks(asked, options)[Symbol.asyncIterator]();
    const next = async (): Promise<WatchTasksResponse> => {
      for (;;) {
        const { done, value } = await messages.next();
        if (done) {
          throw new Error("the stream has ended");
        }
        if (value.tasks.length > 0 || value.removedTaskIds.length > 0) {
          return value;
        }
      }
    };
    return { next, messages, [Symbol.dispose]: () => leaving.abort() };
  }

  const cancel = (taskId: string) =>
    platform.storage.cancelTask({
      deploymentId: app.deploymentId,
      taskId,
      nowMs: platform.now(),
    });

  const idsOf = (message: WatchTasksResponse) => message.tasks.map(({ taskId }) => taskId);

  it("are told as they are, then what changes among them", async () => {
    const [a = "", b = ""] = await tasks.queue(app, app);
    using followed = follow();
    expect(idsOf(await followed.next())).toEqual([b, a]);
    await cancel(a);
    const changed = await followed.next();
    expect(changed).toMatchObject({
      tasks: [
        {
          taskId: a,
          status: TaskStatus.CANCELLED,
          deployment: `${company.name}/${app.name}`,
        },
      ],
      removedTaskIds: [],
    });
    const [c = ""] = await tasks.queue(app);
    expect(idsOf(await followed.next())).toEqual([c]);
  });

  it("leave the page when they no longer match, and when newer ones take their place", async () => {
    const [a = "", b = "", c = ""] = await tasks.queue(app, app, app);
    using queued = follow({ statuses: [TaskStatus.QUEUED] });
    using two = follow({ pageSize: 2 });
    expect(idsOf(await queued.next())).toEqual([c, b, a]);
    const page = await two.next();
    expect(idsOf(page)).toEqual([c, b]);
    await cancel(c);
    expect(await queued.next()).toMatchObject({ tasks: [], removedTaskIds: [c] });
    expect(idsOf(await two.next())).toEqual([c]);
    const [d = ""] = await tasks.queue({ ...app, taskId: platform.newId() });
    expect(await two.next()).toMatchObject({ tasks: [{ taskId: d }], removedTaskIds: [b] });
    const { tasks: rest } = await client.listOrganizationTasks(
      { organization: company.name, pageToken: page.nextPageToken },
      { headers },
    );
    expect(rest.map(({ taskId }) => taskId)).toEqual([a]);
  });

  it("are those of a token's own deployments, beside a member who sees all", async () => {
    const other = await tasks.newApp();
    const [a = "", b = ""] = await tasks.queue(app, other);
    const own = await newToken(platform, company, { access: CALLS, deployments: [app.name] });
    using all = follow();
    using mine = follow({}, { headers: own.headers });
    expect(idsOf(await all.next())).toEqual([b, a]);
    expect(idsOf(await mine.next())).toEqual([a]);
  });

  it("are read at most once a second, however many follow the same page", async () => {
    await tasks.queue(app);
    const searches = vi.spyOn(platform.storage, "searchTasks");
    const followers = Array.from({ length: 50 }, () => follow());
    await Promise.all(followers.map((one) => one.next()));
    await tasks.queue({ ...app, endpoint: "other" });
    await Promise.all(followers.map((one) => one.next()));
    for (const one of followers) {
      one[Symbol.dispose]();
    }
    expect(searches.mock.calls.length).toBeLessThanOrEqual(4);
    searches.mockRestore();
  });

  it("are followed for as long as was asked", async () => {
    const followed = follow({ followFor: { seconds: 0n, nanos: 10_000_000 } });
    await followed.messages.next();
    expect(await followed.messages.next()).toMatchObject({ done: true });
  });

  it("are told over every protocol alike", async () => {
    const [a] = await tasks.queue(app);
    const baseUrl = platform.origin;
    const transports = {
      Connect: createConnectTransport({ baseUrl, httpVersion: "1.1" }),
      gRPC: createGrpcTransport({ baseUrl }),
      "gRPC-Web": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    };
    for (const [name, transport] of Object.entries(transports)) {
      const found: string[] = [];
      const asked = { organization: company.name };
      for await (const { tasks } of clientOver(transport).watchTasks(asked, { headers })) {
        found.push(...tasks.map(({ taskId }) => taskId));
        break;
      }
      expect(found, name).toEqual([a]);
    }
    const url = `${baseUrl}/api/v1/organizations/${company.name}/tasks:watch?statuses=queued&follow_for=0.01s`;
    const [lines, events] = await Promise.all(
      ["application/x-ndjson", "text/event-stream"].map(async (accept) =>
        (await fetch(url, { headers: { ...headers, accept } })).text(),
      ),
    );
    expect(JSON.parse(lines?.split("\n")[0] ?? "")).toMatchObject({
      tasks: [{ task_id: a, status: "queued" }],
    });
    expect(events).toContain(`"task_id":"${a}"`);
  });

  it("are not followed with a request that breaks a rule", async () => {
    for (const request of [
      { statuses: [99] },
      { errorContains: "a".repeat(201) },
      { pageSize: -1 },
      { followFor: { seconds: 601n } },
    ]) {
      await expect(follow(request).messages.next()).rejects.toMatchObject({ code: 3 });
    }
  });

  it("are not followed for a deployment that is not there, or is not the caller's", async () => {
    const other = await newCompany(platform);
    await expect(follow({ deployments: ["nothing"] }).messages.next()).rejects.toThrow(/nothing/);
    await expect(follow({ organization: other.name }).messages.next()).rejects.toMatchObject({
      code: 5,
    });
  });
});
