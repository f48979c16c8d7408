/** What is left of a worker that cannot be started: nothing. */
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ScratchFolders } from "../../src/deployments/scratch.ts";
import { Workers } from "../../src/deployments/workers.ts";
import { launchAlone } from "../../src/pool/launch/alone.ts";
import type { Launch } from "../../src/pool/launch/launch.ts";
import { DEFAULT_LIMITS } from "../../src/pool/limits.ts";
import { ServiceProcess } from "../../src/pool/process.ts";
import type { MemoryGroup } from "../../src/pool/sandbox/memory-groups.ts";
import { seccompFilter } from "../../src/pool/sandbox/seccomp.ts";
import { spawnSandboxed } from "../../src/pool/sandbox/spawn.ts";

const NO_RIGHTS = {
  read: [],
  write: [],
  addons: false,
  threads: false,
  processes: false,
  sqlite: false,
};

let scratchFolder: string;
let pids: number[];
let disposed: number;
beforeEach(() => {
  scratchFolder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-starts-test-"));
  pids = [];
  disposed = 0;
});
afterEach(() => rmSync(scratchFolder, { recursive: true, force: true }));

/** A group that somebody has removed. */
const removed: MemoryGroup = {
  enter(pid) {
    pids.push(pid);
    throw new Error("the group is gone");
  },
  exceeded: () => undefined,
  [Symbol.dispose]() {
    disposed += 1;
  },
};

function launching(program: string): Launch {
  return launchAlone(
    () => ({ command: [program, "-e", "setInterval(() => {}, 1_000)"], env: {}, files: [] }),
    { memoryGroups: { make: () => removed } },
  );
}

function start(launch: Launch): ServiceProcess {
  return new ServiceProcess({
    launch,
    rights: NO_RIGHTS,
    scratchFolder,
    env: {},
    limits: DEFAULT_LIMITS,
    maxMessageBytes: 1_000,
    onMessage() {},
    onFault() {},
    onOutput() {},
  });
}

/** Running, and not merely a name until its parent has read how it ended. */
function runs(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

describe.skipIf(process.platform !== "linux")("a worker that cannot enter its group", () => {
  it("is ended, and its group removed", async () => {
    expect(() => start(launching(process.execPath))).toThrow("the group is gone");
    expect(disposed).toBe(1);
    expect(pids).toHaveLength(1);
    await vi.waitFor(() => expect(pids.filter(runs)).toEqual([]));
  });

  it("is ended at level kernel, where bubblewrap waits for its filter", async () => {
    const sleep = ["-c", "sleep 60", "bwrap"] as const;
    const options = { filter: seccompFilter("x64"), memory: removed, read: [], args: [], env: {} };
    expect(() =>
      spawnSandboxed({
        ...options,
        bubblewrap: ["/bin/sh", ...sleep],
        writable: [scratchFolder],
        program: process.execPath,
      }),
    ).toThrow("the group is gone");
    await vi.waitFor(() => expect(pids.filter(runs)).toEqual([]));
  });
});

describe("a worker whose program is not there", () => {
  it("leaves no group", async () => {
    const worker = start(launching(join(scratchFolder, "nothing")));
    expect((await worker.exited).message).toContain("ENOENT");
    expect(disposed).toBe(1);
  });
});

describe("a worker that cannot be launched", () => {
  it("leaves no folder", async () => {
    const scratch = new ScratchFolders();
    const base = join(scratch.create(), "..");
    const launchOf = () => () => {
      throw new Error("no group can be made");
    };
    const workers = new Workers(
      { launchOf } as unknown as ConstructorParameters<typeof Workers>[0],
      scratch,
    );
    const service = { servicePath: join(scratchFolder, "service.js"), code: "" };
    const hooks = { countsOf: () => undefined, onAnswering() {}, onEgress() {} };
    const refused = () => workers.start(service as never, "a worker", hooks as never);
    expect(refused).toThrow("no group can be made");
    await vi.waitFor(() =>
      expect(readdirSync(base).filter((name) => name.startsWith("worker-"))).toEqual(["worker-1"]),
    );
    scratch.removeAll();
  });
});

/** A disk that is full. */
class FullFolders extends ScratchFolders {
  override record(): void {
    throw new Error("no space left on device");
  }
}

describe.skipIf(process.platform !== "linux")("a worker that cannot be recorded", () => {
  it("is ended, as the next node could not end it", async () => {
    const alone = launchAlone(() => ({
      command: [process.execPath, "-e", "setInterval(() => {}, 1_000)"],
      env: {},
      files: [],
    }));
    const launchOf = (): Launch => (options) => {
      const launched = alone(options);
      pids.push(launched.pid() ?? 0);
      return launched;
    };
    const scratch = new FullFolders();
    const options = { launchOf } as unknown as ConstructorParameters<typeof Workers>[0];
    const workers = new Workers(options, scratch);
    const service = { servicePath: join(scratchFolder, "service.js"), code: "" };
    const hooks = { countsOf: () => undefined, onAnswering() {}, onEgress() {} };
    expect(() => workers.start(service as never, "a worker", hooks as never)).toThrow("no space");
    expect(pids).toHaveLength(1);
    await vi.waitFor(() => expect(pids.filter(runs)).toEqual([]));
  });
});
