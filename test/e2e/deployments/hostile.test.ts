import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type LaunchOf, launchersFor } from "../../../src/pool/launchers.ts";
import { cpuTimeMs } from "../../../src/pool/usage.ts";
import { SqliteStorage } from "../../../src/storage/sqlite/storage.ts";
import { kernelSandbox, skipped } from "../../pool/sandbox/available.ts";
import { bundled, Hosting, type RevisionSettings, source } from "./hosting.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/hostile.ts", import.meta.url));
const MEBIBYTE = 1024 ** 2;
const SECRET = "a secret of the node";

let code: string;
let folder: string;
beforeAll(async () => {
  code = await bundled({ entryPoints: [SERVICE] });
  folder = await realpath(await mkdtemp(join(tmpdir(), "tessera-data-")));
  await mkdir(join(folder, "artifacts/other"), { recursive: true });
  for (const name of ["keys.json", "artifacts/other/service.js", "secret.txt"]) {
    writeFileSync(join(folder, name), SECRET);
  }
  await using storage = new SqliteStorage(join(folder, "tessera.db"));
  await storage.start();
  process.env.TESSERA_TEST_SECRET = SECRET;
});
afterAll(async () => {
  delete process.env.TESSERA_TEST_SECRET;
  await rm(folder, { recursive: true });
});

/** The levels of the sandbox; at each, the permission model stands inside. */
const LEVELS: [string, LaunchOf][] = [
  ["permission", launchersFor()],
  ...(skipped ? [] : [["kernel", launchersFor(kernelSandbox())] satisfies [string, LaunchOf]]),
];

