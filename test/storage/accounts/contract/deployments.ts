import { expect } from "vitest";
import type { SettingsUpdate } from "../../../../src/storage/deployment-settings.ts";
import type { It } from "../contract.ts";
import { allPages, ENDPOINT_ACCESS } from "../fixtures.ts";

export function deploymentsContract(it: It): void {
  it("creates a name once in an organization, and so many of them", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const create = (name: string) => {
      const deploymentId = platform.newId("deployment");
      const terms = { authorization: true, limit: 2 };
      const deed = platform.deed("ada@example.com");
      return accounts.createDeployment({ ...deed, organizationId, deploymentId, name, ...terms });
    };
    const created = await create("summarizer");
    const deployment = {
      deploymentId: expect.any(String),
      organizationId,
      organization: "acme",
      name: "summarizer",
      authorization: true,
      createdAtMs: nowMs,
      createdBy: "ada@example.com",
      updatedAtMs: nowMs,
      desiredState: "running",
      targetRevision: undefined,
      settings: {
        minWorkers: 1,
        maxWorkers: 2,
        memoryMib: 512,
        cpu: 1,
        env: {},
        network: { access: "open", hosts: [] },
        requires: {},
        place: "any",
        queueTimeMs: 1_000,
        readyTimeoutMs: 0,
        processes: 0,
        gpus: 0,
        gpuMemoryMib: 0,
        retentionMs: 0,
      },
      version: 1,
      secretsSince: 0,
      secretsVersion: 0,
      pausedEndpoints: [],
    };
    expect(created).toEqual({ outcome: "created", deployment });
    expect(await create("summarizer")).toEqual({ outcome: "name_taken" });
    expect(await create("translator")).toMatchObject({ outcome: "created" });
    expect(await create("another")).toEqual({ outcome: "limit" });
    const name = "summarizer";
    expect(await accounts.findDeployment({ organizationId, name })).toEqual(deployment);
    expect(await accounts.findDeployment({ organization: "acme", name })).toEqual(deployment);
    expect(await accounts.findDeployment({ organization: "globex", name })).toBeUndefined();
  });

  it("lists deployments by name, page by page", async (platform) => {
    const { organizationId } = await platform.setUp();
    for (const name of ["c", "a", "b"]) {
      await platform.deployment(organizationId, name);
    }
    const pages = await allPages((after) =>
      platform.accounts.listDeployments({ organizationId, limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ name }) => name))).toEqual([["a", "b"], ["c"]]);
  });

  it("switches authorization, and tells the nodes", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const deploymentId = await platform.deployment(organizationId, "summarizer");
    const key = { organizationId, name: "summarizer" };
    platform.nowMs += 1_000;
    const update = () =>
      accounts.updateDeployment({ ...platform.deed(), ...key, authorization: false });
    expect(await platform.changesOf(update)).toEqual([`deployment ${deploymentId}`]);
    expect(await accounts.findDeployment(key)).toMatchObject({
      authorization: false,
      updatedAtMs: platform.nowMs,
    });
    const none = { ...platform.deed(), organizationId, name: "none", authorization: true };
    expect(await accounts.updateDeployment(none)).toEqual({ outcome: "not_found" });
  });

  it("switches authorization off only of those that may be opened", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    const deploymentId = await platform.deployment(organizationId, "summarizer");
    const key = { organizationId, name: "summarizer" };
    const set = (authorization: boolean, openable: readonly string[] | undefined) => {
      const change = { ...key, authorization, openable, settings: { maxWorkers: 9 } };
      return accounts.updateDeployment({ ...platform.deed(), ...change });
    };
    for (const openable of [[], ["another"]]) {
      const refused = async () =>
        expect(await set(false, openable)).toEqual({ outcome: "not_openable" });
      expect(await platform.changesOf(refused)).toEqual([]);
    }
    const found = await accounts.findDeployment(key);
    expect(found).toMatchObject({ authorization: true, settings: { maxWorkers: 2 }, version: 1 });
    expect(await set(true, [])).toMatchObject({ outcome: "updated" });
    expect(await set(false, ["another", deploymentId])).toMatchObject({ outcome: "updated" });
    expect(await set(false, [])).toMatchObject({ outcome: "updated" });
  });

  it("changes the settings that are given, if they are still those that were read", async (platform) => {
    const { accounts } = platform;
    const { organizationId } = await platform.setUp();
    await platform.deployment(organizationId, "summarizer");
    const key = { organizationId, name: "summarizer" };
    const env = { LANG: "C", URL: "postgres://who:knows@where/" };
    const update = (settings: SettingsUpdate, version?: number) =>
      accounts.updateDeployment({
        ...platform.deed(),
        ...key,
        settings,
        ...(version !== undefined && { version }),
      });
    const network = { access: "allow", hosts: ["api.example.com:443"] } as const;
    const placed = { requires: { gpu: "*", zone: "b" }, place: "remote" } as const;
    const shared = { gpus: 0.5, gpuMemoryMib: 2_048 };
    const scaled = {
      ...shared,
      queueTimeMs: 5_000,
      retentionMs: 7_200_000,
      readyTimeoutMs: 900_000,
    };
    const updated = await update(
      { maxWorkers: 4, cpu: 0.25, env, network, ...placed, ...scaled },
      1,
    );
    const limits = { minWorkers: 1, maxWorkers: 4, memoryMib: 512, cpu: 0.25 };
    const settings = { ...limits, env, network, ...placed, ...scaled };
    expect(updated).toMatchObject({
      outcome: "updated",
      deployment: { settings, authorization: true, version: 2 },
    });
    expect(await accounts.findDeployment(key)).toEqual(
      updated.outcome === "updated" && updated.deployment,
    );
    expect(await update({ maxWorkers: 8 }, 1)).toEqual({ outcome: "version_conflict" });
    expect(await update({ minWorkers: 5 })).toEqual({ outcome: "workers_contradict" });
    const [event] = await platform.audit(organizationId);
    // Values of the environment may be secret all the same.
    expect(event).toMatchObject({
      action: "deployment.update",
      details: {
        max_workers: "4",
        cpu: "0.25",
        network: "allow api.example.com:443",
        requires: "gpu=* zone=b",
        place: "remote",
        queue_time: "5s",
        retention: "7200s",
        ready_timeout: "900s",
        gpus: "0.5",
        gpu_memory_mib: "2048",
        env: "LANG URL",
        authorization: "true",
      },
    });
  });

  it("takes a deleted deployment from tokens, and does not give them the next of its name", async (platform) => {
    const { accounts, nowMs } = platform;
    const { organizationId } = await platform.setUp();
    const deploymentId = await platform.deployment(organizationId, "summarizer");
    const fields = { access: ENDPOINT_ACCESS, deployments: ["summarizer"] };
    const { token, secret } = await platform.token(organizationId, { fields });
    expect(token.deployments).toEqual([{ deploymentId, name: "summarizer" }]);
    const remove = { ...platform.deed(), organizationId, name: "summarizer" };
    expect(await platform.changesOf(() => accounts.deleteDeployment(remove))).toEqual([
      `deployment ${deploymentId}`,
    ]);
    await platform.deployment(organizationId, "summarizer");
    const credential = await accounts.findCredential({ digests: [secret.digest], nowMs });
    expect(credential).toMatchObject({ deployments: [], allDeployments: false });
    const none = { ...platform.deed(), organizationId, name: "none" };
    expect(await accounts.deleteDeployment(none)).toEqual({ outcome: "not_found" });
  });
}
