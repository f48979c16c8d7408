import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkTags } from "../../../src/artifacts/environments/tags.ts";
import { threadTimer } from "../../thread-time.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-tags-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the tags of an installed package", () => {
  const check = (tags: readonly string[], names: readonly string[], info = "it-1.0.dist-info") => {
    mkdirSync(join(folder, info), { recursive: true });
    const lines = ["Wheel-Version: 1.0", ...tags.map((tag) => `Tag: ${tag}`), ""];
    writeFileSync(join(folder, info, "WHEEL"), lines.join("\n"));
    const wheels = names.map((name) => ({ name, sha256: [], async *open() {} }));
    return checkTags(folder, wheels);
  };

  it.each([
    [["py2-none-any", "py3-none-any"], "it-1.0-py2.py3-none-any.whl"],
    [["cp311-abi3-manylinux_2_17_x86_64"], "it-1.0-cp311-abi3-manylinux2014_x86_64.whl"],
    [["cp311-cp311-linux_x86_64"], "it-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"],
    [["cp311-cp311-macosx_11_0_arm64"], "it-1.0-cp311-cp311-macosx_10_9_universal2.whl"],
    [["cp311-cp311-musllinux_1_2_x86_64"], "it-1.0-cp311-cp311-musllinux_1_1_x86_64.whl"],
    [["py3-none-any"], "It-1.0.0-1-py3-none-any.whl"],
  ])("agree: %j in %s", async (tags, name) => {
    await check(tags, [name]);
  });

  it.each([
    [["cp311-cp311-manylinux_2_17_aarch64"], "it-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"],
    [["cp311-cp311-musllinux_1_1_x86_64"], "it-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"],
    [["cp310-cp310-linux_x86_64"], "it-1.0-cp311-cp311-linux_x86_64.whl"],
    [["cp311-abi3-win_amd64"], "it-1.0-cp311-abi3-linux_x86_64.whl"],
    [["py2-none-any"], "it-1.0-py3-none-any.whl"],
    [["nonsense"], "it-1.0-py3-none-any.whl"],
    [[], "it-1.0-py3-none-any.whl"],
  ])("do not agree: %j in %s", async (tags, name) => {
    await expect(check(tags, [name])).rejects.toThrow(`the package ${name} is for`);
    // However the folder spells the version.
    await expect(check(tags, [name], "it-1.0.0.dist-info")).rejects.toThrow("is for");
  });

  it("agree where one of several wheels of the package is the one that was installed", async () => {
    const names = ["it-1.0-cp310-cp310-linux_x86_64.whl", "it-1.0-cp311-cp311-linux_x86_64.whl"];
    await check(["cp311-cp311-linux_x86_64"], names);
  });

  it("are read at once, however many there are", async () => {
    const many = "a.".repeat(10_000);
    const spentMs = threadTimer();
    await expect(check([`${many}-${many}-${many}`], ["it-1.0-py3-none-any.whl"])).rejects.toThrow(
      "is for a-a-a",
    );
    expect(spentMs()).toBeLessThan(1_000);
  });
});