/** The process id of a worker as this process sees it. */
function pidOf({ scratch }: { readonly scratch: string }): number {
  const pids = readdirSync("/proc").filter((name) => {
    const commandLine = /^\d+$/.test(name) ? commandLineOf(name) : "";
    return commandLine.startsWith(process.execPath) && commandLine.includes(scratch);
  });
  expect(pids).toHaveLength(1);
  return Number(pids[0]);
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

async function hostile(launchOf: LaunchOf, settings: RevisionSettings = {}): Promise<Hosting> {
  const hosting = await Hosting.start({ launchOf });
  const revision = await hosting.revision("", settings);
  await hosting.hosted.deploy({ ...revision, code });
  return hosting;
}

describe.each(LEVELS)("a hostile service at level %s", (level, launch) => {
  let hosting: Hosting;
  beforeAll(async () => {
    hosting = await hostile(launch);
  });
  afterAll(() => hosting[Symbol.asyncDispose]());

  const DENIED = "ERR_ACCESS_DENIED";
  const own = "a service may not send signals to other processes";
  it.each([
    ["read a file", "tessera.db", DENIED],
    ["read a file", "keys.json", DENIED],
    ["read a file", "artifacts/other/service.js", DENIED],
    ["read a file", `/proc/${process.pid}/environ`, DENIED],
    ["read a file", "/proc/self/environ", DENIED],
    ["read by a way round", "keys.json", DENIED],
    ["list a folder", ".", DENIED],
    ["list a folder", "artifacts", DENIED],
    ["list a folder", "/proc", DENIED],
    ["read a database", "tessera.db", "ERR_UNKNOWN_BUILTIN_MODULE"],
    ["write a file", "written", DENIED],
    ["append to a file", "keys.json", DENIED],
    ["delete a file", "keys.json", DENIED],
    ["copy a file", "keys.json", DENIED],
    ["move a file", "keys.json", DENIED],
    ["read through a link", "keys.json", DENIED],
    ["read through a hard link", "keys.json", DENIED],
    ["run a command", "", DENIED],
    ["start a process", "", DENIED],
    ["fork itself", "", DENIED],
    ["replace itself", "", DENIED],
    ["start a thread", "", DENIED],
    ["start a thread of the loader", "", DENIED],
    ["load native code", "addon.node", "ERR_DLOPEN_DISABLED"],
    ["get at the bindings", "", DENIED],
    ["open its debugger", "", DENIED],
    ["signal its node", "", own],
    ["signal its node by an imported function", "", own],
    ["signal its node by a hidden function", "", "is not there"],
    ["open the debugger of its node", "", "is not there"],
    ["signal its group", "", own],
    ["slow its node down", "", DENIED],
    ["set flags of V8", "", DENIED],
    ["listen on a socket in the file system", "socket", DENIED],
    ["connect to a socket in the file system", "/var/run/docker.sock", DENIED],
  ])("cannot %s (%s)", async (what, path, refused) => {
    const place = path.startsWith("/") ? path : join(folder, path);
    expect(await hosting.call("attempt", { what, path: place })).toEqual({ refused });
    expect(readFileSync(join(folder, "keys.json"), "utf8")).toBe(SECRET);
  });

  it("has nothing of the node's environment, and works in its scratch folder", async () => {
    const facts = (await hosting.call("facts")) as Record<string, unknown>;
    expect(facts).toMatchObject({ cwd: facts.scratch });
    // Bubblewrap sets PWD, to the same folder.
    // It says that the service has no GPU.
    const own = ["CUDA_VISIBLE_DEVICES", "LANG", ...(level === "kernel" ? ["PWD"] : []), "TMPDIR"];
    expect(facts.env).toEqual(own);
    expect(JSON.stringify(facts)).not.toContain(SECRET);
  });

  // Node 24 has no permission for the network; what a service listens on leads to itself only.
  it("may listen on a port", async () => {
    expect(await hosting.call("listen")).toBe("it listens");
  });
});

it.each(LEVELS)(
  "a service at level %s that sends 667 bytes of V8's format loses its worker, and its neighbour goes on",
  async (_, launch) => {
    await using hosting = await hostile(launch);
    await using neighbour = await Hosting.start();
    await neighbour.deploy(source('say: api({}, () => "still here")'));
    const residentBytes = process.memoryUsage.rss();
    const taskId = await hosting.submit("inflate");
    const said = /a message in a format that the protocol does not have/;
    await expect.poll(() => hosting.logOf(taskId)).toContainEqual(expect.stringMatching(said));
    expect(await neighbour.call("say")).toBe("still here");
    expect(process.memoryUsage.rss() - residentBytes).toBeLessThan(100 * MEBIBYTE);
    await expect.poll(() => hosting.call("facts")).toHaveProperty("pid");
  },
);

describe.each(LEVELS)("a service at level %s that exhausts", (_, launch) => {
  let hosting: Hosting;
  afterEach(() => hosting[Symbol.asyncDispose]());

  const LIMITS = { memoryBytes: 192 * MEBIBYTE, diskBytes: 50 * MEBIBYTE };
  it.each([
    [
      "the heap",
      /out of memory: (its heap had no room left within its limit|it used \d+ MiB) of 192 MiB/,
    ],
    ["buffers", /out of memory: it used \d+ MiB of 192 MiB/],
    ["large files", /out of disk: it stored \d+ MiB of 50 MiB in its scratch folder/],
    ["files without a name", /out of disk: it stored \d+ MiB of 50 MiB in its scratch folder/],
    ["many files", /out of disk: it stored more than 10000 files/],
  ])("%s is ended with a reason in the log and the attempts of its task", async (what, reason) => {
    hosting = await hostile(launch, LIMITS);
    const taskId = await hosting.submit("exhaust", { what });
    await expect.poll(() => hosting.logOf(taskId)).toContainEqual(expect.stringMatching(reason));
    const kind = reason.source.startsWith("out of memory") ? "out_of_memory" : "worker_lost";
    await expect
      .poll(async () => (await hosting.hosted.tasks.get({ taskId })).returned[0]?.failure)
      .toEqual({ reason: kind, code: "internal", message: expect.stringMatching(reason) });
    await hosting.hosted.queue.cancel({ taskId }, true).catch(() => {
      // It may have ended by itself, for the same reason again and again.
    });
    await expect.poll(() => hosting.call("facts")).toHaveProperty("pid");
  });

  it("the processor gets no more of it than its limit", async () => {
    hosting = await hostile(launch, { cpus: 0.2 });
    const pid = pidOf((await hosting.call("facts")) as { scratch: string });
    await hosting.submit("exhaust", { what: "the processor" });
    // What it had left over is spent first.
    const spentMs = cpuTimeMs(pid) ?? 0;
    await expect.poll(() => (cpuTimeMs(pid) ?? 0) - spentMs).toBeGreaterThan(600);
    const [startMs, startCpuMs] = [performance.now(), cpuTimeMs(pid) ?? 0];
    await expect.poll(() => performance.now() - startMs).toBeGreaterThan(4_000);
    // A node that is late with a look lets it go on for longer, and gives it that much less later.
    const share = () => ((cpuTimeMs(pid) ?? 0) - startCpuMs) / (performance.now() - startMs);
    await expect.poll(share).toBeLessThan(0.3);
    await expect.poll(share).toBeGreaterThan(0.02);
  });

  it.each(["its output", "the channel"])(
    "%s is heard no further than its limit, and the node goes on",
    async (what) => {
      hosting = await hostile(launch, { logLinesPerSecond: 50 });
      await using neighbour = await Hosting.start();
      await neighbour.deploy(source('say: api({}, () => "still here")'));
      const taskId = await hosting.submit("exhaust", { what });
      const startedCpu = process.cpuUsage();
      const startedMs = performance.now();
      await expect
        .poll(() => hosting.lines.map(({ line, stream }) => `${stream}: ${line}`))
        .toContainEqual(
          expect.stringMatching(/^node: \d+ lines dropped: the limit is 50 a second/),
        );
      for (let call = 0; call < 20; call++) {
        expect(await neighbour.call("say")).toBe("still here");
      }
      const { user, system } = process.cpuUsage(startedCpu);
      const share = (user + system) / 1_000 / (performance.now() - startedMs);
      expect(share).toBeLessThan(0.8);
      expect(hosting.lines.length + (await hosting.logOf(taskId)).length).toBeLessThan(2_000);
    },
  );
});
