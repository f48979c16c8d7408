import { expect } from "vitest";
import type { It } from "../contract.ts";

const TOLD = {
  madeOf: "a".repeat(64),
  format: 1,
  filesOnly: true,
  manifest: '{"name":"summarizer","endpoints":[]}',
};

export function manifestsContract(it: It): void {
  it("are what a worker told last, and nodes hear what they hold for", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    await platform.deploy(["one"]);
    expect(await hosting.getManifest(key)).toBeUndefined();
    expect((await hosting.getHosted(key))?.manifest).toBeUndefined();
    await hosting.storeManifest({ ...key, ...TOLD });
    expect(await hosting.getManifest(key)).toEqual(TOLD);
    const later = { ...TOLD, madeOf: "b".repeat(64), format: 2, filesOnly: false, manifest: "{}" };
    await hosting.storeManifest({ ...key, ...later });
    expect(await hosting.getManifest(key)).toEqual(later);
    const { manifest: _, ...facts } = later;
    expect((await hosting.getHosted(key))?.manifest).toEqual(facts);
    const { items } = await hosting.listHosted({ limit: 10 });
    expect(items.map(({ manifest }) => manifest)).toEqual([facts]);
  });

  it("of a deployment that is gone are not stored, and go with it", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    await platform.deploy(["one"]);
    await hosting.storeManifest({ ...key, ...TOLD });
    await platform.remove();
    await platform.prune();
    expect(await hosting.getManifest(key)).toBeUndefined();
    await hosting.storeManifest({ ...key, ...TOLD });
    expect(await hosting.getManifest(key)).toBeUndefined();
  });
}
