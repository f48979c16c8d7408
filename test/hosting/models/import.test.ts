import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, vi } from "vitest";
import { createModelIndex, verifyModelIndex } from "../../../src/artifacts/model-index.ts";
import { MAX_PART_BYTES } from "../../../src/artifacts/parts.ts";
import { keepHouse } from "../../../src/hosting/housekeeping.ts";
import { importWaiting, startImporter } from "../../../src/hosting/models/importer.ts";
import { nameFrom, pinSource } from "../../../src/hosting/models/source.ts";
import { modelSources } from "../../../src/hosting/models/sources.ts";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../../src/tasks/id.ts";
import { Timer } from "../../../src/time/timer.ts";
import { FakeHub } from "./hub.ts";
import { refusalOf } from "./refusal.ts";

const ORGANIZATION = "acme-id";
const READER = { organizationId: ORGANIZATION, model: "reader" };
const KEYS = { unseal: (sealed: string) => sealed.replace("sealed ", "") };
const FILES = { "config.json": "{}", "sub/weights.safetensors": randomBytes(300_000) };

/** Weights of two parts and a bit. */
const LARGE = randomBytes(2 * MAX_PART_BYTES + 1_000);

class Setting implements AsyncDisposable {
  readonly hub: FakeHub;
  readonly storage: SqliteStorage;
  readonly blobs: FolderBlobStore;
  readonly newId = createIdSource(Date.now);
  maxBytes = 1024 ** 3;
  nowMs = Date.now();
  readonly #resources: AsyncDisposableStack;

  static async open(files: { readonly [path: string]: Uint8Array | string } = FILES) {
    const resources = new AsyncDisposableStack();
    const hub = resources.use(await FakeHub.start(files));
    const storage = resources.use(new SqliteStorage(":memory:"));
    await storage.start();
    const folder = mkdtempSync(join(tmpdir(), "tessera-import-"));
    resources.defer(() => rmSync(folder, { recursive: true, force: true }));
    const blobs = resources.use(new FolderBlobStore(folder));
    await blobs.start();
    return new Setting({ hub, storage, blobs, resources });
  }

  private constructor(parts: {
    readonly hub: FakeHub;
    readonly storage: SqliteStorage;
    readonly blobs: FolderBlobStore;
    readonly resources: AsyncDisposableStack;
  }) {
    this.hub = parts.hub;
    this.storage = parts.storage;
    this.blobs = parts.blobs;
    this.#resources = parts.resources;
  }

  get sources() {
    const options = { modelHub: this.hub.url, allowedEgress: [], modelBuckets: [] };
    return modelSources(options, undefined);
  }

  /** Pins a source, as ImportModel does. */
  pin(source = "hf://acme/reader", token = "") {
    const signal = AbortSignal.timeout(30_000);
    return pinSource(this.sources, source, { organization: "acme", token, signal });
  }

  /** Pins a source and asks for its import. */
  async ask(source = "hf://acme/reader", token = "", of: Partial<typeof READER> = {}) {
    const { pinned, repository, commit, files } = await this.pin(source, token);
    const asked = await this.storage.hosting.importModel({
      ...{ ...READER, ...of, source, pinned, repository, commit },
      ...{ by: { name: "ada", id: "", address: "" }, nowMs: this.nowMs, eventId: this.newId() },
      ...{ maxModels: 10, maxVersions: 10, warnings: [], files: files.length },
      sizeBytes: files.reduce((sum, { size }) => sum + size, 0),
      sealedToken: token === "" ? undefined : `sealed ${token}`,
    });
    if (asked.outcome !== "found") {
      throw new Error("the import was refused");
    }
    return asked.version;
  }

  get options() {
    return {
      ...{ hosting: this.storage.hosting, blobs: this.blobs, sources: this.sources, keys: KEYS },
      ...{ maxBytes: this.maxBytes, newId: this.newId, log: pino({ level: "silent" }) },
      now: () => this.nowMs,
    };
  }

