import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withinDisk } from "../../../src/artifacts/environments/install.ts";

const MEBIBYTE = 1024 ** 2;

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "tessera-disk-"));
  folder = join(base, "made");
  mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** Bytes that no file system keeps in less room. */
function write(path: string, mebibytes: number): void {
  writeFileSync(
    path,
    crypto
      .getRandomValues(Buffer.alloc(MEBIBYTE / 16))
      .toString("hex")
      .repeat(8 * mebibytes),
  );
}

const limits = { maxBytes: 8 * MEBIBYTE, maxFiles: 100, signal: undefined };

describe("an installation within its share of the disk", () => {
  it("goes on where somebody else writes on the disk meanwhile", async () => {
    const done = withinDisk({ ...limits, folder }, async (signal) => {
      write(join(base, "of-others"), 16);
      write(join(folder, "own"), 4);
      signal.throwIfAborted();
      return "made";
    });
    await expect(done).resolves.toBe("made");
  });

  it("ends where what it has made takes more, in bytes or files", async () => {
    const bytes = withinDisk({ ...limits, folder }, async () => {
      mkdirSync(join(folder, "below"));
      write(join(folder, "below/own"), 12);
    });
    await expect(bytes).rejects.toThrow("more than the 8 MiB of disk");
    const files = withinDisk({ ...limits, maxBytes: 1024 * MEBIBYTE, folder }, async () => {
      for (let count = 0; count < 400; count += 1) {
        writeFileSync(join(folder, String(count)), "x");
      }
    });
    await expect(files).rejects.toThrow("more than 100 files");
  });

  it("is broken off while it runs", async () => {
    const never = withinDisk({ ...limits, folder }, (signal) => {
      write(join(folder, "own"), 12);
      return new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    });
    await expect(never).rejects.toThrow("more than the 8 MiB of disk");
  });
});
