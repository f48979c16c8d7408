import { expect } from "vitest";
import type { It } from "../contract.ts";
import { artifactOf, HOUR_MS, type HostingPlatform, sha256 } from "../fixtures.ts";

const BOUNDS = { maxModels: 3, maxVersions: 3 };
const TTL_MS = 30_000;

/** Uploads contents and pushes them as the next version of `reader`, or of another model. */
async function push(platform: HostingPlatform, contents: readonly string[], model = "reader") {
  for (const content of contents) {
    await platform.upload(content);
  }
  return platform.hosting.pushModel({
    ...platform.deed("ada@example.com"),
    ...BOUNDS,
    ...{ organizationId: platform.organizationId, model, files: contents.length },
    ...{ artifact: { ...artifactOf(...contents), endpoints: [] }, warnings: ["it is pickled"] },
  });
}

/** Asks for an import of `reader`. */
async function ask(
  platform: HostingPlatform,
  pinned: string,
  sealedToken?: string,
  organizationId = platform.organizationId,
) {
  const asked = await platform.hosting.importModel({
    ...platform.deed("ada@example.com"),
    ...BOUNDS,
    ...{ organizationId, model: "reader", pinned, sealedToken },
    ...{ source: "hf://acme/reader", repository: "acme/reader", commit: "c0ffee" },
    ...{ sizeBytes: 6, files: 2, warnings: [] },
  });
  if (asked.outcome !== "found") {
    throw new Error("the import was refused");
  }
  return asked.version;
}

function take(platform: HostingPlatform, claim: string, without: readonly string[] = []) {
  return platform.hosting.takeImport({ claim, without, nowMs: platform.nowMs, ttlMs: TTL_MS });
}

async function report(
  platform: HostingPlatform,
  claim: string,
  { stored = [], ttlMs = TTL_MS }: { stored?: readonly string[]; ttlMs?: number } = {},
) {
  const { organizationId, nowMs } = platform;
  return platform.hosting.reportImport({
    ...{ organizationId, model: "reader", version: 1, claim, nowMs, ttlMs },
    ...{ bytesDone: 3, bytesPerSecond: 7 },
    stored: stored.map((text) => ({
      ...{ path: text, sha256: sha256(text), sizeBytes: text.length, origin: `lfs ${text}` },
    })),
  });
}