  /** Does the imports that wait, until there are none or the signal aborts. */
  run(signal = new AbortController().signal) {
    return importWaiting(this.options, signal);
  }

  version(version = 1) {
    const key = { organizationId: ORGANIZATION, model: "reader", version };
    return this.storage.hosting.getModelVersion(key);
  }

  /** The whole files of a ready version, by path. */
  async contents(digest: string): Promise<Map<string, Buffer>> {
    const key = { organizationId: ORGANIZATION, digest };
    const { hosting } = this.storage;
    const { index } = verifyModelIndex((await hosting.getIndex(key)) ?? "");
    const stored = await hosting.listArtifactFiles(key);
    const found = new Map<string, Buffer>();
    for (const { path, sha256 } of index.files) {
      const { blobId = "" } = stored.find((file) => file.sha256 === sha256) ?? {};
      const [, whole = path] = /^\.parts\/(.+)\/\d{4}$/.exec(path) ?? [];
      const chunks = [found.get(whole) ?? Buffer.alloc(0)];
      for await (const chunk of this.blobs.read(blobId)) {
        chunks.push(Buffer.from(chunk));
      }
      found.set(whole, Buffer.concat(chunks));
    }
    return found;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

describe("an import of a model", () => {
  it("stores the files of a branch's commit, and proves them", async () => {
    await using setting = await Setting.open();
    const asked = await setting.ask();
    expect(asked).toMatchObject({ state: "importing", files: 2, repository: "acme/reader" });
    await setting.run();
    const ready = await setting.version();
    expect(ready).toMatchObject({ state: "ready", commit: asked.commit, sizeBytes: 300_002 });
    const contents = await setting.contents(ready?.digest ?? "");
    expect([...contents.keys()]).toEqual(["config.json", "sub/weights.safetensors"]);
    expect(contents.get("sub/weights.safetensors")).toEqual(FILES["sub/weights.safetensors"]);
  });

  it("asks once in a round where nothing waits, however many imports it may do", async () => {
    await using setting = await Setting.open({ weights: "" });
    using takeImport = vi.spyOn(setting.storage.hosting, "takeImport");
    using pauseMs = vi.spyOn(Timer.prototype, "pauseMs").mockReturnValueOnce(0);
    await using _ = startImporter(setting.options);
    await expect.poll(() => pauseMs.mock.calls.length).toBe(2);
    expect(takeImport).toHaveBeenCalledTimes(1);
  });

  it("leaves a slot to others, whatever one organization imports", async () => {
    await using setting = await Setting.open({ slow: "slow" });
    const hanging = Promise.withResolvers<void>();
    const begun: string[] = [];
    setting.hub.faults.onContent = (path) => {
      begun.push(path);
      return path === "slow" ? hanging.promise : undefined;
    };
    for (const model of ["a", "b", "c", "d", "e"]) {
      await setting.ask("hf://acme/reader", "", { model });
    }
    await using _ = startImporter(setting.options);
    await expect.poll(() => begun.length).toBe(3);
    setting.hub.commit({ quick: "quick" });
    const other = { organizationId: "globex-id", model: "reader", version: 1 };
    await setting.ask("hf://acme/reader", "", other);
    const { hosting } = setting.storage;
    await expect.poll(() => hosting.getModelVersion(other)).toMatchObject({ state: "ready" });
    expect(begun).toEqual(["slow", "slow", "slow", "quick"]);
    hanging.resolve();
    const last = { organizationId: ORGANIZATION, model: "e", version: 1 };
    await expect.poll(() => hosting.getModelVersion(last)).toMatchObject({ state: "ready" });
  });

  it("counts once what two imports have fetched at the same time", async () => {
    const weights = randomBytes(100_000);
    await using setting = await Setting.open({ weights });
    const both = Promise.withResolvers<void>();
    let begun = 0;
    setting.hub.faults.onContent = () => {
      begun += 1;
      if (begun === 2) {
        both.resolve();
      }
      return both.promise;
    };
    await setting.ask();
    await setting.ask("hf://acme/reader", "", { model: "same" });
    await Promise.all([setting.run(), setting.run()]);
    const { hosting } = setting.storage;
    const same = { organizationId: ORGANIZATION, model: "same", version: 1 };
    expect(await hosting.getModelVersion(same)).toMatchObject({ state: "ready" });
    const { now } = setting.options;
    await keepHouse({ hosting, blobs: setting.blobs, now });
    const used = await hosting.readStorageUse({ organizationId: ORGANIZATION, limit: 1 });
    expect(used).toMatchObject({ usedBytes: 100_000, unusedBytes: 0 });
  });

  it("reads the list of files page by page", async () => {
    const files = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`${n}.txt`, String(n)]));
    await using setting = await Setting.open(files);
    setting.hub.pageSize = 10;
    expect((await setting.pin()).files).toHaveLength(25);
  });

