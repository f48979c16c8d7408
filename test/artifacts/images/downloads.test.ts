/** The bound of what is kept of downloads of images, and waiting for those of others. */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DownloadFolders, Downloads } from "../../../src/artifacts/images/downloads.ts";

const LAYER_BYTES = 1_000;

describe("downloads of images", () => {
  let home: string;
  let made = 0;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "tessera-downloads-"));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  const digestOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");

  const open = async (maxBytesPerOrganization = 100 * LAYER_BYTES): Promise<Downloads> => {
    const downloads = new Downloads({
      ...{ folder: join(home, "store"), maxBytesPerOrganization, now: Date.now },
    });
    await downloads.start();
    return downloads;
  };

  /** Layers, and what puts them into a layout as skopeo does: all that are not there. */
  const image = (...contents: Buffer[]) => {
    const layers = contents.map((content) => ({ digest: digestOf(content), size: content.length }));
    const fetched: string[] = [];
    const fetch = async ({ layout, blobs }: DownloadFolders): Promise<void> => {
      mkdirSync(layout);
      const put = (content: Buffer): { digest: string } => {
        const digest = digestOf(content);
        const path = join(blobs, "sha256", digest);
        if (!existsSync(path)) {
          fetched.push(digest);
          writeFileSync(path, content);
        }
        return { digest: `sha256:${digest}` };
      };
      const described = contents.map(put);
      const config = put(Buffer.from("{}"));
      const manifest = put(Buffer.from(JSON.stringify({ config, layers: described })));
      writeFileSync(join(layout, "index.json"), JSON.stringify({ manifests: [manifest] }));
      writeFileSync(join(layout, "oci-layout"), "{}");
    };
    return { layers, fetch, fetched };
  };

  const run = async (
    downloads: Downloads,
    { layers, fetch }: Pick<ReturnType<typeof image>, "layers" | "fetch">,
    organizationId = "acme",
  ): Promise<string> => {
    made += 1;
    const into = join(home, `layout${made}`);
    const signal = new AbortController().signal;
    await downloads.run({ organizationId, layers, fetch, into, signal, onProgress() {} });
    return into;
  };

  const kept = (): string[] =>
    readdirSync(join(home, "store"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);

  it("keeps no more of an organization than one may have, and lets go what was not used for longest", async () => {
    const downloads = await open(2.5 * LAYER_BYTES);
    const images = [1, 2, 3].map(() => image(randomBytes(LAYER_BYTES)));
    for (const [age, each] of images.entries()) {
      await run(downloads, each);
      const [{ digest } = { digest: "" }] = each.layers;
      const [owner = ""] = readdirSync(join(home, "store"));
      const usedAt = new Date(Date.now() - (10 - age) * 60_000);
      utimesSync(join(home, "store", owner, "sha256", digest), usedAt, usedAt);
    }
    const [first, second, third] = images.map(({ layers }) => layers[0]?.digest);
    expect(kept()).toEqual(expect.arrayContaining([second, third]));
    expect(kept()).not.toContain(first);
  });

  it("has the layers of one organization only", async () => {
    const downloads = await open();
    const content = randomBytes(LAYER_BYTES);
    const [own, same, theirs] = [image(content), image(content), image(content)];
    await run(downloads, own);
    await run(downloads, same);
    await run(downloads, theirs, "other");
    expect(own.fetched).toHaveLength(3);
    expect(same.fetched).toEqual([]);
    expect(theirs.fetched).toHaveLength(3);
  });

  it("waits for a download that has begun with one of its layers, and takes over when that fails", async () => {
    const downloads = await open();
    const content = randomBytes(LAYER_BYTES);
    const [failing, next] = [image(content), image(content)];
    const begun = Promise.withResolvers<void>();
    const broken = Promise.withResolvers<void>();
    const first = run(downloads, {
      layers: failing.layers,
      fetch: async () => {
        begun.resolve();
        await broken.promise;
      },
    });
    await begun.promise;
    const second = run(downloads, next);
    const failed = expect(first).rejects.toThrow("the registry is gone");
    expect(next.fetched).toEqual([]);
    broken.reject(new Error("the registry is gone"));
    await failed;
    await second;
    expect(next.fetched).toHaveLength(3);
  });

  it("keeps what is whole of a process that was killed, and removes what is half", async () => {
    const content = randomBytes(LAYER_BYTES);
    await run(await open(), image(content));
    const whole = kept();
    const [owner = ""] = readdirSync(join(home, "store"));
    mkdirSync(join(home, "store", owner, "half/oci"), { recursive: true });
    writeFileSync(join(home, "store", owner, "half/oci/oci-put-blob1"), "half");
    await open();
    expect(kept()).toEqual(whole);
    expect(readdirSync(join(home, "store", owner))).toEqual(["sha256"]);
  });

  it("takes no layout whose layers are others than those of the manifest", async () => {
    const downloads = await open();
    const [one, other] = [image(randomBytes(LAYER_BYTES)), image(randomBytes(LAYER_BYTES))];
    await expect(run(downloads, { layers: one.layers, fetch: other.fetch })).rejects.toThrow(
      "another content than the digest",
    );
  });

  it("waits for no pipe in place of a layer or of the layout, and takes what is no file away", async () => {
    const downloads = await open();
    const { layers, fetch } = image(randomBytes(LAYER_BYTES));
    const [{ digest } = { digest: "" }] = layers;
    await run(downloads, image(randomBytes(LAYER_BYTES)));
    const [owner = ""] = readdirSync(join(home, "store"));
    execFileSync("mkfifo", [join(home, "store", owner, "sha256", digest)]);
    mkdirSync(join(home, "store", owner, "sha256/folder/inside"), { recursive: true });
    await run(downloads, { layers, fetch });
    const piped = async (folders: DownloadFolders): Promise<void> => {
      await fetch(folders);
      const index = join(folders.layout, "index.json");
      rmSync(index);
      execFileSync("mkfifo", [index]);
    };
    await expect(run(downloads, { layers, fetch: piped })).rejects.toThrow("is not valid");
    await downloads.sweep({ used: new Set(), unusedForMs: 0 });
    expect(readdirSync(join(home, "store", owner, "sha256"))).toEqual([]);
  });

  it("follows no link in a layout", async () => {
    const downloads = await open();
    const { layers, fetch } = image(randomBytes(LAYER_BYTES));
    const linked = async (folders: DownloadFolders): Promise<void> => {
      await fetch(folders);
      const index = join(folders.layout, "index.json");
      renameSync(index, join(home, "elsewhere"));
      symlinkSync(join(home, "elsewhere"), index);
    };
    await expect(run(downloads, { layers, fetch: linked })).rejects.toThrow("ELOOP");
  });
});
