import { expect } from "vitest";
import { allPages } from "../../accounts/fixtures.ts";
import type { It } from "../contract.ts";
import { artifactOf } from "../fixtures.ts";

export function secretsContract(it: It): void {
  it("sets, keeps and removes secrets with a revision, up to a number", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    await platform.deploy(["one"], { secrets: { A: "sealed a", B: "sealed b" } });
    await platform.deploy(["one"], { secrets: { B: "sealed b2", C: "c" }, removeSecrets: ["A"] });
    expect(await hosting.getSecrets(key)).toEqual([
      { ...key, name: "B", sealed: "sealed b2" },
      { ...key, name: "C", sealed: "c" },
    ]);
    const create = (rest: object) =>
      hosting.createRevision(platform.newRevision(artifactOf("one"), rest));
    const more = { secrets: { D: "d", E: "e" } };
    expect(await create(more)).toEqual({ outcome: "too_many_secrets" });
    expect(await create({ ...more, removeSecrets: ["B"] })).toMatchObject({ outcome: "created" });
    const [event] = await platform.audit(organizationId);
    expect(event?.details).toMatchObject({ secrets: "D E", removed_secrets: "B" });
  });

  it("are set and removed without a revision, and start its workers anew", async (platform) => {
    const { hosting, organizationId } = platform;
    const deploymentId = "summarizer-id";
    const key = { organizationId, deploymentId };
    await platform.deploy(["one"], { usesSecrets: true, secrets: { A: "a", B: "b" } });
    const before = await hosting.getHosted({ deploymentId });
    const { version = 0 } = before ?? {};
    const update = (rest: object) =>
      hosting.updateSecrets({
        ...platform.deed("root@example.com"),
        ...key,
        name: "summarizer",
        maxSecrets: 3,
        usesSecrets: true,
        ...rest,
      });
    platform.nowMs += 1_000;
    const changes = await platform.changesOf(async () => {
      const change = { secrets: { A: "a2", C: "c" }, removeSecrets: ["B"], version };
      expect(await update(change)).toMatchObject({
        outcome: "updated",
        deployment: { version: version + 1, secretsVersion: version + 1, targetRevision: 1 },
      });
    });
    expect(changes).toEqual([`deployment ${deploymentId}`]);
    const after = await hosting.getHosted({ deploymentId });
    expect(after).toMatchObject({
      targetRevision: 1,
      secretsVersion: version + 1,
      secretsSince: 0,
    });
    expect((await hosting.getSecrets(key)).map(({ sealed }) => sealed)).toEqual(["a2", "c"]);
    const set = { setAtMs: platform.nowMs, setBy: "root@example.com", withheld: false };
    expect(await hosting.listSecrets(key)).toEqual([
      { name: "A", ...set },
      { name: "C", ...set },
    ]);
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "deployment.update_secrets",
      details: { secrets: "A C", removed_secrets: "B" },
    });

    expect(await update({ secrets: { A: "a3" }, version })).toEqual({
      outcome: "version_conflict",
    });
    expect(await update({ secrets: { D: "d", E: "e" } })).toEqual({ outcome: "too_many_secrets" });
    expect(await update({ name: "nobody" })).toEqual({ outcome: "not_found" });
    expect(await update({ deploymentId: "another", secrets: { A: "x" } })).toEqual({
      outcome: "not_found",
    });
    // What is not there is not removed, and nothing starts anew for it.
    expect(await update({ removeSecrets: ["B"] })).toMatchObject({
      outcome: "updated",
      deployment: { version: version + 1 },
    });
    const events = await platform.audit(organizationId);
    expect(events[0]?.eventId).toBe(event?.eventId);
  });

  it("are withheld, but for those that somebody has set who may not use the others", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    await platform.deploy(["one"], { usesSecrets: true, secrets: { A: "a", B: "b" } });
    const updated = await hosting.updateSecrets({
      ...platform.deed(),
      ...key,
      name: "summarizer",
      maxSecrets: 3,
      secrets: { B: "mine" },
    });
    expect(updated).toMatchObject({ outcome: "updated" });
    const listed = await hosting.listSecrets(key);
    expect(listed.map(({ name, withheld }) => [name, withheld])).toEqual([
      ["A", true],
      ["B", false],
    ]);
    const [event] = await platform.audit(organizationId);
    expect(event?.details).toEqual({ secrets: "B", secrets_withheld: "A" });
  });

  it("are gone with their deployment at once", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deploy(["one"], { secrets: { A: "sealed" } });
    await platform.remove();
    expect(await hosting.getSecrets({ organizationId, deploymentId: "summarizer-id" })).toEqual([]);
  });

  it("can be sealed again, page by page, unless they were set anew", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deploy(["one"], { secrets: { A: "a", B: "b" } });
    await platform.deploy(["one"], { name: "x", deploymentId: "x-id", secrets: { A: "x" } });
    const pages = await allPages((after) =>
      hosting.listSealedSecrets({ limit: 2, ...(after && { after }) }),
    );
    expect(pages.map((page) => page.map(({ sealed }) => sealed))).toEqual([["a", "b"], ["x"]]);
    const key = { organizationId, deploymentId: "summarizer-id" };
    await hosting.replaceSealedSecret({ ...key, name: "A", from: "a", to: "a2" });
    await hosting.replaceSealedSecret({ ...key, name: "B", from: "not b", to: "b2" });
    const sealed = (await hosting.getSecrets(key)).map((secret) => secret.sealed);
    expect(sealed).toEqual(["a2", "b"]);
  });
}
