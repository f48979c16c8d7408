import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OperatorService } from "../../gen/tessera/v1/operator_pb.js";
import { operatorService } from "../../src/api/operator.ts";
import { version } from "../../src/version.ts";
import { DATABASES } from "../server/rpc/databases.ts";
import { TestPlatform } from "../server/rpc/platform.ts";
import {
  type Company,
  newCompany,
  newDeployment,
  newMember,
  type Person,
} from "../server/rpc/world.ts";
import { newSchema } from "../storage/postgres/databases.ts";

const operator = OperatorService.method;

const FACTS = {
  version: "1.2.3",
  sandbox: "kernel",
  workers: 3,
  maxWorkers: 8,
  memoryBytes: 2 ** 33,
  maxMemoryBytes: 2 ** 34,
  waiting: 1,
  freeDiskBytes: 2 ** 35,
  diskBytes: 2 ** 36,
  draining: true,
};

describe.each(DATABASES)("OperatorService on $database", ({ database, open }) => {
  let platform: TestPlatform;
  let company: Company;
  let person: Person;

  const setOperator = (isOperator: boolean) =>
    platform.accounts.setOperator({
      ...platform.deed(),
      userId: person.userId,
      operator: isOperator,
    });

  beforeAll(async () => {
    // It lists nodes, which are of the whole database.
    platform = await TestPlatform.start(await open(newSchema()));
    company = await newCompany(platform);
    person = await newMember(platform, await newCompany(platform));
    await newDeployment(platform, company);
    await setOperator(true);
    const node = { nowMs: platform.now(), ttlMs: 60_000 };
    const { hosting } = platform.storage;
    await hosting.beat({ ...node, nodeId: "new", url: "http://10.0.0.1:3000", facts: FACTS });
    await hosting.beat({ ...node, nodeId: "old" });
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  const call = (method: Parameters<TestPlatform["call"]>[0], message: object = {}) =>
    platform.call(method, message, { headers: person.headers });

  it("tells an operator the version and the database", async () => {
    const { body } = await call(operator.getPlatform);
    expect(body).toMatchObject({ version, database: { kind: database } });
    expect(Number(body.database.sizeBytes)).toBeGreaterThan(50_000);
  });

  it("tells an operator what is set, of secrets that they are set, and the cells", async () => {
    const { accounts, hosting } = platform.storage;
    const facts = { version: "17.6", sizeBytes: 1, schemaVersion: 1, queued: 12, running: 3 };
    const database = { kind: "Postgres", ...facts } as const;
    const cells = [{ name: "a", up: false }];
    const about = { name: "TESSERA_PORT", summary: "The port.", value: "3000" };
    const { getPlatform } = operatorService({
      accounts,
      hosting,
      tasks: { describeDatabase: () => Promise.resolve({ ...database, cells }) },
      shown: [
        { ...about, isSet: false, isSecret: false },
        { ...about, name: "TESSERA_KEYS", value: "", isSet: true, isSecret: true },
      ],
      now: platform.now,
      newId: platform.newId,
    });
    expect(await getPlatform?.({} as never, {} as never)).toMatchObject({
      database: { cells, queuedTasks: 12n, runningTasks: 3n },
      settings: [
        { ...about, set: false, secret: false },
        { name: "TESSERA_KEYS", value: "", set: true, secret: true },
      ],
    });
    expect((await call(operator.getPlatform)).body.settings ?? []).toEqual([]);
  });

  it("lists the nodes that live, also those of a version that says nothing of itself", async () => {
    const { body } = await call(operator.listNodes);
    expect(body.nodes).toMatchObject([
      {
        nodeId: "new",
        url: "http://10.0.0.1:3000",
        facts: { version: "1.2.3", workers: 3, memoryBytes: String(2 ** 33), draining: true },
      },
      { nodeId: "old" },
    ]);
    expect(body.nodes[1]).not.toHaveProperty("facts");
  });

  it("reads the nodes once for all operators who look within a second", async () => {
    const tasks = platform.storage;
    const { accounts, hosting } = tasks;
    let nowMs = platform.now();
    let reads = 0;
    const counting = {
      ...hosting,
      listNodes: (query: { nowMs: number }) => {
        reads += 1;
        return hosting.listNodes(query);
      },
    };
    const { listNodes } = operatorService({
      accounts,
      hosting: counting,
      tasks,
      now: () => nowMs,
      newId: platform.newId,
    });
    const look = () => listNodes?.({} as never, {} as never);
    await Promise.all([look(), look(), look()]);
    nowMs += 999;
    await look();
    expect(reads).toBe(1);
    nowMs += 1;
    await look();
    expect(reads).toBe(2);
  });

  it("lists organizations that the operator does not belong to, page by page", async () => {
    const listed: { readonly name: string }[] = [];
    let pageToken = "";
    do {
      const { body } = await call(operator.listAllOrganizations, { pageSize: 1, pageToken });
      listed.push(...body.organizations);
      pageToken = body.nextPageToken ?? "";
    } while (pageToken !== "");
    const names = listed.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)].sort());
    expect(listed.find(({ name }) => name === company.name)).toMatchObject({
      members: 1,
      deployments: 1,
      invitationLinksEnabled: true,
    });
    const other = await call(operator.listAllOrganizations, { pageToken: "AAAA" });
    expect(other).toMatchObject({ status: 400, outcome: "REQUEST_INVALID" });
  });

  it.each([
    ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
    ["gRPC", (baseUrl: string) => createGrpcTransport({ baseUrl })],
    ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ])("answers over %s", async (_, transport) => {
    const client = createClient(OperatorService, transport(platform.origin));
    const { nodes } = await client.listNodes({}, { headers: person.headers });
    expect(nodes.map(({ facts }) => facts?.maxMemoryBytes)).toEqual([BigInt(2 ** 34), undefined]);
  });

  it.each(["platform", "nodes", "organizations"])("answers GET /operator/%s", async (path) => {
    const { headers } = person;
    const answer = await platform.rest("GET", `/api/v1/operator/${path}`, undefined, { headers });
    expect(answer.status).toBe(200);
  });

  it("tells the console who is an operator, and nobody anything once they are not", async () => {
    const me = () => platform.rest("GET", "/api/v1/me", undefined, { headers: person.headers });
    expect((await me()).body).toMatchObject({ operator: true });
    await setOperator(false);
    await expect
      .poll(async () => (await call(operator.listNodes)).outcome)
      .toBe("OPERATOR_REQUIRED");
    expect((await me()).body).not.toMatchObject({ operator: true });
  });
});
