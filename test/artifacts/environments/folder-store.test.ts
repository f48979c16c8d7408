/** What several folders of a store have of each other. */
import { hash, randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FolderStore } from "../../../src/artifacts/environments/folder-store.ts";

const MEBIBYTE = 1024 ** 2;

describe("a store of folders", () => {
  let home: string;
  let store: FolderStore;
  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), "tessera-folders-"));
    const log = { info() {}, warn() {} };
    const maxBytesPerOrganization = 100 * MEBIBYTE;
    store = new FolderStore({ folder: home, maxBytesPerOrganization, log, now: Date.now });
    await store.start();
  });
  afterEach(() => rmSync(home, { recursive: true }));

  /** Makes a folder of these files; answers its path. */
  const make = async (
    name: string,
    files: Readonly<Record<string, Buffer>>,
    mode = 0o644,
  ): Promise<string> => {
    const recipe = {
      what: "a folder",
      organizationId: name,
      make: async (unfinished: string) => {
        mkdirSync(join(unfinished, "lib"), { recursive: true });
        for (const [path, content] of Object.entries(files)) {
          writeFileSync(join(unfinished, path), content);
          chmodSync(join(unfinished, path), mode);
        }
      },
    };
    const { folder } = await store.hold(hash("sha256", name, "hex"), recipe);
    return folder;
  };
  const number = (folder: string, path: string): number => statSync(join(folder, path)).ino;

  it("has a large file of several folders once, under whatever name", async () => {
    const [large, small] = [randomBytes(2 * MEBIBYTE), randomBytes(1_000)];
    const one = await make("one", { "lib/torch.so": large, "lib/small": small });
    const two = await make("two", { "lib/small": small, "weights.bin": large });
    expect(number(two, "weights.bin")).toBe(number(one, "lib/torch.so"));
    expect(number(two, "lib/small")).not.toBe(number(one, "lib/small"));
    // Each is whole by itself.
    rmSync(one, { recursive: true });
    expect(statSync(join(two, "weights.bin"))).toMatchObject({ size: large.length, nlink: 1 });
  });

  it("takes no file of others that is damaged, or has other rights", async () => {
    const large = randomBytes(MEBIBYTE);
    const damaged = await make("damaged", { file: large });
    writeFileSync(join(damaged, "file"), Buffer.alloc(MEBIBYTE));
    const whole = await make("whole", { file: large });
    expect(number(whole, "file")).not.toBe(number(damaged, "file"));
    const started = await make("started", { file: large }, 0o755);
    expect(number(started, "file")).not.toBe(number(whole, "file"));
    expect(number(await make("last", { file: large }), "file")).toBe(number(whole, "file"));
  });
});