  it("stays at its commit when the branch moves, and imports the new one as another version", async () => {
    await using setting = await Setting.open();
    await setting.ask();
    setting.hub.commit({ ...FILES, "config.json": '{"new":true}' });
    await setting.run();
    const first = await setting.version(1);
    const old = await setting.contents(first?.digest ?? "");
    expect(old.get("config.json")?.toString()).toBe("{}");
    expect(await setting.ask()).toMatchObject({ version: 2 });
    const served = setting.hub.served;
    await setting.run();
    // The weights are those of before: only what has changed is fetched.
    expect(setting.hub.served - served).toBe(12);
    expect(await setting.version(2)).toMatchObject({ state: "ready" });
    expect(await setting.ask()).toMatchObject({ version: 2 });
  });

  it("asks for the token of a gated repository, and sends it", async () => {
    await using setting = await Setting.open();
    setting.hub.faults.token = "hf_secret";
    expect(await refusalOf(setting.pin())).toMatch(/^SOURCE_REFUSED: .*gated/);
    expect(await refusalOf(setting.pin("hf://acme/reader", "hf_other"))).toMatch(
      /^SOURCE_REFUSED: the token may not read/,
    );
    await setting.ask("hf://acme/reader", "hf_secret");
    await setting.run();
    expect(await setting.version()).toMatchObject({ state: "ready" });
  });

  it("waits for a source that is busy, and says so to who asks for an import", async () => {
    await using setting = await Setting.open();
    setting.hub.faults.busy = 1;
    expect(await refusalOf(setting.pin())).toMatch(/^SOURCE_UNAVAILABLE: .* answers 503/);
    setting.hub.faults.upgrades = true;
    expect(await refusalOf(setting.pin())).toMatch(/^SOURCE_UNAVAILABLE: .* does not answer/);
    setting.hub.faults.cutsJson = true;
    expect(await refusalOf(setting.pin())).toMatch(/^SOURCE_UNAVAILABLE: .* broke off its answer/);
    await setting.ask();
    setting.hub.faults.busy = 2;
    await setting.run();
    expect(await setting.version()).toMatchObject({ state: "ready" });
  });

  it("refuses what is no source, and a repository that is not there", async () => {
    await using setting = await Setting.open();
    for (const source of ["reader", "hf://", "hf://a/b/c", "hf://a/b@../x", "ftp://a/b", "s3://"]) {
      expect(await refusalOf(setting.pin(source))).toMatch(/^REQUEST_INVALID/);
    }
    for (const source of ["https://example.com/x", "https://a:b@example.com/x#sha256=00"]) {
      expect(await refusalOf(setting.pin(source))).toMatch(/^REQUEST_INVALID/);
    }
    expect(await refusalOf(setting.pin("hf://acme/other"))).toMatch(/^SOURCE_REFUSED: .*no such/);
  });

