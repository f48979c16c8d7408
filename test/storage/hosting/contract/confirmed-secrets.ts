import { expect } from "vitest";
import type { HostingStorage } from "../../../../src/storage/hosting/hosting.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const MAY = { usesSecrets: true };
const SECRETS = { A: "sealed a", B: "sealed b" };
const name = "summarizer";

/** The names of the secrets that workers of a revision get, and of the others. */
async function secretsOf({ hosting, organizationId }: HostingPlatform, revision: number) {
  const key = { organizationId, deploymentId: "summarizer-id" };
  const { given, withheld } = await hosting.getRevisionSecrets({ ...key, revision });
  return [given.map((secret) => secret.name).join(), withheld.join()];
}

async function shown({ hosting, accounts, organizationId, nowMs }: HostingPlatform) {
  const found = await accounts.findDeployment({ organizationId, name });
  const [state] = await hosting.describeDeployments({
    organizationId,
    deployments: found === undefined ? [] : [found],
    nowMs,
  });
  return state?.withheldSecrets;
}

async function update(platform: HostingPlatform, change: object) {
  const { organizationId } = platform;
  const deed = platform.deed();
  const updated = await platform.accounts.updateDeployment({
    ...deed,
    organizationId,
    name,
    ...change,
  });
  expect(updated.outcome).toBe("updated");
}

async function confirm(platform: HostingPlatform, version?: number) {
  const { organizationId } = platform;
  const found = await platform.accounts.findDeployment({ organizationId, name });
  return platform.hosting.confirmSecrets({
    ...platform.deed("root@example.com"),
    organizationId,
    name,
    version: version ?? found?.version ?? 0,
  });
}

function rollBack(platform: HostingPlatform, revision: number) {
  const { organizationId } = platform;
  const parameters = { ...platform.deed(), organizationId, name, revision, keptRevisions: 10 };
  return platform.hosting.rollBack(parameters as Parameters<HostingStorage["rollBack"]>[0]);
}

