import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { digestOf } from "../../../src/artifacts/index-file.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newDeployment } from "../../server/rpc/world.ts";

const file = (path: string, content: string) => ({
  path,
  size: content.length,
  sha256: digestOf(content),
  executable: false,
});
const endpoint = (name: string, description = "") => ({ name, kind: "api", description });

const FIRST = {
  files: [file("a.json", "{}"), file("b.json", "{}"), file("service.js", "one")],
  endpoints: [endpoint("ask"), endpoint("say")],
};
/** What the code of the last two says of settings, and how long their tasks are kept. */
const SAID = { gpus: 0.5, gpuMemoryMib: 4_096, readyTimeoutMs: 900_000 };
const task = (name: string, retentionMs: number) => ({ name, kind: "task", retentionMs });

const SECOND = {
  files: [file("b.json", "{}"), file("c.json", "[]"), file("service.js", "three")],
  endpoints: [endpoint("ask", "Asks."), endpoint("tell")],
};

describe.each(DATABASES)("CompareRevisions on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let deployment: string;

  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
    company = await newCompany(platform);
    deployment = await newDeployment(platform, company);
    const { organizationId } = company;
    const record = await platform.accounts.findDeployment({ organizationId, name: deployment });
    const third = { ...SECOND, endpoints: [...SECOND.endpoints, task("learn", 60_000)] };
    const fourth = { ...third, endpoints: [...third.endpoints, task("rest", 1_000)] };
    for (const { files, endpoints, said } of [
      { ...FIRST, said: {} },
      { ...SECOND, said: {} },
      { ...third, said: { ...SAID, processes: 2 } },
      { ...fourth, said: SAID },
    ]) {
      const service = { name: deployment, endpoints, ...said };
      const index = JSON.stringify({ service, files });
      const made = await platform.storage.hosting.createRevision({
        ...platform.deed(),
        organizationId,
        name: deployment,
        deploymentId: record?.deploymentId ?? "",
        artifact: { digest: digestOf(index), index, endpoints: [], files: [] },
        limit: 1_000,
        maxSecrets: 1,
        keptRevisions: 10,
      });
      expect(made.outcome).toBe("created");
    }
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  const compare = (revision: number, base?: number) =>
    platform.call(
      DeploymentService.method.compareRevisions,
      { deployment, organization: company.name, revision, ...(base !== undefined && { base }) },
      { headers: company.admin.headers },
    );

  it("tells the files and endpoints that were added, removed and changed", async () => {
    const { body } = await compare(2, 1);
    expect(body).toMatchObject({
      revision: { revision: 2 },
      base: { revision: 1 },
      changedFiles: 3,
    });
    expect(body.files).toMatchObject([
      { path: "a.json", kind: "CHANGE_KIND_REMOVED", baseSizeBytes: "2" },
      { path: "c.json", kind: "CHANGE_KIND_ADDED", sizeBytes: "2" },
      { path: "service.js", kind: "CHANGE_KIND_CHANGED", sizeBytes: "5", baseSizeBytes: "3" },
    ]);
    expect(body.endpoints).toEqual([
      { name: "ask", kind: "CHANGE_KIND_CHANGED" },
      { name: "say", kind: "CHANGE_KIND_REMOVED" },
      { name: "tell", kind: "CHANGE_KIND_ADDED" },
    ]);
  });

  it("compares with the one before unless another is named, over REST too", async () => {
    expect((await compare(3)).body).toMatchObject({ base: { revision: 2 }, files: [] });
    expect((await compare(1, 3)).body.files).toHaveLength(3);
    const path = `/api/v1/deployments/${deployment}/revisions/2:compare?base=1`;
    const { headers } = company.admin;
    const { body } = await platform.rest("GET", path, undefined, { headers });
    expect(body.files[0]).toMatchObject({ path: "a.json", kind: "removed" });
  });

  it("tells what the code says of settings that a deployment leaves to it", async () => {
    expect((await compare(1, 1)).body.codeSettings).toEqual({ secretNames: [] });
    const said = { secretNames: [], gpus: 0.5, gpuMemoryMib: 4_096, readyTimeout: "900s" };
    expect((await compare(3, 3)).body.codeSettings).toEqual({
      ...said,
      ...{ processes: 2, retention: "60s" },
    });
    // Its tasks are kept for times of their own.
    expect((await compare(4, 4)).body.codeSettings).toEqual(said);
  });

  it.each([[5], [1], [2, 9]])(
    "has nothing to say of a revision that is not there: %j, %j",
    async (...pair) => {
      const [revision = 0, base] = pair;
      expect(await compare(revision, base)).toMatchObject({
        status: 404,
        outcome: "REVISION_NOT_FOUND",
      });
    },
  );
});