  it("refuses names that lead out, name one file twice, or are no files", async () => {
    await using setting = await Setting.open();
    const oid = "0".repeat(40);
    const file = { type: "file", size: 1, oid };
    for (const [entry, message] of [
      [{ ...file, path: "../escape" }, "leads out"],
      [{ ...file, path: "/etc/passwd" }, "is absolute"],
      [{ ...file, path: "CONFIG.json" }, "differ only in case"],
      [{ ...file, path: "config.json/x" }, "is a file"],
      [{ ...file, path: "tessera.json" }, "twice"],
      [{ ...file, path: ".parts/x" }, "no part of a file"],
      [{ ...file, path: "link", type: "symlink" }, "no file"],
      [{ ...file, path: "x", size: -1 }, "no file"],
    ] as const) {
      setting.hub.faults.entries = [entry];
      const refused = await refusalOf(setting.pin());
      expect(refused).toContain("SOURCE_REFUSED");
      expect(refused).toContain(message);
    }
  });

  it("takes 40,000 tiny files into its list, and refuses 60,000", async () => {
    const tiny = (count: number) =>
      Array.from({ length: count }, (_, n) => ({
        ...{ type: "file", path: `t/${n}`, size: 1, oid: "0".repeat(40) },
      }));
    await using setting = await Setting.open();
    setting.hub.faults.entries = tiny(40_000);
    expect((await setting.pin()).files).toHaveLength(40_002);
    setting.hub.faults.entries = tiny(60_000);
    expect(await refusalOf(setting.pin())).toMatch(/more than 50000 files/);
  });

  it("refuses a pointer of Git LFS in place of its content", async () => {
    const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    await using setting = await Setting.open({ "weights.bin": pointer });
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({
      ...{ state: "failed", reason: expect.stringContaining("pointer of Git LFS") },
    });
  });

  it("refuses a content that is not what the list of files says", async () => {
    await using setting = await Setting.open();
    const { content } = setting.hub.faults;
    content.set("sub/weights.safetensors", randomBytes(300_000));
    await setting.ask();
    await setting.run();
    const failed = { state: "failed", reason: expect.stringContaining("changed or damaged") };
    expect(await setting.version()).toMatchObject(failed);
    content.set("sub/weights.safetensors", randomBytes(10));
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({
      reason: expect.stringContaining("has 10 bytes at its source, and 300000"),
    });
    content.clear();
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({ state: "ready", reason: "" });
  });

  it("goes on behind the parts that are stored when the connection breaks", async () => {
    await using setting = await Setting.open({ "large.safetensors": LARGE });
    setting.hub.faults.cutAfter.set("large.safetensors", MAX_PART_BYTES + 5_000_000);
    const starts: number[] = [];
    setting.hub.faults.onContent = (_, start) => void starts.push(start);
    await setting.ask();
    await setting.run();
    const ready = await setting.version();
    expect(ready).toMatchObject({ state: "ready", bytesDone: LARGE.length });
    expect(starts).toEqual([0, MAX_PART_BYTES]);
    const contents = await setting.contents(ready?.digest ?? "");
    expect(contents.get("large.safetensors")?.equals(LARGE)).toBe(true);
  });

  it("goes on with a server that knows no ranges", async () => {
    await using setting = await Setting.open({ "large.safetensors": LARGE });
    setting.hub.faults.noRange = true;
    setting.hub.faults.cutAfter.set("large.safetensors", MAX_PART_BYTES + 5_000_000);
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({ state: "ready" });
  });

  it("refuses a file that changes behind its entity tag", async () => {
    await using setting = await Setting.open({ "large.safetensors": LARGE });
    const { faults } = setting.hub;
    faults.cutAfter.set("large.safetensors", MAX_PART_BYTES + 5_000_000);
    faults.onContent = (path, start) => {
      if (start > 0) {
        faults.etag.set(path, '"another"');
      }
    };
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({
      ...{ state: "failed", reason: expect.stringContaining("changed at its source while") },
    });
  });

