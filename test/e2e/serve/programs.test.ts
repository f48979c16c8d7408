/** `tessera serve` of a folder whose tessera.yaml names a program. */
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "../cli/program.ts";

const WEB = fileURLToPath(new URL("../../fixtures/programs/web", import.meta.url));

/** Whether a process is there, and has not ended. */
function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("tessera serve of a program", () => {
  let folder: string;
  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-served-programs-")));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** A folder of its own, with these lines as its settings. */
  const folderWith = (...lines: string[]): string => {
    const home = mkdtempSync(join(folder, "program-"));
    cpSync(join(WEB, "server.js"), join(home, "server.js"));
    writeFileSync(join(home, "package.json"), '{"type":"module"}');
    writeFileSync(join(home, "tessera.yaml"), ["name: web", ...lines, ""].join("\n"));
    return home;
  };

  it("gives each worker a port of its own, and ends the programs with it", async () => {
    const home = folderWith(
      'command: [node, server.js, --port, "{port}", "{model:weights}/file"]',
      "health: /health",
      "env: { GREETING: hello }",
    );
    const pids = new Set<number>();
    {
      const { program, url } = await Program.serve([
        ...[home, "--workers", "2", "--model", `weights=${home}`],
      ]);
      await using _ = program;
      const ports = new Set<string>();
      await expect
        .poll(async () => {
          const asked = Array.from({ length: 20 }, () => fetch(`${url}/who`));
          for (const answer of await Promise.all(asked)) {
            const { pid, port, cwd, args } = (await answer.json()) as {
              readonly args: readonly string[];
              readonly pid: number;
              readonly port: string;
              readonly cwd: string;
            };
            expect(cwd).toBe(home);
            expect(args).toEqual([`${home}/file`]);
            pids.add(pid);
            ports.add(port);
          }
          return ports.size;
        })
        .toBe(2);
      expect(await (await fetch(`${url}/nothing`)).text()).toBe("GET /nothing");
    }
    await expect.poll(() => [...pids].some(lives)).toBe(false);
  }, 60_000);

  it("leaves no program behind when it is killed", async () => {
    const home = folderWith('command: [node, server.js, --port, "{port}"]');
    const { program, url } = await Program.serve([home, "--workers", "1"]);
    await using _ = program;
    const { pid } = (await (await fetch(`${url}/who`)).json()) as { readonly pid: number };
    expect(lives(pid)).toBe(true);
    program.send("SIGKILL");
    await expect.poll(() => lives(pid)).toBe(false);
  }, 60_000);

  it("says that a port is taken, and what gives a free one", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { readonly port: number };
    const home = folderWith(`command: [node, server.js, --port, ${port}]`, `port: ${port}`);
    const { stderr, code } = await ended(home);
    taken.close();
    expect(code).not.toBe(0);
    expect(stderr).toContain(
      `the program "node" at / cannot have port ${port}: something listens there`,
    );
  }, 60_000);

  it.each([
    [["command: [sleep, 100]"], /does not listen on port \d+, which \{port\} in its command/],
    [["command: [node, server.js, --port, 9998]", "port: 9999"], /not listen on its port 9999/],
    [["command: [sh, -c, 'sleep 100 & exit 0']"], /ended with code 0: it has to stay/],
    [["command: [llama-serve, -m, x]"], /the program "llama-serve" at \/ is not there/],
    [["command: [./server.js]"], /may not be executed/],
  ])(
    "refuses what is none: %j",
    async (lines, said) => {
      const { stderr, code } = await ended(folderWith(...lines));
      expect(code).not.toBe(0);
      expect(stderr).toMatch(said);
    },
    60_000,
  );

  it("says where neither service nor command is", async () => {
    const home = join(folder, "empty");
    mkdirSync(home);
    expect((await ended(home)).stderr).toContain("there is no");
    writeFileSync(join(home, "tessera.yaml"), "name: x\n");
    expect((await ended(home)).stderr).toContain("or a command, such as command: [./server]");
    writeFileSync(join(home, "tessera.yaml"), "command: [a]\n");
    expect((await ended(home)).stderr).toContain("has a command and no name");
  }, 60_000);
});

async function ended(home: string) {
  const flags = ["--port", "0", "--workers", "1", "--ready-timeout", "3s"];
  await using program = new Program(["serve", home, ...flags]);
  return await program.ended;
}
