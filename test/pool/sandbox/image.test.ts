/** Where the machine's files are mounted over an image, which is somebody else's. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { machineLibraries } from "../../../src/pool/sandbox/bubblewrap.ts";
import { byOwnLoader, fitLibraries, rootArguments } from "../../../src/pool/sandbox/image.ts";
import { spawnSandboxed } from "../../../src/pool/sandbox/spawn.ts";
import { kernelSandbox, skipped as noSandbox } from "./available.ts";
import { emptyImage } from "./empty-image.ts";

let home: string;
let root: string;
let outside: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "tessera-root-")));
  root = join(home, "root");
  outside = join(home, "outside");
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(home, "file"), "");
});
afterEach(() => rmSync(home, { recursive: true }));

const placeOf = (inside: string, path = join(home, "file")): string =>
  rootArguments(root, [{ path, inside }]).at({ path, inside });

/** All that is in the image, by its paths. */
const contents = (): string[] => readdirSync(root, { recursive: true }).map(String).toSorted();

describe("the places of the machine's files in an image", () => {
  it("are made where the image has a folder, and covered where it has none", () => {
    mkdirSync(join(root, "usr/bin"), { recursive: true });
    writeFileSync(join(root, "usr/bin/tool"), "");
    mkdirSync(join(root, "empty"));
    const mounts = ["/usr/bin/node", "/usr/bin/tool", "/empty/a/b", "/var/lib/x/y", "/top"];
    const { before, at, after } = rootArguments(
      root,
      mounts.map((inside) => ({ path: join(home, "file"), inside })),
    );
    expect(before).toEqual(["--ro-bind", root, "/", "--tmpfs", "/empty", "--tmpfs", "/var"]);
    expect(after).toEqual(["--remount-ro", "/empty", "--remount-ro", "/var"]);
    expect(mounts.map((inside) => at({ path: "", inside }))).toEqual(mounts);
    expect(contents()).toEqual(
      ["empty", "top", "usr", "usr/bin", "usr/bin/node", "usr/bin/tool", "var"].toSorted(),
    );
  });

  it("are the same for all workers, whose own paths leave nothing behind", () => {
    for (const name of ["one", "two", "three"]) {
      expect(placeOf(`/var/lib/tessera/scratch/${name}`)).toBe(`/var/lib/tessera/scratch/${name}`);
    }
    expect(contents()).toEqual(["var"]);
  });

  it("are where links of the image lead inside, and never outside of it", () => {
    mkdirSync(join(root, "usr/lib"), { recursive: true });
    writeFileSync(join(root, "usr/lib/keep"), "");
    symlinkSync("usr/lib", join(root, "lib"));
    symlinkSync("/usr/lib", join(root, "absolute"));
    symlinkSync(`../../../../../..${outside}`, join(root, "up"));
    symlinkSync(outside, join(root, "out"));
    expect(placeOf("/lib/a")).toBe("/usr/lib/a");
    expect(placeOf("/absolute/b")).toBe("/usr/lib/b");
    expect(placeOf("/up/c")).toBe(`${outside}/c`);
    expect(placeOf("/out/d")).toBe(`${outside}/d`);
    expect(readdirSync(outside)).toEqual([]);
  });

  it.each<[string, () => void]>([
    ["a file where a folder is", () => writeFileSync(join(root, "opt"), "")],
    ["a folder where a file is", () => mkdirSync(join(root, "opt/node"), { recursive: true })],
    ["a link to itself", () => symlinkSync("opt", join(root, "opt"))],
    ["a link through what is not there", () => symlinkSync("/none/../usr", join(root, "opt"))],
  ])("are refused by name for %s", (_, make) => {
    make();
    expect(() => placeOf("/opt/node")).toThrow(/its image has \/\w+(\/node)? as something else/);
  });
});

describe.skipIf(noSandbox)(`an image that lies about its C library${noSandbox}`, () => {
  it("has no part in what limits its worker", async () => {
    const prlimit = "/usr/bin/prlimit";
    const { libraries } = await emptyImage(root);
    const machine = machineLibraries();
    const [own = "", loader = ""] = [machine?.folders[0], machine?.loader];
    for (const path of [`${own}/libc.so.6`, loader]) {
      mkdirSync(join(root, path, ".."), { recursive: true });
      rmSync(join(root, path), { force: true });
      writeFileSync(join(root, path), "GNU C Library (a lie) stable release version 99.9", {
        mode: 0o755,
      });
    }
    const lying = machine && (await fitLibraries(root, machine));
    expect(lying?.length).toBeLessThan(libraries.length);
    const scratch = join(home, "scratch");
    mkdirSync(scratch);
    const { bubblewrap, filter } = kernelSandbox();
    const run = async (command: readonly [string, ...string[]]): Promise<string> => {
      const [program, ...args] = command;
      const { child } = spawnSandboxed({
        ...{ bubblewrap: [bubblewrap], filter: filter({ processes: true }), writable: [scratch] },
        ...{ read: [prlimit], program, args, env: {} },
        image: { root, variables: {}, libraries: lying ?? [] },
      });
      const { stdout, stderr } = child;
      return stdout && stderr ? (await Promise.all([text(stdout), text(stderr)])).join("") : "";
    };
    expect(await run([prlimit, "--nproc"])).toContain("execvp");
    expect(await run(byOwnLoader([prlimit, "--nofile=77", prlimit, "--nofile"]))).toMatch(
      // The program that follows runs by the image's loader.
      /failed to execute|Exec format error/,
    );
    expect(await run(byOwnLoader([prlimit, "--nofile"]))).toContain("NOFILE");
    expect(readFileSync(join(root, loader), "utf8")).toContain("a lie");
  });
});