  it("goes on in another run with what the one before has stored", async () => {
    await using setting = await Setting.open({ "large.safetensors": LARGE });
    const { faults } = setting.hub;
    const stopping = new AbortController();
    faults.cutAfter.set("large.safetensors", MAX_PART_BYTES + 5_000_000);
    faults.onContent = (_, start) => {
      if (start > 0) {
        stopping.abort();
      }
    };
    await setting.ask();
    await setting.run(stopping.signal);
    expect(await setting.version()).toMatchObject({
      state: "importing",
      bytesDone: MAX_PART_BYTES,
    });
    const starts: number[] = [];
    faults.onContent = (_, start) => void starts.push(start);
    await setting.run();
    expect(starts).toEqual([MAX_PART_BYTES]);
    expect(await setting.version()).toMatchObject({ state: "ready" });
  });

  it("fails when the organization has no more room, and goes on when it has", async () => {
    await using setting = await Setting.open({ "large.safetensors": LARGE });
    setting.maxBytes = MAX_PART_BYTES + 1_000;
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({
      ...{ state: "failed", reason: expect.stringContaining("--max-organization-storage") },
    });
    setting.maxBytes = 1024 ** 3;
    const starts: number[] = [];
    setting.hub.faults.onContent = (_, start) => void starts.push(start);
    await setting.ask();
    await setting.run();
    expect(starts).toEqual([MAX_PART_BYTES]);
    expect(await setting.version()).toMatchObject({ state: "ready" });
  });

  it("is done once where two ask for the same at once, on two nodes", async () => {
    await using setting = await Setting.open();
    const asked = await Promise.all([setting.ask(), setting.ask()]);
    expect(asked.map(({ version }) => version)).toEqual([1, 1]);
    await Promise.all([setting.run(), setting.run()]);
    expect(setting.hub.served).toBe(300_002);
    expect(await setting.version()).toMatchObject({ state: "ready" });
  });

  it("ends when its version is deleted", async () => {
    await using setting = await Setting.open();
    setting.hub.faults.onContent = async () => {
      await setting.storage.hosting.deleteModel({
        ...{ organizationId: ORGANIZATION, model: "reader", nowMs: setting.nowMs },
        ...{ by: { name: "ada", id: "", address: "" }, eventId: setting.newId() },
      });
    };
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toBeUndefined();
  });

  it("follows redirects to public addresses only", async () => {
    await using setting = await Setting.open();
    await using other = await FakeHub.start(FILES);
    setting.hub.faults.redirect.set("config.json", `${other.url}/secret`);
    await setting.ask();
    await setting.run();
    expect(await setting.version()).toMatchObject({
      ...{ state: "failed", reason: expect.stringContaining("is a loopback address") },
    });
    expect(await refusalOf(setting.pin(`https://127.0.0.1/x#sha256=${"0".repeat(64)}`))).toMatch(
      /^SOURCE_REFUSED: .*loopback/,
    );
    const metadata = `https://169.254.169.254/latest#sha256=${"0".repeat(64)}`;
    expect(await refusalOf(setting.pin(metadata))).toMatch(/^SOURCE_REFUSED: .*link-local/);
  });

  it("makes a name of what a source is called", () => {
    expect(["Qwen3-0.6B", "__a--b__", "ünï", "..."].map(nameFrom)).toEqual([
      ...["qwen3-0.6b", "a-b", "n", "model"],
    ]);
  });
});

describe("the digest of an import", () => {
  it("is that of the same files when they are pushed", async () => {
    await using setting = await Setting.open({ a: "one", b: "two" });
    await setting.ask();
    await setting.run();
    const file = (path: string, text: string) => ({
      ...{ path, size: text.length, executable: false },
      sha256: createHash("sha256").update(text).digest("hex"),
    });
    const { digest } = createModelIndex([file("b", "two"), file("a", "one")]);
    expect(await setting.version()).toMatchObject({ digest });
  });
});
