import { type Client, Code, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import {
  DeploymentService,
  DeploymentStatus,
  type WatchDeploymentsResponse,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import {
  type Company,
  newCompany,
  newDeployment,
  newMember,
  newToken,
} from "../../server/rpc/world.ts";
import { artifactOf } from "../../storage/hosting/fixtures.ts";

describe.each(DATABASES)("deployments that are followed on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let client: Client<typeof DeploymentService>;
  let headers: Record<string, string>;
  let name: string;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
    client = clientOver(createGrpcTransport({ baseUrl: platform.origin }));
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    company = await newCompany(platform);
    ({ headers } = await newToken(platform, company));
    name = await newDeployment(platform, company);
  });

  const clientOver = (transport: Transport) => createClient(DeploymentService, transport);

  /** Follows deployments; `next` gives what changed, without the messages that say nothing. */
  function follow(request: object = {}, more: { headers?: Record<string, string> } = {}) {
    const leaving = new AbortController();
    const options = { headers, ...more, signal: leaving.signal };
    const asked = { organization: company.name, ...request };
    const messages = client.watchDeployments(asked, options)[Symbol.asyncIterator]();
    const next = async (): Promise<WatchDeploymentsResponse> => {
      for (;;) {
        const { done, value } = await messages.next();
        if (done) {
          throw new Error("the stream has ended");
        }
        if (value.deployments.length > 0 || value.removedDeploymentIds.length > 0) {
          return value;
        }
      }
    };
    return { next, messages, [Symbol.dispose]: () => leaving.abort() };
  }

  const idOf = async (deployment: string) =>
    (await client.getDeployment({ deployment }, { headers })).deploymentId;
  const remove = (deployment: string) => client.deleteDeployment({ deployment }, { headers });
  const namesOf = (message: WatchDeploymentsResponse) => message.deployments.map((one) => one.name);

  it("are told as they are, then each change, with their end", async () => {
    const other = await newDeployment(platform, company);
    const ids = { name: await idOf(name), other: await idOf(other) };
    using followed = follow();
    const asListed = await client.listDeployments({}, { headers });
    expect((await followed.next()).deployments).toEqual(asListed.deployments);
    await client.updateDeployment(
      { deployment: { name, settings: { maxWorkers: 7 } } },
      { headers },
    );
    expect(await followed.next()).toMatchObject({
      deployments: [{ name, deploymentId: ids.name, settings: { maxWorkers: 7 }, version: 2 }],
      removedDeploymentIds: [],
    });
    await remove(other);
    expect(await followed.next()).toMatchObject({
      deployments: [],
      removedDeploymentIds: [ids.other],
    });
    const third = await newDeployment(platform, company);
    expect(namesOf(await followed.next())).toEqual([third]);
  });

  it("are told with what nodes report of them, and lose it when the node has gone", async () => {
    const { organizationId } = company;
    const deploymentId = await idOf(name);
    const nodeId = platform.newId();
    const { hosting } = platform.storage;
    await hosting.createRevision({
      ...platform.deed(),
      ...{ organizationId, name, deploymentId, artifact: artifactOf() },
      ...{ limit: 10, maxSecrets: 1, keptRevisions: 1 },
    });
    using followed = follow({ deployment: name });
    expect(await followed.next()).toMatchObject({
      deployments: [{ targetRevision: 1, revision: 0, status: DeploymentStatus.STARTING }],
    });
    await hosting.beat({ nodeId, nowMs: platform.now(), ttlMs: 60_000 });
    const report = {
      organizationId,
      deploymentId,
      revision: 1,
      targetRevision: 1,
      version: 1,
      workers: 2,
    };
    const reports = [{ ...report, status: "degraded", reason: "worker 3 crashes" }] as const;
    await hosting.reportDeployments({ nowMs: Date.now(), nodeId, reports });
    expect(await followed.next()).toMatchObject({
      deployments: [
        {
          status: DeploymentStatus.DEGRADED,
          statusReason: "worker 3 crashes",
          workers: 2,
          nodes: 1,
          revision: 1,
          placements: [
            { node: nodeId, status: DeploymentStatus.DEGRADED, revision: 1, workers: 2 },
          ],
        },
      ],
    });
    await hosting.endNode({ nodeId });
    expect(await followed.next()).toMatchObject({
      deployments: [{ status: DeploymentStatus.STARTING, workers: 0, nodes: 0, placements: [] }],
    });
  });

  it("are followed one by one, until the one is deleted", async () => {
    const other = await newDeployment(platform, company);
    const deploymentId = await idOf(name);
    using followed = follow({ deployment: name });
    expect(namesOf(await followed.next())).toEqual([name]);
    await remove(other);
    await remove(name);
    await client.createDeployment({ name }, { headers });
    expect(await followed.next()).toMatchObject({
      deployments: [],
      removedDeploymentIds: [deploymentId],
    });
    expect(await followed.messages.next()).toMatchObject({ done: true });
  });

  it("are told as none where there are none", async () => {
    await remove(name);
    using followed = follow();
    expect(await followed.messages.next()).toMatchObject({
      value: { deployments: [], removedDeploymentIds: [] },
    });
  });

  it("are read at most once a second, however many follow all of them or one", async () => {
    const member = await newMember(platform, company);
    const spied = [
      vi.spyOn(platform.accounts, "listDeployments"),
      vi.spyOn(platform.storage.hosting, "describeDeployments"),
    ];
    const followers = Array.from({ length: 60 }, (_, index) =>
      follow(index % 2 === 0 ? {} : { deployment: name }, index % 3 === 0 ? member : {}),
    );
    await Promise.all(followers.map((one) => one.next()));
    const { organizationId } = company;
    const settings = { minWorkers: 0 };
    const deed = platform.deed();
    await platform.accounts.updateDeployment({ ...deed, organizationId, name, settings });
    await Promise.all(followers.map((one) => one.next()));
    for (const one of followers) {
      one[Symbol.dispose]();
    }
    for (const reads of spied) {
      expect(reads.mock.calls.length).toBeGreaterThan(0);
      expect(reads.mock.calls.length).toBeLessThanOrEqual(4);
      reads.mockRestore();
    }
  });

  it("are followed no longer by who has lost a token, a session or the membership", async () => {
    const { organizationId } = company;
    const [leaver, signedOut] = [
      await newMember(platform, company),
      await newMember(platform, company),
    ];
    const lost = await newToken(platform, company);
    const followers = [leaver, signedOut, lost].map((who) => follow({}, who));
    using stays = follow();
    await Promise.all([...followers, stays].map((one) => one.next()));
    const { accounts } = platform;
    await accounts.removeMember({
      ...platform.deed(),
      organizationId,
      userId: leaver.userId,
      left: false,
    });
    await platform.call(AuthService.method.signOut, {}, signedOut);
    await accounts.deleteToken({ ...platform.deed(), organizationId, tokenId: lost.tokenId });
    const ends = followers.map(async ({ messages }) => {
      while ((await messages.next()).done !== true) {
        // What came before.
      }
    });
    const outcomes = await Promise.allSettled(ends);
    expect(outcomes.map((each) => each.status === "rejected" && each.reason)).toMatchObject([
      { code: Code.PermissionDenied },
      { code: Code.Unauthenticated },
      { code: Code.Unauthenticated },
    ]);
    const third = await newDeployment(platform, company);
    expect(namesOf(await stays.next())).toEqual([third]);
  });

  it("are followed for as long as was asked", async () => {
    const followed = follow({ followFor: { seconds: 0n, nanos: 10_000_000 } });
    await followed.messages.next();
    expect(await followed.messages.next()).toMatchObject({ done: true });
  });

  it("are told over every protocol alike", async () => {
    const baseUrl = platform.origin;
    const transports = {
      Connect: createConnectTransport({ baseUrl, httpVersion: "1.1" }),
      gRPC: createGrpcTransport({ baseUrl }),
      "gRPC-Web": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    };
    for (const [protocol, transport] of Object.entries(transports)) {
      const found: string[] = [];
      const asked = { organization: company.name };
      for await (const message of clientOver(transport).watchDeployments(asked, { headers })) {
        found.push(...namesOf(message));
        break;
      }
      expect(found, protocol).toEqual([name]);
    }
    const url = `${baseUrl}/api/v1/deployments:watch?deployment=${name}&follow_for=0.01s`;
    const [lines, events] = await Promise.all(
      ["application/x-ndjson", "text/event-stream"].map(async (accept) =>
        (await fetch(url, { headers: { ...headers, accept } })).text(),
      ),
    );
    expect(JSON.parse(lines?.split("\n")[0] ?? "")).toMatchObject({
      deployments: [{ name, status: "stopped" }],
      removed_deployment_ids: [],
    });
    expect(events).toContain(`"name":"${name}"`);
  });

  it("are not followed with a request that breaks a rule", async () => {
    for (const request of [
      { deployment: "a".repeat(64) },
      { followFor: { seconds: 601n } },
      { followFor: { seconds: -1n } },
    ]) {
      await expect(follow(request).messages.next()).rejects.toMatchObject({ code: 3 });
    }
  });

  it("are not followed where there is none, nor by another organization", async () => {
    const other = await newCompany(platform);
    const stranger = await newToken(platform, other);
    await expect(follow({ deployment: "nothing" }).messages.next()).rejects.toThrow(
      'deployment "nothing" does not exist',
    );
    await expect(follow({}, { headers: stranger.headers }).messages.next()).rejects.toMatchObject({
      code: 5,
    });
    const asked = { organization: other.name, deployment: name };
    await expect(follow(asked, stranger).messages.next()).rejects.toMatchObject({ code: 5 });
  });
});
