import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { includedFiles } from "../../src/artifacts/include.ts";

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "tessera-include-"));
  folder = join(base, "service");
  mkdirSync(join(folder, "weights"), { recursive: true });
  mkdirSync(join(base, "home"));
  writeFileSync(join(base, "home/key"), "secret");
  writeFileSync(join(folder, "weights/a.bin"), "a");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("files that are included by patterns", () => {
  it("are found with links to others in the folder, also where the folder is a link itself", async () => {
    symlinkSync("a.bin", join(folder, "weights/b.bin"));
    symlinkSync(folder, join(base, "linked"));
    const linked = join(base, "linked");
    expect((await includedFiles(["weights"], linked)).sort()).toEqual([
      join(linked, "weights/a.bin"),
      join(linked, "weights/b.bin"),
    ]);
  });

  it("are refused outside the folder, unless the service is a part of what is around it", async () => {
    await expect(includedFiles(["../home/*"], folder)).rejects.toThrow(
      /key is outside \S+service, /,
    );
    const named = await includedFiles(["../home/*"], folder, { around: true });
    expect(named).toEqual([join(base, "home/key")]);
  });

  it.each([
    ["a link", "weights/key", "../../home/key", "weights/*"],
    ["a link to a folder", "keys", "../home", "keys/*"],
    ["a link that looks like a package", "node_modules/keys", "../../home", "node_modules/keys/*"],
    ["an absolute link", "key.txt", "", "*.txt"],
  ])("are refused where %s leads out of the folder", async (_, name, target, pattern) => {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(target || join(base, "home/key"), join(folder, name));
    for (const around of [false, true]) {
      await expect(includedFiles([pattern], folder, { around })).rejects.toThrow(
        /is, or is under, a link to \S+home\/key, outside the folder of the service/,
      );
    }
  });

  it("may be of packages in the folder or above it, where Node looks for them", async () => {
    const above = join(base, "node_modules/shared");
    mkdirSync(above, { recursive: true });
    mkdirSync(join(folder, "node_modules"));
    writeFileSync(join(above, "data.txt"), "x");
    symlinkSync(above, join(folder, "node_modules/shared"));
    const patterns = ["node_modules/shared/*"];
    expect(await includedFiles(patterns, folder, { around: true })).toEqual([
      join(above, "data.txt"),
    ]);
    await expect(includedFiles(patterns, folder)).rejects.toThrow("outside the folder");
  });
});
