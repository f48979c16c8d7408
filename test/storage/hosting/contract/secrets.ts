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
