import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ScratchFolders } from "../../src/deployments/scratch.ts";
import { startTimeTicks } from "../../src/pool/usage.ts";

const before = process.env.TMPDIR;
let temporary: string;

/** By then the folders that a test makes are old. */
const LATER_MS = Date.now() + 3_600_000;

/** The folder that a node left behind. */
function leftFolder(): string {
  const left = join(temporary, "tessera-node-x");
  mkdirSync(left);
  return left;
}

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), "tessera-scratch-test-"));
  process.env.TMPDIR = temporary;
});

afterEach(() => {
  if (before === undefined) {
    delete process.env.TMPDIR;
  } else {
    process.env.TMPDIR = before;
  }
  rmSync(temporary, { recursive: true, force: true });
});

/** A process that runs until it is killed, and has changed its title. */
async function endless() {
  const file = join(temporary, "endless.js");
  const code = 'process.title = "x"; process.stdout.write("up"); setInterval(() => {}, 1000);';
  writeFileSync(file, code);
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "ignore"] });
  await once(child.stdout, "data");
  return child;
}

const SPOIL = {
  "that let nobody in": `
    for (const name of ["a/b/c", "d"]) {
      mkdirSync(join(folder, name), { recursive: true });
      writeFileSync(join(folder, name, "file"), "x");
    }
    for (const name of ["a/b/c", "a/b", "d", "."]) {
      chmodSync(join(folder, name), name === "d" ? 0o555 : 0);
    }`,
  "that are too deep for a path": `
    process.chdir(folder);
    for (let depth = 0; depth < 5000; depth += 1) {
      mkdirSync("x");
      process.chdir("x");
    }
    writeFileSync("file", "x");
    process.chdir("/");`,
};

/** As an ordinary user, whom modes of folders hold up; root is one without these capabilities. */
function runOrdinary(program: string): void {
  const file = join(temporary, "program.mjs");
  writeFileSync(file, program);
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", file];
  const [name = "", ...args] =
    process.getuid?.() === 0
      ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search", ...command]
      : command;
  execFileSync(name, args, { stdio: "pipe" });
}

describe("scratch folders", () => {
  test("are made for each worker and removed with it", async () => {
    const folders = new ScratchFolders(LATER_MS);
    const [one, two] = [folders.create(), folders.create()];
    await folders.remove(one, 1);
    expect([existsSync(one), existsSync(two)]).toEqual([false, true]);
    folders.removeAll();
    expect(existsSync(two)).toBe(false);
  });

  test.each(Object.entries(SPOIL))(
    "are removed with folders %s, of a worker, of a node that ends and of one that was killed",
    (_, spoil) => {
      const url = new URL("../../src/deployments/scratch.ts", import.meta.url).href;
      const left = join(leftFolder(), "worker-1");
      runOrdinary(`
        import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
        import { join } from "node:path";
        import { ScratchFolders } from ${JSON.stringify(url)};
        const folders = new ScratchFolders(${LATER_MS});
        const [one, two, left] = [folders.create(), folders.create(), ${JSON.stringify(left)}];
        const gone = (folder) => {
          if (existsSync(folder)) throw new Error("it is still there");
        };
        mkdirSync(left, { recursive: true });
        for (const folder of [one, two, left]) { ${spoil} }
        await folders.remove(one, 1);
        gone(one);
        folders.removeAll();
        gone(two);
        new ScratchFolders(${LATER_MS}).removeAll();
        gone(left);
      `);
      expect(existsSync(left)).toBe(false);
    },
  );

  test("of a node that is gone are removed by the next, with the worker that it left behind", async () => {
    const orphan = await endless();
    const left = leftFolder();
    mkdirSync(join(left, "worker-1"));
    writeFileSync(join(left, `${orphan.pid}.pid`), String(startTimeTicks(orphan.pid ?? 0)));
    const ended = once(orphan, "exit");
    new ScratchFolders(Date.now()).removeAll();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(existsSync(left)).toBe(false);
  });

  test("of a node that runs are left alone", () => {
    const running = new ScratchFolders(LATER_MS);
    const folder = running.create();
    new ScratchFolders(LATER_MS).removeAll();
    expect(existsSync(folder)).toBe(true);
    running.removeAll();
  });

  test("of a node that may be just starting are left alone", () => {
    const starting = join(temporary, "tessera-starting-x");
    mkdirSync(starting);
    new ScratchFolders(Date.now()).removeAll();
    expect(existsSync(starting)).toBe(true);
    new ScratchFolders(LATER_MS).removeAll();
    expect(existsSync(starting)).toBe(false);
  });

  test("are removed while other nodes start, which sweep what dead ones left", async () => {
    const url = new URL("../../src/deployments/scratch.ts", import.meta.url).href;
    const file = join(temporary, "starting.mjs");
    writeFileSync(
      file,
      `import { ScratchFolders } from ${JSON.stringify(url)};
      process.stdout.write("up");
      for (;;) new ScratchFolders(Date.now()).removeAll();`,
    );
    const args = ["--disable-warning=ExperimentalWarning", file];
    const others = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(others.stdout, "data");
    try {
      for (let round = 0; round < 100; round += 1) {
        const folders = new ScratchFolders(Date.now());
        folders.create();
        folders.removeAll();
      }
    } finally {
      others.kill("SIGKILL");
      await once(others, "exit");
    }
  });

  test("are made again when a cleaner of temporary files took the node's own", () => {
    const folders = new ScratchFolders(LATER_MS);
    rmSync(dirname(folders.create()), { recursive: true });
    expect(existsSync(folders.create())).toBe(true);
    folders.removeAll();
  });

  test("do not name a process for killing that has got a worker's process id since", async () => {
    const other = await endless();
    const left = leftFolder();
    writeFileSync(
      join(left, `${other.pid}.pid`),
      String((startTimeTicks(other.pid ?? 0) ?? 0) - 1),
    );
    new ScratchFolders(LATER_MS).removeAll();
    expect(existsSync(left)).toBe(false);
    expect(other.kill(0)).toBe(true);
    other.kill("SIGKILL");
  });
});
