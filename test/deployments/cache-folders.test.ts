import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CacheFolders } from "../../src/deployments/cache-folders.ts";
import type { WorkerCache } from "../../src/pool/limits.ts";
import { onOwnTimers } from "../own-timers.ts";

const KIBIBYTE = 1024;
const log = { info() {}, warn() {}, error() {}, debug() {} };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-caches-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const caches = (maxBytes: number) =>
  new CacheFolders({ folder: join(folder, "caches"), maxBytes, log });

function pathOf(all: CacheFolders, deploymentId: string): string {
  const cache = all.of(deploymentId);
  cache?.use();
  return cache?.path ?? "";
}

/** Writes a file that was last used so many seconds ago. */
function write(path: string, bytes: number, secondsAgo: number): void {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, Buffer.alloc(bytes, 1));
  const atSeconds = Date.now() / 1_000 - secondsAgo;
  utimesSync(path, atSeconds, atSeconds);
}

describe("the cache of a deployment", () => {
  it("is there again for its next worker, and is no other deployment's", () => {
    using all = caches(KIBIBYTE ** 2);
    const mine = pathOf(all, "one");
    writeFileSync(join(mine, "weights"), "w");
    expect(pathOf(all, "one")).toBe(mine);
    expect(readFileSync(join(mine, "weights"), "utf8")).toBe("w");
    expect(pathOf(all, "two")).not.toBe(mine);
  });

  it("is none where the operator allows none", () => {
    using all = caches(0);
    expect(all.of("one")).toBeUndefined();
    expect(existsSync(join(folder, "caches"))).toBe(false);
  });

  it("loses the files that were not used for longest when it holds more than it may", async () => {
    using all = caches(100 * KIBIBYTE);
    const mine = pathOf(all, "one");
    write(join(mine, "old/a"), 40 * KIBIBYTE, 300);
    write(join(mine, "b"), 40 * KIBIBYTE, 200);
    await all.measure();
    expect(readdirSync(mine).sort()).toEqual(["b", "old"]);
    write(join(mine, "new/c"), 40 * KIBIBYTE, 100);
    await all.measure();
    expect(existsSync(join(mine, "old/a"))).toBe(false);
    expect(existsSync(join(mine, "b"))).toBe(true);
    expect(existsSync(join(mine, "new/c"))).toBe(true);
  });

  it("leads nowhere by links, whatever it turns into", async () => {
    using all = caches(4 * KIBIBYTE);
    const outside = join(folder, "outside");
    write(join(outside, "secret"), 64 * KIBIBYTE, 900);
    const mine = pathOf(all, "one");
    symlinkSync(outside, join(mine, "folder"));
    symlinkSync(join(outside, "secret"), join(mine, "file"));
    write(join(mine, "real"), 64 * KIBIBYTE, 10);
    await all.measure();
    expect(existsSync(join(mine, "real"))).toBe(false);
    expect(readdirSync(outside)).toEqual(["secret"]);
    await all.delete("one");
    expect(readdirSync(outside)).toEqual(["secret"]);
    expect(readdirSync(join(folder, "caches"))).toEqual([]);
  });

  it("hides nothing in folders that let nobody read them, itself among them, or have names of any bytes", async () => {
    using all = caches(1_500 * KIBIBYTE);
    const mine = pathOf(all, "one");
    write(join(mine, "closed/a"), 800 * KIBIBYTE, 500);
    chmodSync(join(mine, "closed"), 0);
    const name = Buffer.concat([Buffer.from(`${mine}/`), Buffer.from([0xff, 0xfe])]);
    writeFileSync(name, Buffer.alloc(800 * KIBIBYTE));
    chmodSync(mine, 0o300);
    await all.measure();
    expect(readdirSync(mine, { encoding: "buffer" })).toContainEqual(Buffer.from([0xff, 0xfe]));
    expect(existsSync(join(mine, "closed/a"))).toBe(false);
    expect(all.of("one")?.fault()).toBeUndefined();
  });

  it("that cannot be measured is a fault until it can: folders that are too deep, and too many files", async () => {
    using all = caches(1_500 * KIBIBYTE);
    const mine = pathOf(all, "one");
    const deep = join(mine, ...Array.from({ length: 40 }, (_, at) => `d${at}`));
    write(join(deep, "b"), 2_000 * KIBIBYTE, 400);
    await all.measure();
    expect(all.of("one")?.fault()).toContain("more than 24 deep");
    await all.measure();
    expect(all.of("one")?.fault()).toBeUndefined();
    const left = readdirSync(mine, { recursive: true, withFileTypes: true });
    expect(left.filter((each) => each.isFile())).toEqual([]);
  });

  it(
    "is measured while workers use it, and on until nothing is wrong with it",
    onOwnTimers(async (left) => {
      using all = caches(1_500 * KIBIBYTE);
      const cache = all.of("one") as WorkerCache & { measure(): Promise<void> };
      const measure = vi.spyOn(cache, "measure");
      const measured = async (): Promise<void> => {
        vi.advanceTimersByTime(5_000);
        await measure.mock.results.at(-1)?.value;
        await new Promise((resolve) => setImmediate(resolve));
      };
      expect(left()).toBe(0);
      const use = cache.use();
      write(join(cache.path, ...Array.from({ length: 30 }, (_, at) => `d${at}`), "b"), 1, 1);
      use[Symbol.dispose]();
      await measured();
      expect(cache.fault()).toContain("more than 24 deep");
      expect(left()).toBe(1);
      await measured();
      expect(cache.fault()).toBeUndefined();
      expect(left()).toBe(0);
      expect(measure).toHaveBeenCalledTimes(2);
    }),
  );

  it("is deleted at whatever depth and modes, and one that cannot be stops nobody", async () => {
    using all = caches(KIBIBYTE ** 2);
    // Longer than a path may be.
    const nest = `for (let depth = 0; depth < 40; depth += 1) {
      require("node:fs").mkdirSync("x".repeat(200));
      process.chdir("x".repeat(200));
    }
    require("node:fs").chmodSync(".", 0);`;
    execFileSync(process.execPath, ["-e", nest], { cwd: pathOf(all, "gone") });
    using next = caches(KIBIBYTE ** 2);
    await next.keepOnly(new Set());
    expect(readdirSync(join(folder, "caches"))).toEqual([]);
  });

  it("goes with its deployment", async () => {
    using all = caches(KIBIBYTE ** 2);
    for (const id of ["kept", "gone", "deleted"]) {
      write(join(pathOf(all, id), "weights"), KIBIBYTE, 1);
    }
    await all.delete("deleted");
    using next = caches(KIBIBYTE ** 2);
    await next.keepOnly(new Set(["kept"]));
    expect(readdirSync(join(folder, "caches"))).toEqual(["kept"]);
  });
});
