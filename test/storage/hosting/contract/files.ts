import { expect } from "vitest";
import type { It } from "../contract.ts";
import { artifactOf, HOUR_MS, sha256 } from "../fixtures.ts";

export function filesContract(it: It): void {
  it("misses files until they are finished, each once", async (platform) => {
    const { hosting, organizationId, keptUntilMs } = platform;
    const blobId = platform.newId("blob");
    expect(await platform.register("one", blobId)).toEqual({ outcome: "registered" });
    expect(await platform.missing("one", "two", "one")).toEqual([sha256("one"), sha256("two")]);
    const finished = await hosting.finishFile({ organizationId, blobId, keptUntilMs });
    expect(finished).toEqual({ outcome: "finished" });
    expect(await platform.missing("one", "two")).toEqual([sha256("two")]);
    expect(await platform.register("one")).toEqual({ outcome: "there" });
  });

  it("finds a file whose digest was known at its end", async (platform) => {
    const { hosting, organizationId, keptUntilMs } = platform;
    const [blobId, one] = [platform.newId("blob"), sha256("one")];
    const registered = { sha256: "", sizeBytes: 3, keptUntilMs, maxBytes: 1_000 };
    expect(await hosting.registerFile({ organizationId, blobId, ...registered })).toEqual({
      outcome: "registered",
    });
    expect(await hosting.findFile({ organizationId, sha256: one })).toBeUndefined();
    await hosting.finishFile({ organizationId, blobId, keptUntilMs, sha256: one });
    expect(await hosting.findFile({ organizationId, sha256: one })).toEqual({ blobId });
    expect(await platform.missing("one")).toEqual([]);
  });

  it("keeps the files of organizations apart", async (platform) => {
    await platform.upload("one");
    const other = { organizationId: platform.newId("organization") };
    const { keptUntilMs } = platform;
    const missing = await platform.hosting.findMissingFiles({
      ...other,
      keptUntilMs,
      sha256: [sha256("one")],
    });
    expect(missing).toEqual([sha256("one")]);
  });

  it("finds its way among thousands of files", async (platform) => {
    await platform.upload("one");
    const contents = Array.from({ length: 1_234 }, (_, index) => `file ${index}`);
    const missing = await platform.missing(...contents, "one");
    expect(missing).toEqual(contents.map(sha256));
  });

  it("takes the second upload of a file, and sweeps what it wrote", async (platform) => {
    const { hosting, organizationId, keptUntilMs } = platform;
    const blobIds = ["first", "second"];
    for (const blobId of blobIds) {
      expect(await platform.register("one", blobId)).toEqual({ outcome: "registered" });
    }
    for (const blobId of blobIds) {
      const finished = await hosting.finishFile({ organizationId, blobId, keptUntilMs });
      expect(finished).toEqual({ outcome: "finished" });
    }
    const made = await hosting.createRevision(platform.newRevision(artifactOf("one")));
    expect(made).toMatchObject({ outcome: "created" });
    // At once: until then it counts, too.
    expect(await platform.sweep()).toEqual(["second"]);
    expect(await hosting.readStorageUse({ organizationId, limit: 1 })).toMatchObject({
      usedBytes: 3,
    });
    const { digest } = artifactOf("one");
    expect(await hosting.listArtifactFiles({ organizationId, digest })).toEqual([
      { sha256: sha256("one"), sizeBytes: 3, blobId: "first" },
    ]);
  });

  it("sweeps what nothing uses for an hour, and what was found not before another", async (platform) => {
    const { hosting, organizationId } = platform;
    const unused = await platform.upload("unused");
    const found = await platform.upload("found");
    const unfinished = platform.newId("blob");
    await platform.register("unfinished", unfinished);
    await platform.deploy(["used"]);
    platform.nowMs += HOUR_MS - 1;
    expect(await platform.sweep()).toEqual([]);
    expect(await platform.missing("found")).toEqual([]);
    platform.nowMs += 1;
    expect(await platform.sweep()).toEqual([unused, unfinished].sort());
    const { keptUntilMs } = platform;
    const late = { organizationId, blobId: unfinished, keptUntilMs };
    expect(await hosting.finishFile(late)).toEqual({ outcome: "gone" });
    platform.nowMs += HOUR_MS;
    expect(await platform.sweep()).toEqual([found]);
    expect(await platform.missing("found", "used")).toEqual([sha256("found")]);
  });

  it("sweeps an upload that failed at once, but no file that is finished", async (platform) => {
    const { hosting, organizationId, nowMs } = platform;
    const failed = platform.newId("blob");
    await platform.register("one", failed);
    const finished = await platform.upload("two");
    for (const blobId of [failed, finished, failed]) {
      await hosting.abandonFile({ organizationId, blobId, nowMs });
    }
    // What is left of it counts for nothing: another may have all that is not taken.
    const [sizeBytes, maxBytes] = [3, 2 * "two".length];
    const another = { blobId: platform.newId("blob"), sha256: sha256("six"), sizeBytes, maxBytes };
    const { keptUntilMs } = platform;
    expect(await hosting.registerFile({ organizationId, ...another, keptUntilMs })).toEqual({
      outcome: "registered",
    });
    expect(await platform.sweep()).toEqual([failed]);
    expect(await hosting.readStorageUse({ organizationId, limit: 1 })).toMatchObject({
      usedBytes: 6,
    });
    const more = { ...another, blobId: platform.newId("blob"), sizeBytes: 1, maxBytes };
    expect(await hosting.registerFile({ organizationId, ...more, keptUntilMs })).toEqual({
      outcome: "limit",
    });
  });

  it("gives what was taken and not forgotten to the next one, and to no revision", async (platform) => {
    const { hosting, organizationId } = platform;
    const blobId = await platform.upload("one");
    platform.nowMs += HOUR_MS;
    const { nowMs } = platform;
    const take = (atMs: number) =>
      hosting.takeUnusedFiles({ nowMs: atMs, againMs: atMs + 1_000, limit: 10 });
    expect(await take(nowMs)).toEqual({ organizationId, blobIds: [blobId] });
    expect(await take(nowMs)).toBeUndefined();
    const made = await hosting.createRevision(platform.newRevision(artifactOf("one")));
    expect(made).toEqual({ outcome: "files_missing", files: [sha256("one")] });
    expect(await platform.register("one", "again")).toEqual({ outcome: "registered" });
    expect(await take(nowMs + 1_000)).toEqual({ organizationId, blobIds: [blobId] });
    await hosting.forgetFiles({ organizationId, blobIds: [blobId, "again"] });
    expect(await take(nowMs + 9_000)).toBeUndefined();
    const { keptUntilMs } = platform;
    const again = { organizationId, blobId: "again", keptUntilMs };
    expect(await hosting.finishFile(again)).toEqual({ outcome: "finished" });
  });

  it("refuses more bytes than the organization may have, until some are swept", async (platform) => {
    expect(await platform.register("x".repeat(990), "large")).toEqual({ outcome: "registered" });
    expect(await platform.register("y".repeat(11))).toEqual({ outcome: "limit" });
    expect(await platform.register("z".repeat(10))).toEqual({ outcome: "registered" });
    platform.nowMs += HOUR_MS;
    await platform.sweep();
    expect(await platform.register("y".repeat(1_000))).toEqual({ outcome: "registered" });
  });

  it("tells what files take, each once, and which deployments have most", async (platform) => {
    const { hosting, organizationId } = platform;
    const read = (limit: number) => hosting.readStorageUse({ organizationId, limit });
    expect(await read(10)).toEqual({
      ...{ usedBytes: 0, unusedBytes: 0, modelBytes: 0 },
      deployments: [],
    });
    const [first, second] = [platform.newId("deployment"), platform.newId("deployment")];
    await platform.deploy(["code", "weights"], { name: "small", deploymentId: first });
    for (const own of ["1", "22", "22"]) {
      await platform.deploy(["weights", own], { name: "large", deploymentId: second });
    }
    await platform.upload("unused");
    const large = { name: "large", revisions: 3, bytes: 10 };
    const small = { name: "small", revisions: 1, bytes: 11 };
    expect(await read(10)).toEqual({
      ...{ usedBytes: 20, unusedBytes: 6, modelBytes: 0 },
      deployments: [small, large],
    });
    expect((await read(1)).deployments).toEqual([small]);
  });
}
