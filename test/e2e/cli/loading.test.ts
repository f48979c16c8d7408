/** What a command loads: the number of modules is what a person waits for before it starts. */
import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ENTRY = fileURLToPath(new URL("entry.ts", import.meta.url));
const HOOKS = new URL("loading-hooks.ts", import.meta.url).href;
const BUILT = fileURLToPath(new URL("../../../bin/tessera.js", import.meta.url));

/** Has a program write the processor time of its process, all threads together, as it exits. */
const TIMED = `data:text/javascript,${encodeURIComponent(
  'import{writeSync}from"node:fs";process.on("exit",()=>{' +
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the code of the program
    "const{user,system}=process.cpuUsage();writeSync(2,`microseconds:${user+system}`)})",
)}`;

/** The processor time of a run of Node, in ms: the least of five, for others use the machine, too. */
async function processorMs(args: readonly string[]): Promise<number> {
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: "/nonexistent" };
  const runs: number[] = [];
  for (let run = 0; run < 5; run += 1) {
    const { stderr } = await promisify(execFile)(process.execPath, ["--import", TIMED, ...args], {
      env,
    });
    runs.push(Number(/microseconds:(\d+)/.exec(stderr)?.[1]) / 1_000);
  }
  return Math.min(...runs);
}

/** Runs a command; resolves with the modules that it has loaded, from the root of the project. */
async function loaded(args: readonly string[]): Promise<string[]> {
  const options = { env: { PATH: process.env.PATH, XDG_CONFIG_HOME: "/nonexistent" } };
  const { stderr } = await promisify(execFile)(
    process.execPath,
    ["--import", HOOKS, ENTRY, ...args],
    options,
  );
  const line = stderr.split("\n").find((each) => each.startsWith("modules:")) ?? "";
  return (JSON.parse(line.slice("modules:".length)) as string[]).map((url) =>
    url.replace(/^file:.*?\/(src|gen|node_modules)\//, "$1/"),
  );
}

const packagesOf = (modules: readonly string[]) =>
  new Set(modules.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
const foldersOf = (modules: readonly string[]) =>
  new Set(modules.flatMap((path) => /^src\/(\w+)\//.exec(path)?.[1] ?? []));

describe("tessera --version", () => {
  it.each([["--version"], ["--help"]])(
    "loads no command, and of packages only commander: %s",
    async (flag) => {
      const modules = await loaded([flag]);
      expect([...packagesOf(modules)]).toEqual(["commander"]);
      expect([...foldersOf(modules)].toSorted()).toEqual(["cli", "config"]);
      expect(modules.filter((path) => path.startsWith("src/cli/")).length).toBeLessThanOrEqual(5);
      expect(modules.length).toBeLessThanOrEqual(30);
    },
  );
});

describe("tessera call", () => {
  let server: Server;
  beforeAll(async () => {
    server = createServer((req, res) => {
      res.setHeader("content-type", "application/json");
      const route = { name: "greet", is_task: false, input: {}, output: {} };
      const schema = { name: "greeter", routes: [route] };
      res.end(JSON.stringify(req.url === "/schema.json" ? schema : "hello"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  it("loads no server, no platform client and no protobuf", async () => {
    const { port } = server.address() as AddressInfo;
    const modules = await loaded(["call", "greet", "--url", `http://127.0.0.1:${port}`]);
    expect([...packagesOf(modules)]).toEqual(["commander"]);
    expect([...foldersOf(modules)].toSorted()).toEqual(["cli", "client", "collections", "config"]);
    expect(modules.filter((path) => path.startsWith("gen/"))).toEqual([]);
    expect(modules.length).toBeLessThanOrEqual(80);
  });

  it("takes at most 200 ms of processor time more than Node alone, as it is built", async () => {
    const { port } = server.address() as AddressInfo;
    const node = await processorMs(["--eval", "0"]);
    const called = await processorMs([BUILT, "call", "greet", "--url", `http://127.0.0.1:${port}`]);
    expect(called - node).toBeLessThan(200);
    expect((await processorMs([BUILT, "call", "--help"])) - node).toBeLessThan(100);
  });
});
