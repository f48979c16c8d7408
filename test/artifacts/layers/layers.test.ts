/** System packages, from an archive of the test's own to a program in the sandbox. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FolderStore } from "../../../src/artifacts/environments/folder-store.ts";
import { Apt } from "../../../src/artifacts/layers/apt.ts";
import { Layers } from "../../../src/artifacts/layers/layers.ts";
import { readSystemLock } from "../../../src/artifacts/layers/lock.ts";
import { spawnSandboxed } from "../../../src/pool/sandbox/spawn.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { Archive, skipped } from "./archive.ts";

const MEBIBYTE = 1024 ** 2;
const PATH = process.env.PATH ?? "";

describe.skipIf(skipped)(`system packages${skipped}`, () => {
  let home: string;
  let archive: Archive;
  beforeEach(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "tessera-layers-")));
    archive = await Archive.open();
  });
  afterEach(async () => {
    await archive[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  });

  const open = async ({ maxMiB = 64, searchPath = PATH } = {}): Promise<Layers> => {
    const folder = join(home, "store");
    const log = { info() {}, warn() {} };
    const maxBytesPerOrganization = maxMiB * MEBIBYTE;
    const folders = new FolderStore({ folder, maxBytesPerOrganization, log, now: Date.now });
    await folders.start();
    const { settings } = archive;
    const aptFolder = join(folder, "apt");
    return new Layers({ folders, aptFolder, settings, searchPath, env: {}, now: Date.now });
  };

  it("locks what is named with all that it needs, except the C library, in one form", async () => {
    archive.add("tool", { depends: "helper, libc6" });
    archive.add("helper", { version: "2:3.0-1" });
    const layers = await open();
    const lock = await layers.lock(["tool"]);
    expect(readSystemLock(lock).map(({ name, version }) => `${name}=${version}`)).toEqual([
      "coreutils=1.0",
      "dash=1.0",
      "grep=1.0",
      "helper=2:3.0-1",
      "sed=1.0",
      "tool=1.0",
    ]);
    expect(await layers.lock(["tool", "helper"])).toBe(lock);
  });

  it.each([
    ["-oDir=/", "no name of a system package"],
    ["./tool.deb", "no name of a system package"],
    ["/etc/passwd", "no name of a system package"],
    ["http://localhost/tool.deb", "no name of a system package"],
    ["tool-", "no name of a system package"],
    ["tool*", "no name of a system package"],
    ["tool=1.0=-o", "no name of a system package"],
    ["to.l", "Unable to locate package to.l"],
    ["absent", "Unable to locate package absent"],
    ["tool=9.9", "Version '9.9' for 'tool' was not found"],
  ])("refuses to lock %s, and says so", async (name, message) => {
    archive.add("tool");
    const layers = await open();
    await expect(layers.lock([name])).rejects.toThrow(message);
  });

  it("refuses 100,000 packages by their names and in a lock", async () => {
    const layers = await open();
    const names = Array.from({ length: 100_000 }, (_, number) => `tool${number}`);
    await expect(layers.lock(names)).rejects.toThrow("at most 64 names");
    const lines = names.map((name) => `${name} 1.0 all 1 ${"0".repeat(64)}\n`);
    await expect(layers.hold({ lock: lines.join("") })).rejects.toThrow("at most 1000 may be");
  });

  it("lets sixteen wait for a lock, and twelve of one organization", async () => {
    archive.add("tool");
    const layers = await open();
    const locked = async (organizationId: string, count: number) => {
      const locks = Array.from({ length: count }, () => layers.lock(["tool"], { organizationId }));
      const ended = await Promise.allSettled(locks);
      return ended.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
    };
    const [ofOne, ofOther] = await Promise.all([locked("acme", 13), locked("globex", 5)]);
    expect(ofOne).toEqual([
      expect.stringMatching(/the organization has its share: at most 12 of the 16 .*: try again/),
    ]);
    expect(ofOther).toEqual([expect.stringMatching(/all are taken.*: try again later/)]);
  });

  it("says what to do where there is no apt", async () => {
    const layers = await open({ searchPath: "/nowhere" });
    await expect(layers.lock(["tool"])).rejects.toThrow("this machine has no apt");
  });

  it("makes a layer once for all who hold it at once, and keeps it", async () => {
    archive.add("tool", { files: { "usr/share/tool/text": "hello" } });
    const layers = await open();
    const lock = await layers.lock(["tool"]);
    const said: string[] = [];
    const onProgress = (line: string) => said.push(line);
    const [one, two] = await Promise.all([
      layers.hold({ lock }, { onProgress }),
      layers.hold({ lock }),
    ]);
    expect(one.folder).toBe(two.folder);
    expect(archive.served.toSorted()).toEqual(
      ["coreutils", "dash", "grep", "sed", "tool"].map((name) => `/./${name}_1.0_all.deb`),
    );
    expect(said).toContain("installs system packages: 0 of 1 MiB");
    const again = await (await open()).hold({ lock });
    expect(again.folder).toBe(one.folder);
    expect(archive.served).toHaveLength(5);
  });

  it("goes on from the packages that were downloaded when the node was killed", async () => {
    archive.add("tool");
    const layers = await open();
    const lock = await layers.lock(["tool"]);
    const folder = join(home, "store/apt");
    const { settings } = archive;
    const apt = new Apt({ folder, settings, searchPath: PATH, env: {}, now: Date.now });
    await apt.download(readSystemLock(lock).slice(0, 3));
    expect(archive.served).toHaveLength(3);
    await layers.hold({ lock });
    expect(archive.served).toHaveLength(5);
  });

  it("removes what was downloaded a day ago for a layer that was never made", async () => {
    archive.add("tool");
    const lock = readSystemLock(await (await open()).lock(["tool"]));
    const folder = join(home, "store/apt");
    const { settings } = archive;
    const options = { folder, settings, searchPath: PATH, env: {} };
    const [first, ...others] = lock;
    const day = 24 * 60 * 60_000;
    const kept = await new Apt({ ...options, now: Date.now }).download(first ? [first] : []);
    await new Apt({ ...options, now: () => Date.now() + day + 1_000 }).download(others);
    expect([...kept.values()].map((file) => existsSync(file))).toEqual([false]);
  });

  it("makes a damaged layer again before a worker uses it", async () => {
    archive.add("tool", { files: { "usr/share/tool/text": "hello" } });
    const lock = await (await open()).lock(["tool"]);
    const { folder } = await (await open()).hold({ lock });
    writeFileSync(join(folder, "usr/share/tool/text"), "hell0");
    const held = await (await open()).hold({ lock });
    await expect(held.verify()).rejects.toThrow("has been made again");
    expect(readFileSync(join(folder, "usr/share/tool/text"), "utf8")).toBe("hello");
  });

  it("names a version that the archive has no longer", async () => {
    archive.add("tool");
    const layers = await open();
    const lock = await layers.lock(["tool"]);
    archive.add("tool", { version: "2.0" });
    await expect(layers.hold({ lock })).rejects.toThrow(
      /Version '1.0' for 'tool' was not found: deploy it again/,
    );
  });

  it("names a package that is another one under the same version", async () => {
    archive.add("tool");
    const layers = await open();
    const lock = await layers.lock(["tool"]);
    archive.add("tool", { files: { "usr/share/tool/other": "another" } });
    const other = new Layers({
      ...{
        folders: new FolderStore({
          folder: join(home, "store"),
          maxBytesPerOrganization: MEBIBYTE,
          log: { info() {}, warn() {} },
          now: Date.now,
        }),
      },
      ...{
        aptFolder: join(home, "apt"),
        settings: archive.settings,
        searchPath: PATH,
        env: {},
        now: Date.now,
      },
    });
    await expect(other.hold({ lock })).rejects.toThrow("another tool 1.0 than its lock names");
  });

  it("links libraries that alternatives would choose to where the loader looks", async () => {
    archive.add("blas", { files: { "usr/lib/x86_64-linux-gnu/blas/libblas.so.3": "a library" } });
    const layers = await open();
    const { folder } = await layers.hold({ lock: await layers.lock(["blas"]) });
    const path = join(folder, "usr/lib/x86_64-linux-gnu/libblas.so.3");
    expect(readlinkSync(path)).toBe("blas/libblas.so.3");
  });

  it("runs no script of a package, and keeps no bits that give rights", async () => {
    archive.add("tool", {
      files: {
        "bin/tool": (path) => {
          writeFileSync(path, "#!/bin/sh\n");
          chmodSync(path, 0o6755);
        },
        "usr/share/doc/tool/readme": "nobody reads this",
      },
    });
    const layers = await open();
    const { folder } = await layers.hold({ lock: await layers.lock(["tool"]) });
    expect(statSync(join(folder, "usr/bin/tool")).mode & 0o7777).toBe(0o755);
    expect(existsSync(join(folder, "bin"))).toBe(false);
    expect(existsSync(join(folder, "usr/share/doc"))).toBe(false);
    expect(existsSync(archive.scriptMark)).toBe(false);
  });

  it.each<[string, Parameters<Archive["add"]>[1], RegExp]>([
    [
      "leaves its folder",
      { data: tarOf("../../etc/evil") },
      /tool is not used: it cannot be unpacked/,
    ],
    [
      "has a pipe",
      { files: { "usr/bin/pipe": (path) => void execFileSync("mkfifo", [path]) } },
      /usr\/bin\/pipe is neither a folder, nor a file, nor a link/,
    ],
    [
      "has a link for a folder of the system",
      { files: { lib: (path) => symlinkSync("/etc", path) } },
      /usr\/lib is no folder/,
    ],
    [
      "has a folder where another has a link",
      { depends: "a-link", files: { "usr/share/linked/evil": "evil" } },
      /usr\/share\/linked is a folder, and in another package it is not/,
    ],
    [
      "is a bomb",
      {
        files: {
          "usr/share/zeros": (path) => {
            writeFileSync(path, "");
            truncateSync(path, 96 * MEBIBYTE);
          },
        },
      },
      /more than the 64 MiB of disk/,
    ],
  ])("refuses a package that %s", async (_, options, message) => {
    archive.add("a-link", { files: { "usr/share/linked": (path) => symlinkSync("/etc", path) } });
    archive.add("tool", options);
    const layers = await open();
    const lock = await layers.lock(["tool"]);
    await expect(layers.hold({ lock })).rejects.toThrow(message);
    expect(existsSync("/etc/evil")).toBe(false);
  });

  it.skipIf(noSandbox)(`are where programs look for them in the sandbox${noSandbox}`, async () => {
    archive.add("tool", {
      files: {
        "bin/tool": (path) => copyFileSync("/usr/bin/cat", path),
        "usr/share/tool/text": "hello from a package",
        "etc/tool.conf": "settings",
        "usr/bin/beside": (path) => symlinkSync("/usr/share/tool/text", path),
      },
    });
    const layers = await open();
    const { folder } = await layers.hold({ lock: await layers.lock(["tool"]) });
    const { bubblewrap, filter } = kernelSandbox();
    const scratch = join(home, "scratch");
    mkdirSync(scratch);
    const node = realpathSync(process.execPath);
    const run = async (program: string, ...args: string[]): Promise<string> => {
      const { child } = spawnSandboxed({
        ...{ bubblewrap: [bubblewrap], filter: filter(), layer: folder, writable: [scratch] },
        // A folder of the machine beside those of packages.
        ...{ read: [node, "/usr/share/zoneinfo", "/etc/ssl/certs"], program, args, env: {} },
      });
      const { stdout, stderr } = child;
      return stdout && stderr ? (await Promise.all([text(stdout), text(stderr)])).join("") : "";
    };
    expect(
      await run("/bin/tool", "/usr/share/tool/text", "/etc/tool.conf", "/usr/bin/beside"),
    ).toBe("hello from a packagesettingshello from a package");
    expect(await run(node, "-p", "require('fs').existsSync('/etc/passwd')")).toBe("false\n");
    expect(await run(node, "-e", "require('fs').writeFileSync('/usr/bin/tool', '')")).toContain(
      "EROFS",
    );
  });
});

/** An archive (tar) of one file under this name, which leaves the folder. */
function tarOf(name: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "tessera-tar-"));
  mkdirSync(join(folder, "a/b"), { recursive: true });
  mkdirSync(join(folder, "etc"));
  writeFileSync(join(folder, "etc/evil"), "evil");
  const tar = execFileSync("tar", ["-cPf", "-", "-C", join(folder, "a/b"), name]);
  rmSync(folder, { recursive: true });
  return tar;
}