export function modelsContract(it: It): void {
  it("gives imports to runs in turn by organization, and none of those that it is told", async (platform) => {
    const { organizationId } = platform;
    const other = platform.newId("organization");
    for (const pinned of ["hf://acme/reader@1", "hf://acme/reader@2", "hf://acme/reader@3"]) {
      await ask(platform, pinned);
      platform.nowMs += 1;
    }
    await ask(platform, "hf://acme/reader@1", undefined, other);
    expect(await take(platform, "a")).toMatchObject({ organizationId, version: 1 });
    expect(await take(platform, "b")).toMatchObject({ organizationId: other });
    expect(await take(platform, "c")).toMatchObject({ organizationId, version: 2 });
    expect(await take(platform, "d", [organizationId])).toBeUndefined();
    expect(await take(platform, "d", [other])).toMatchObject({ organizationId, version: 3 });
  });

  it("makes uploaded files a version, and the same files no second one", async (platform) => {
    const { hosting, organizationId } = platform;
    const first = await push(platform, ["one", "two"]);
    expect(first).toMatchObject({
      outcome: "pushed",
      version: {
        ...{ model: "reader", version: 1, state: "ready", sizeBytes: 6, files: 2 },
        ...{ digest: artifactOf("one", "two").digest, createdBy: "ada@example.com" },
        ...{ warnings: ["it is pickled"], source: "", commit: "" },
      },
    });
    expect(await push(platform, ["one", "two"])).toEqual(first);
    expect(await push(platform, ["three"])).toMatchObject({ version: { version: 2 } });
    const model = await hosting.getModel({ organizationId, model: "reader", versions: 1 });
    expect(model).toMatchObject({ name: "reader", versionCount: 2, versions: [{ version: 2 }] });
    const { digest } = artifactOf("one", "two");
    expect(await hosting.listArtifactFiles({ organizationId, digest })).toHaveLength(2);
    const one = { sha256: sha256("one"), sizeBytes: 3 };
    expect(
      await hosting.listArtifactFiles({ organizationId, digest, sha256: one.sha256 }),
    ).toMatchObject([one]);
  });

  it("refuses a version without its files, and more than the bounds", async (platform) => {
    const missing = await platform.hosting.pushModel({
      ...platform.deed("ada@example.com"),
      ...BOUNDS,
      ...{ organizationId: platform.organizationId, model: "reader", files: 1, warnings: [] },
      artifact: { ...artifactOf("never uploaded"), endpoints: [] },
    });
    expect(missing).toEqual({ outcome: "files_missing", files: [sha256("never uploaded")] });
    for (const content of ["one", "two", "three"]) {
      expect(await push(platform, [content])).toMatchObject({ outcome: "pushed" });
    }
    expect(await push(platform, ["four"])).toEqual({ outcome: "limit" });
    await push(platform, ["one"], "second");
    await push(platform, ["one"], "third");
    expect(await push(platform, ["one"], "fourth")).toEqual({ outcome: "limit" });
  });

  it("lists models by name, page by page, with their newest versions", async (platform) => {
    const { hosting, organizationId } = platform;
    await push(platform, ["one"], "b-second");
    await push(platform, ["one"], "a-first");
    await push(platform, ["two"], "a-first");
    await push(platform, ["one"], "c-third");
    const first = await hosting.listModels({ organizationId, limit: 2, versions: 1 });
    expect(first.items.map(({ name }) => name)).toEqual(["a-first", "b-second"]);
    expect(first.items[0]).toMatchObject({ versionCount: 2, versions: [{ version: 2 }] });
    const after = first.next ?? "";
    const second = await hosting.listModels({ organizationId, limit: 2, versions: 1, after });
    expect(second).toMatchObject({ items: [{ name: "c-third" }], next: undefined });
    const others = { organizationId: platform.newId("organization"), limit: 2, versions: 1 };
    expect(await hosting.listModels(others)).toEqual({ items: [], next: undefined });
  });

  it("keeps the files of a version, and sweeps them an hour after it was deleted", async (platform) => {
    const { hosting, organizationId } = platform;
    await push(platform, ["one", "shared"]);
    await push(platform, ["shared"], "other");
    platform.nowMs += 100 * HOUR_MS;
    expect(await platform.sweep()).toEqual([]);
    expect(await hosting.readStorageUse({ organizationId, limit: 1 })).toEqual({
      ...{ usedBytes: 9, unusedBytes: 0, modelBytes: 9, deployments: [] },
    });
    const deleted = { ...platform.deed(), organizationId, model: "reader" };
    expect(await hosting.deleteModel({ ...deleted, version: 2 })).toEqual({
      outcome: "not_found",
    });
    expect(await hosting.deleteModel({ ...deleted, version: 1 })).toEqual({ outcome: "deleted" });
    expect(await hosting.getModel({ ...deleted, versions: 1 })).toBeUndefined();
    platform.nowMs += HOUR_MS;
    expect(await platform.sweep()).toHaveLength(1);
    expect(await platform.missing("one", "shared")).toEqual([sha256("one")]);
  });

  it("keeps the files of a version that a deleted artifact had as well", async (platform) => {
    const { digest } = artifactOf("one");
    await platform.deploy(["one"]);
    await push(platform, ["one"]);
    await platform.remove();
    await platform.prune();
    platform.nowMs += 2 * HOUR_MS;
    expect(await platform.sweep()).toEqual([]);
    const { organizationId } = platform;
    expect(await platform.hosting.listArtifactFiles({ organizationId, digest })).toHaveLength(1);
  });

  it("keeps a version while a kept revision has it, and names the deployments", async (platform) => {
    const { hosting, organizationId } = platform;
    const pushed = await push(platform, ["weights"]);
    const models = pushed.outcome === "pushed" ? [pushed.version.digest ?? ""] : [];
    await platform.upload("code");
    await platform.upload("new code");
    const revise = (name: string, content: string, has: readonly string[]) =>
      hosting.createRevision(
        platform.newRevision({ ...artifactOf(content), models: has }, { name, keptRevisions: 1 }),
      );
    expect(await revise("shop", "code", ["a".repeat(64)])).toEqual({
      outcome: "models_missing",
      models: ["a".repeat(64)],
    });
    expect(await revise("shop", "code", models)).toMatchObject({ outcome: "created" });
    const version = { organizationId, model: "reader", version: 1 };
    expect(await hosting.getModelVersion(version)).toMatchObject({ deployments: ["shop"] });
    const model = await hosting.getModel({ organizationId, model: "reader", versions: 1 });
    expect(model?.versions).toMatchObject([{ deployments: ["shop"] }]);
    const remove = () =>
      hosting.deleteModel({ ...platform.deed("ada@example.com"), organizationId, model: "reader" });
    expect(await remove()).toEqual({ outcome: "in_use", deployments: ["shop"] });
    expect(await revise("shop", "new code", [])).toMatchObject({ outcome: "created" });
    expect(await hosting.getModelVersion(version)).toMatchObject({ deployments: [] });
    expect(await remove()).toEqual({ outcome: "deleted" });
  });

  it("writes who pushed, imported and deleted a model", async (platform) => {
    const { hosting, organizationId } = platform;
    await push(platform, ["one"]);
    await ask(platform, "c0ffee");
    await hosting.deleteModel({ ...platform.deed(), organizationId, model: "reader" });
    const events = await platform.accounts.listAuditEvents({
      organizationId,
      limit: 10,
      subject: "reader",
    });
    expect(events.items.map(({ action, details }) => [action, details])).toEqual([
      ["model.delete", { versions: "1 2" }],
      ["model.import", { version: "2", source: "hf://acme/reader", commit: "c0ffee" }],
      ["model.push", { version: "1", digest: artifactOf("one").digest }],
    ]);
  });

  it("imports what is pinned to the same once, and a version that failed again", async (platform) => {
    const { hosting, organizationId } = platform;
    const first = await ask(platform, "c0ffee", "sealed");
    expect(first).toMatchObject({ version: 1, state: "importing", digest: undefined });
    expect(await ask(platform, "c0ffee")).toEqual(first);
    expect(await take(platform, "run")).toMatchObject({ pinned: "c0ffee", sealedToken: "sealed" });
    const key = { organizationId, model: "reader", version: 1 };
    await hosting.failImport({ ...key, claim: "another run", reason: "not by this one" });
    await hosting.failImport({ ...key, claim: "run", reason: "the source is gone" });
    expect(await hosting.getModelVersion(key)).toMatchObject({
      ...{ state: "failed", reason: "the source is gone" },
    });
    expect(await take(platform, "run")).toBeUndefined();
    expect(await ask(platform, "c0ffee")).toMatchObject({ version: 1, state: "importing" });
    expect(await take(platform, "run")).toMatchObject({ sealedToken: undefined });
    expect(await ask(platform, "decaf")).toMatchObject({ version: 2 });
  });

  it("lets one run at a time import, and the next go on with what it stored", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, model: "reader", version: 1 };
    await ask(platform, "c0ffee");
    expect(await take(platform, "first")).toMatchObject(key);
    expect(await take(platform, "second")).toBeUndefined();
    await platform.upload("one");
    expect(await report(platform, "first", { stored: ["one"] })).toBe(true);
    platform.nowMs += TTL_MS;
    expect(await take(platform, "second")).toMatchObject(key);
    expect(await report(platform, "first")).toBe(false);
    expect(await hosting.listImported(key)).toEqual([
      { path: "one", sha256: sha256("one"), sizeBytes: 3, origin: "lfs one" },
    ]);
    expect(await hosting.findImported({ organizationId, origin: "lfs one" })).toEqual([]);
    await platform.upload("two");
    const artifact = { ...artifactOf("one", "two"), endpoints: [] };
    expect(await hosting.finishImport({ ...key, claim: "first", artifact })).toEqual({
      outcome: "lost",
    });
    expect(await hosting.finishImport({ ...key, claim: "second", artifact })).toEqual({
      outcome: "finished",
    });
    expect(await hosting.getModelVersion(key)).toMatchObject({
      ...{ state: "ready", digest: artifact.digest, bytesDone: 6 },
      ...{ repository: "acme/reader", commit: "c0ffee" },
    });
    expect(await hosting.findImported({ organizationId, origin: "lfs one" })).toMatchObject([
      { path: "one", sha256: sha256("one") },
    ]);
    expect(await ask(platform, "c0ffee")).toMatchObject({ version: 1, state: "ready" });
  });

  it("hands an import over at once when its run gives it up, and drops a deleted one", async (platform) => {
    const { hosting, organizationId } = platform;
    await ask(platform, "c0ffee");
    await take(platform, "first");
    expect(await report(platform, "first", { ttlMs: 0 })).toBe(true);
    expect(await take(platform, "second")).toMatchObject({ model: "reader" });
    await hosting.deleteModel({ ...platform.deed(), organizationId, model: "reader" });
    expect(await report(platform, "second", { stored: ["one"] })).toBe(false);
    const lost = { organizationId, model: "reader", version: 1, claim: "second" };
    const artifact = { ...artifactOf("one"), endpoints: [] };
    expect(await hosting.finishImport({ ...lost, artifact })).toEqual({ outcome: "lost" });
  });

  it("refuses to finish an import whose files were swept", async (platform) => {
    const { hosting, organizationId } = platform;
    await ask(platform, "c0ffee");
    await take(platform, "run");
    const held = { organizationId, model: "reader", version: 1, claim: "run" };
    const artifact = { ...artifactOf("swept"), endpoints: [] };
    expect(await hosting.finishImport({ ...held, artifact })).toEqual({
      outcome: "files_missing",
    });
  });
}
