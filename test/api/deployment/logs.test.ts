import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import type { NewLogLine } from "../../../src/storage/hosting/logs.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newDeployment } from "../../server/rpc/world.ts";

const BEGAN_MS = Date.UTC(2026, 0, 1);
const OUTPUT = { worker: "w", revision: 1, stream: "stdout", level: "info", taskId: "" } as const;

const TRANSPORTS = [
  ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC", (baseUrl: string) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
] as const;

describe.each(DATABASES)("the log of a deployment on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let deployment: string;
  let append: (...lines: readonly Partial<NewLogLine>[]) => Promise<void>;

  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
    company = await newCompany(platform);
    deployment = await newDeployment(platform, company);
    const { organizationId } = company;
    const found = await platform.accounts.findDeployment({ organizationId, name: deployment });
    const key = { organizationId, deploymentId: found?.deploymentId ?? "" };
    append = (...lines) =>
      platform.storage.hosting.appendLogs({
        ...key,
        nodeId: "n",
        lines: lines.map((line) => ({ ...OUTPUT, timeMs: BEGAN_MS, text: "", ...line })),
      });
    // More than are read at once.
    const many = Array.from({ length: 1_200 }, (_, index) => ({ text: `Line ${index}` }));
    await append(...many);
    await append(
      { text: "late", timeMs: BEGAN_MS + 60_000 },
      { text: "a warning", level: "warn", taskId: "task-1" },
      { text: "an ERROR 7", level: "error", taskId: "task-1" },
      { text: "the task of another", taskId: "task-2" },
    );
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  type Request = Parameters<
    ReturnType<typeof createClient<typeof DeploymentService>>["watchDeploymentLogs"]
  >[0];

  const read = async (filter: Request, transport = TRANSPORTS[0][1]): Promise<string[]> => {
    const client = createClient(DeploymentService, transport(platform.origin));
    const texts: string[] = [];
    const request = { organization: company.name, deployment, ...filter };
    for await (const { text } of client.watchDeploymentLogs(request, {
      headers: company.admin.headers,
    })) {
      texts.push(text);
    }
    return texts;
  };

  it.each(TRANSPORTS)("is filtered over %s, in all lines that are kept", async (_, transport) => {
    expect(await read({ search: "LINE 7" }, transport)).toHaveLength(100);
    expect(await read({ search: "LINE 7", tail: 2 }, transport)).toEqual(["Line 798", "Line 799"]);
    expect(await read({ minLevel: "warn" }, transport)).toEqual(["a warning", "an ERROR 7"]);
    expect(await read({ minLevel: "error" }, transport)).toEqual(["an ERROR 7"]);
    expect(await read({ taskId: "task-2" }, transport)).toEqual(["the task of another"]);
    expect(await read({ revision: 2 }, transport)).toEqual([]);
    expect(await read({ revision: 1, taskId: "task-2" }, transport)).toHaveLength(1);
    expect(await read({ startTime: timestampFromMs(BEGAN_MS + 1) }, transport)).toEqual(["late"]);
    const before = { search: "a", endTime: timestampFromMs(BEGAN_MS + 60_000) };
    expect(await read(before, transport)).toEqual([
      "a warning",
      "an ERROR 7",
      "the task of another",
    ]);
    expect(await read({ search: "nothing has this" }, transport)).toEqual([]);
    expect(await read({ search: "line", tail: 0 }, transport)).toEqual([]);
  });

  it("goes on with new lines that fit", async () => {
    const client = createClient(DeploymentService, TRANSPORTS[0][1](platform.origin));
    const request = { organization: company.name, deployment, follow: true, minLevel: "error" };
    const lines = client.watchDeploymentLogs(request, { headers: company.admin.headers });
    const iterator = lines[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ text: "an ERROR 7", level: "error" });
    await append({ text: "fine" }, { text: "a new one", level: "error", taskId: "task-3" });
    const { value } = await iterator.next();
    expect(value).toMatchObject({ text: "a new one", level: "error", taskId: "task-3" });
    await iterator.return?.();
  });

  it.each([
    [{ follow: true, endTime: "2027-01-01T00:00:00Z" }, "end_time"],
    [{ startTime: "2027-01-01T00:00:00Z", endTime: "2027-01-01T00:00:00Z" }, "end_time"],
    [{ minLevel: "debug" }, "min_level"],
    [{ search: "x".repeat(201) }, "search"],
  ])("refuses %j", async (filter, field) => {
    const { headers } = company.admin;
    const request = { organization: company.name, deployment, ...filter };
    const answer = await platform.call(DeploymentService.method.watchDeploymentLogs, request, {
      headers,
    });
    expect(answer.outcome).toBe("REQUEST_INVALID");
    expect(answer.text).toContain(field);
  });
});
