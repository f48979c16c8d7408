import { expect } from "vitest";
import { allPages } from "../../accounts/fixtures.ts";
import type { It } from "../contract.ts";
import { artifactOf, HOUR_MS, sha256 } from "../fixtures.ts";

export function revisionsContract(it: It): void {
  it("makes a deployment with its first revision, and tells the nodes", async (platform) => {
    const { hosting, organizationId, nowMs } = platform;
    await platform.upload("code");
    const artifact = artifactOf("code");
    const settings = { maxWorkers: 3, env: { LANG: "C" } };
    const parameters = platform.newRevision(artifact, { settings, authorization: true });
    const create = async () => {
      const deployment = {
        deploymentId: "summarizer-id",
        organizationId,
        organization: "acme",
        name: "summarizer",
        authorization: true,
        createdAtMs: nowMs,
        createdBy: "ada@example.com",
        updatedAtMs: nowMs,
        desiredState: "running",
        targetRevision: 1,
        settings: {
          minWorkers: 1,
          maxWorkers: 3,
          memoryMib: 512,
          cpu: 1,
          env: { LANG: "C" },
          network: { access: "open", hosts: [] },
          queueTimeMs: 1_000,
          readyTimeoutMs: 0,
          processes: 0,
          gpus: 0,
          gpuMemoryMib: 0,
          retentionMs: 0,
          requires: {},
          place: "any",
        },
        version: 1,
        secretsSince: 1,
        secretsVersion: 0,
        pausedEndpoints: [],
      };
      const made = await hosting.createRevision(parameters);
      expect(made).toEqual({ outcome: "created", deployment, revision: 1 });
      const hosted = { ...deployment, digest: artifact.digest, secretsConfirmed: false };
      expect(await hosting.getHosted({ deploymentId: "summarizer-id" })).toEqual(hosted);
    };
    expect(await platform.changesOf(create)).toEqual(["deployment summarizer-id"]);
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "deployment.deploy",
      actor: "ada@example.com",
      subject: "summarizer",
      details: {
        revision: "1",
        digest: artifact.digest,
        authorization: "true",
        max_workers: "3",
        env: "LANG",
      },
    });
    const { digest } = artifact;
    expect(await hosting.getIndex({ organizationId, digest })).toBe(artifact.index);
    expect(await hosting.getIndex({ organizationId: "other", digest })).toBeUndefined();
  });

  it("changes of a deployment only what a later revision says", async (platform) => {
    const { organizationId } = platform;
    const settings = { cpu: 2, env: { A: "1" } };
    await platform.deploy(["one"], { settings, authorization: true });
    await platform.hosting.setDesiredState({
      ...platform.deed(),
      organizationId,
      name: "summarizer",
      desiredState: "stopped",
    });
    platform.nowMs += 1_000;
    const deployed = await platform.deploy(["two"], { settings: { minWorkers: 0 } });
    expect(deployed).toMatchObject({
      authorization: true,
      desiredState: "stopped",
      targetRevision: 2,
      settings: { minWorkers: 0, maxWorkers: 2, cpu: 2, env: { A: "1" } },
      updatedAtMs: platform.nowMs,
      version: 3,
    });
    const name = "summarizer";
    expect(await platform.accounts.findDeployment({ organizationId, name })).toEqual(deployed);
  });

  it("opens with a revision only a deployment that may be opened, or a new one", async (platform) => {
    const { hosting } = platform;
    await platform.deploy(["one"], { authorization: false, openable: [] });
    await platform.deploy(["one"], { authorization: true });
    const open = (openable: readonly string[]) => {
      const change = { authorization: false, openable };
      return hosting.createRevision(platform.newRevision(artifactOf("one"), change));
    };
    const refused = async () => expect(await open(["other"])).toEqual({ outcome: "not_openable" });
    expect(await platform.changesOf(refused)).toEqual([]);
    const kept = await platform.deploy(["one"], { openable: [] });
    expect(kept).toMatchObject({ authorization: true, targetRevision: 3 });
    expect(await open(["summarizer-id"])).toMatchObject({ deployment: { authorization: false } });
  });

  it("refuses files that are missing or of another size, and then writes nothing", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.upload("one");
    const two = artifactOf("one", "two", "two");
    const missing = () => hosting.createRevision(platform.newRevision(two));
    const work = async () =>
      expect(await missing()).toEqual({ outcome: "files_missing", files: [sha256("two")] });
    expect(await platform.changesOf(work)).toEqual([]);
    const [file] = artifactOf("one").files;
    const wrong = { ...artifactOf("one"), files: [{ sha256: file?.sha256 ?? "", sizeBytes: 4 }] };
    const made = await hosting.createRevision(platform.newRevision(wrong));
    expect(made).toEqual({ outcome: "sizes_differ", files: [sha256("one")] });
    const name = "summarizer";
    expect(await platform.accounts.findDeployment({ organizationId, name })).toBeUndefined();
    expect(await hosting.getIndex({ organizationId, digest: two.digest })).toBeUndefined();
  });

  it("refuses an id that is another deployment's, too many of them, and more workers than may be", async (platform) => {
    const { hosting } = platform;
    await platform.deploy(["one"], { limit: 1 });
    const create = (rest: object) =>
      hosting.createRevision(platform.newRevision(artifactOf("one"), rest));
    expect(await create({ deploymentId: "drawn" })).toEqual({
      outcome: "conflict",
      deploymentId: "summarizer-id",
    });
    const another = { name: "another", deploymentId: "another-id", limit: 1 };
    expect(await create(another)).toEqual({ outcome: "limit" });
    expect(await create({ settings: { minWorkers: 3 } })).toEqual({
      outcome: "workers_contradict",
    });
    await platform.remove();
    expect(await create({})).toEqual({ outcome: "conflict", deploymentId: undefined });
    expect(await create({ deploymentId: "drawn" })).toMatchObject({ outcome: "created" });
  });

  it("lists revisions, newest first, page by page", async (platform) => {
    const { hosting, organizationId } = platform;
    for (const content of ["one", "two", "three"]) {
      await platform.deploy([content, "common"]);
    }
    const deployment = { organizationId, deploymentId: "summarizer-id" };
    const pages = await allPages((after) =>
      hosting.listRevisions({ ...deployment, limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ revision }) => revision))).toEqual([[3, 2], [1]]);
    expect(pages[0]?.[1]).toEqual({
      revision: 2,
      digest: artifactOf("two", "common").digest,
      rolledBackTo: undefined,
      createdAtMs: platform.nowMs,
      createdBy: "ada@example.com",
      files: 2,
      sizeBytes: 9,
      endpoints: artifactOf("two").endpoints,
    });
  });

  it("rolls back to the revision before, or to a named one, as a new one", async (platform) => {
    const { hosting, organizationId } = platform;
    const rollBack = (revision?: number, name = "summarizer") =>
      hosting.rollBack({
        ...platform.deed(),
        organizationId,
        name,
        keptRevisions: 10,
        ...(revision !== undefined && { revision }),
      });
    await platform.deploy(["one"]);
    expect(await rollBack()).toEqual({ outcome: "revision_not_found" });
    await platform.deploy(["two"]);
    await platform.deploy(["three"]);
    const back = await rollBack();
    expect(back).toMatchObject({ outcome: "created", revision: 4 });
    const digest = async () => (await hosting.getHosted({ deploymentId: "summarizer-id" }))?.digest;
    expect(await digest()).toBe(artifactOf("two").digest);
    const work = async () => expect(await rollBack(1)).toMatchObject({ revision: 5 });
    expect(await platform.changesOf(work)).toEqual(["deployment summarizer-id"]);
    expect(await digest()).toBe(artifactOf("one").digest);
    const deployment = { organizationId, deploymentId: "summarizer-id" };
    const { items } = await hosting.listRevisions({ ...deployment, limit: 2 });
    expect(items.map(({ rolledBackTo }) => rolledBackTo)).toEqual([1, 2]);
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({ action: "deployment.roll_back", details: { to: "1" } });
    expect(await rollBack(99)).toEqual({ outcome: "revision_not_found" });
    expect(await rollBack(1, "none")).toEqual({ outcome: "not_found" });
  });

  it("keeps the newest revisions and those that are served, and the files of no others", async (platform) => {
    const { hosting, organizationId } = platform;
    const deployment = { organizationId, deploymentId: "summarizer-id" };
    for (const content of ["one", "two", "three"]) {
      await platform.deploy([content, "common"]);
    }
    const report = {
      status: "ready",
      reason: "",
      targetRevision: 4,
      version: 4,
      workers: 1,
    } as const;
    const reports = [{ ...deployment, ...report, revision: 1 }];
    await hosting.reportDeployments({ nowMs: platform.nowMs, nodeId: "node", reports });
    await platform.deploy(["four", "common"], { keptRevisions: 2 });
    const { items } = await hosting.listRevisions({ ...deployment, limit: 10 });
    expect(items.map(({ revision }) => revision)).toEqual([4, 3, 1]);
    const two = artifactOf("two", "common");
    expect(await hosting.getIndex({ organizationId, digest: two.digest })).toBeUndefined();
    expect(await hosting.listArtifactFiles({ organizationId, digest: two.digest })).toEqual([]);
    platform.nowMs += HOUR_MS;
    await platform.sweep();
    expect(await platform.missing("one", "two", "three", "four", "common")).toEqual([
      sha256("two"),
    ]);
  });

  it("starts and stops a deployment that has a revision", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deployment(organizationId, "empty");
    await platform.deploy(["one"]);
    const set = (desiredState: "running" | "stopped", name = "summarizer") =>
      hosting.setDesiredState({ ...platform.deed(), organizationId, name, desiredState });
    expect(await set("running", "empty")).toEqual({ outcome: "no_revision" });
    expect(await set("running", "none")).toEqual({ outcome: "not_found" });
    const stop = async () =>
      expect(await set("stopped")).toMatchObject({
        outcome: "changed",
        deployment: { desiredState: "stopped", version: 2 },
      });
    expect(await platform.changesOf(stop)).toEqual(["deployment summarizer-id"]);
    expect((await platform.audit(organizationId))[0]).toMatchObject({ action: "deployment.stop" });
    expect(await platform.changesOf(() => set("stopped"))).toEqual([]);
    const started = await set("running");
    expect(started).toMatchObject({ deployment: { desiredState: "running", version: 3 } });
  });

  it("lists the deployments of all organizations for the nodes, page by page", async (platform) => {
    const { hosting, accounts } = platform;
    await platform.deploy(["one"]);
    const globex = platform.newId("organization");
    const { userId } = await accounts
      .listMembers({ organizationId: platform.organizationId, limit: 1 })
      .then(({ items: [member] }) => ({ userId: member?.userId ?? "" }));
    await accounts.createOrganization({
      ...platform.deed(),
      organizationId: globex,
      name: "globex",
      displayName: "",
      userId,
    });
    await platform.deployment(globex, "a");
    await platform.deployment(globex, "b");
    const pages = await allPages((after) =>
      hosting.listHosted({ limit: 2, ...(after && { after }) }),
    );
    expect(pages.map(({ length }) => length)).toEqual([2, 1]);
    const found = pages
      .flat()
      .map(({ organization, name, digest }) => [organization, name, digest]);
    expect(found).toEqual([
      ["globex", "a", undefined],
      ["globex", "b", undefined],
      ["acme", "summarizer", artifactOf("one").digest],
    ]);
    expect(await hosting.getHosted({ deploymentId: "none" })).toBeUndefined();
  });

  it("say where their code was in git, and when they were served first", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    const source = { commit: "a".repeat(40), branch: "main", message: "Read faster", dirty: true };
    await platform.deploy(["one"], { source });
    await platform.deploy(["two"]);
    const list = async () => (await hosting.listRevisions({ ...key, limit: 10 })).items;
    expect((await list()).map((one) => one.source)).toEqual([undefined, source]);
    await hosting.rollBack({
      ...platform.deed(),
      organizationId,
      name: "summarizer",
      revision: 1,
      keptRevisions: 10,
    });
    expect((await list())[0]).toMatchObject({ revision: 3, source, servedAtMs: undefined });

    const report = { ...key, reason: "", workers: 1, targetRevision: 3, version: 3 };
    const say = (nowMs: number, status: "starting" | "ready", revision: number) =>
      hosting.reportDeployments({
        nowMs,
        nodeId: "node",
        reports: [{ ...report, status, revision }],
      });
    await say(1_000, "starting", 2);
    await say(2_000, "ready", 2);
    expect((await list())[0]?.servedAtMs).toBeUndefined();
    await say(3_000, "ready", 3);
    await say(4_000, "ready", 3);
    expect((await list()).map((one) => one.servedAtMs)).toEqual([3_000, undefined, undefined]);
  });
}