export function confirmedSecretsContract(it: It): void {
  it("are withheld from new code of a caller who may not use them, until it is confirmed", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deploy(["one"], { ...MAY, secrets: SECRETS });
    expect(await secretsOf(platform, 1)).toEqual(["A,B", ""]);
    expect(await shown(platform)).toEqual([]);
    const before = await platform.deploy(["two"]);
    const [deployed] = await platform.audit(organizationId);
    expect(deployed?.details).toMatchObject({ revision: "2", secrets_withheld: "A B" });
    expect(await secretsOf(platform, 2)).toEqual(["", "A,B"]);
    expect(await shown(platform)).toEqual(["A", "B"]);
    // The revision before may go on with them, wherever it stands in.
    expect(await secretsOf(platform, 1)).toEqual(["A,B", ""]);
    const id = { deploymentId: "summarizer-id" };
    expect(await hosting.getHosted(id)).toMatchObject({ secretsConfirmed: false });

    expect(await confirm(platform, 1)).toEqual({ outcome: "version_conflict" });
    const changes = await platform.changesOf(async () => {
      expect(await confirm(platform)).toMatchObject({
        outcome: "confirmed",
        deployment: { version: before.version + 1, secretsSince: 0 },
      });
    });
    expect(changes).toEqual(["deployment summarizer-id"]);
    expect(await secretsOf(platform, 2)).toEqual(["A,B", ""]);
    expect(await shown(platform)).toEqual([]);
    expect(await hosting.getHosted(id)).toMatchObject({ secretsConfirmed: true });
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "deployment.confirm_secrets",
      actor: "root@example.com",
      details: { revision: "2", secrets: "A B" },
    });
    const page = await hosting.listRevisions({ organizationId, ...id, limit: 10 });
    expect(page.items.map((one) => one.secretsConfirmed?.by)).toEqual([
      "root@example.com",
      "ada@example.com",
    ]);
    // What is confirmed is not changed again.
    expect(await confirm(platform)).toMatchObject({ deployment: { version: before.version + 1 } });
  });

  it("are given to code that is confirmed already, deployed or brought back by anybody", async (platform) => {
    await platform.deploy(["one"], { ...MAY, secrets: SECRETS });
    await platform.deploy(["two"]);
    await platform.deploy(["one"]);
    expect(await secretsOf(platform, 3)).toEqual(["A,B", ""]);
    expect(await rollBack(platform, 1)).toMatchObject({ outcome: "created" });
    expect(await secretsOf(platform, 4)).toEqual(["A,B", ""]);
  });

  it("are not given to a revision that nobody confirmed by bringing it back", async (platform) => {
    await platform.deploy(["one"]);
    await platform.deploy(["two"], { ...MAY, secrets: SECRETS });
    expect(await secretsOf(platform, 1)).toEqual(["", "A,B"]);
    await rollBack(platform, 1);
    expect(await secretsOf(platform, 3)).toEqual(["", "A,B"]);
    // Nor to one that is not there any more.
    expect(await secretsOf(platform, 7)).toEqual(["", "A,B"]);
  });

  it("are given to the code that they came with, and to no later code", async (platform) => {
    await platform.deploy(["one"], { secrets: SECRETS, settings: { env: { LANG: "C" } } });
    expect(await secretsOf(platform, 1)).toEqual(["A,B", ""]);
    await platform.deploy(["two"]);
    expect(await secretsOf(platform, 2)).toEqual(["", "A,B"]);
    await platform.deploy(["three"], { secrets: { A: "own" } });
    expect(await secretsOf(platform, 3)).toEqual(["A", "B"]);
  });

  for (const [what, change] of [
    ["a variable", { settings: { env: { API: "http://elsewhere" } } }],
    ["a secret", { secrets: { A: "another" } }],
    ["the removal of a secret", { removeSecrets: ["A"] }],
  ] as const) {
    it(`are withheld from confirmed code with ${what} of a caller who may not use them, whoever deploys next`, async (platform) => {
      await platform.deploy(["one"], { ...MAY, secrets: SECRETS });
      await platform.deploy(["one"], change);
      const own = "secrets" in change ? "A" : "";
      expect((await secretsOf(platform, 2))[0]).toBe(own);
      await platform.deploy(["one"]);
      await platform.deploy(["new"], { ...MAY, secrets: { C: "new" } });
      expect((await secretsOf(platform, 4))[0]).toBe(own);
      await confirm(platform);
      expect((await secretsOf(platform, 4))[1]).toBe("");
    });
  }

  it("are withheld after an update of the variables by a caller who may not use them", async (platform) => {
    await platform.deploy(["one"], {
      ...MAY,
      secrets: SECRETS,
      settings: { env: { A: "1", B: "2" } },
    });
    await update(platform, { settings: { maxWorkers: 4, env: { B: "2", A: "1" } } });
    await update(platform, { ...MAY, settings: { env: { A: "1" } } });
    expect(await secretsOf(platform, 1)).toEqual(["A,B", ""]);
    await update(platform, { settings: { env: { A: "2" } } });
    expect(await secretsOf(platform, 1)).toEqual(["", "A,B"]);
    await update(platform, { ...MAY, settings: { env: { A: "1" } } });
    expect(await secretsOf(platform, 1)).toEqual(["", "A,B"]);
    await confirm(platform);
    expect(await secretsOf(platform, 1)).toEqual(["A,B", ""]);
  });

  it("cannot be confirmed where nothing was deployed", async (platform) => {
    expect(await confirm(platform, 1)).toEqual({ outcome: "not_found" });
    const { organizationId } = platform;
    const fresh = { deploymentId: "fresh", authorization: false, limit: 9 };
    await platform.accounts.createDeployment({
      ...platform.deed(),
      organizationId,
      name,
      ...fresh,
    });
    expect(await confirm(platform)).toEqual({ outcome: "no_revision" });
  });
}
