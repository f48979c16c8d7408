import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryGroups } from "../../../src/pool/sandbox/memory-groups.ts";
import { startTimeTicks } from "../../../src/pool/usage.ts";
import { withoutGroups } from "./available.ts";

const MEBIBYTE = 1024 ** 2;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-groups-test-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function groups(): MemoryGroups {
  const found = MemoryGroups.find();
  if (typeof found === "string") {
    throw new Error(found);
  }
  return found;
}

/** A process that allocates what it is told to, in mebibytes. */
function allocator(): ReturnType<typeof spawn> {
  const program = `process.stdin.once("data", (text) => {
    Buffer.alloc(Number(text) * ${MEBIBYTE}, 1);
    process.exit(3);
  });`;
  return spawn(process.execPath, ["-e", program], { stdio: ["pipe", "ignore", "ignore"] });
}

/** The end of a process in a group of 160 MiB that allocates so many. */
async function allocate(
  mebibytes: number,
): Promise<{ readonly end: unknown[]; readonly exceededBytes: number | undefined }> {
  using group = groups().make({ memoryBytes: 160 * MEBIBYTE });
  const child = allocator();
  group.enter(child.pid ?? 0);
  child.stdin?.write(`${mebibytes}`);
  const end = await once(child, "exit");
  return { end, exceededBytes: group.exceeded() };
}

describe.skipIf(withoutGroups)(`a group for the memory of a worker${withoutGroups}`, () => {
  it("lets it have what it may, and says nothing", async () => {
    expect(await allocate(64)).toEqual({ end: [3, null], exceededBytes: undefined });
  });

  it("has the kernel kill it a quarter above its limit, and says how much it held", async () => {
    const { end, exceededBytes = 0 } = await allocate(400);
    expect(end).toEqual([null, "SIGKILL"]);
    expect(exceededBytes / MEBIBYTE).toBeGreaterThan(160);
    expect(exceededBytes / MEBIBYTE).toBeLessThanOrEqual(200);
  });

  it("holds what a process starts, and is gone after the last", async () => {
    const child = allocator();
    const group = groups().make({ memoryBytes: 160 * MEBIBYTE });
    group.enter(child.pid ?? 0);
    const name = /tessera-\d+-\d+-\d+/.exec(readFileSync(`/proc/${child.pid}/cgroup`, "utf8"))?.[0];
    expect(name).toContain(`tessera-${process.pid}-${startTimeTicks(process.pid)}-`);
    // While the process is there, it cannot be removed: the next one is made after that.
    group[Symbol.dispose]();
    expect(readFileSync(`/proc/${child.pid}/cgroup`, "utf8")).toContain(name);
    child.kill("SIGKILL");
    await once(child, "exit");
    using next = groups().make({ memoryBytes: 160 * MEBIBYTE });
    expect(next.exceeded()).toBeUndefined();
    group[Symbol.dispose]();
    expect(() => group.enter(process.pid)).toThrow("ENOENT");
  });

  it("takes a process that has ended for one that holds nothing", async () => {
    using group = groups().make({ memoryBytes: 160 * MEBIBYTE });
    const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
    await once(child, "exit");
    expect(() => group.enter(child.pid ?? 0)).not.toThrow();
  });
});

/** What proc(5) says of a machine: the groups of this process, and what is mounted where. */
function machine({ own, mount }: { readonly own: string; readonly mount: string }): string {
  const proc = join(folder, "proc");
  mkdirSync(join(proc, "self"), { recursive: true });
  writeFileSync(join(proc, "self/cgroup"), `${own}\n`);
  writeFileSync(
    join(proc, "self/mountinfo"),
    `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n${mount}\n`,
  );
  return proc;
}

/** A machine with version 2, whose files are as the kernel has them, but for their effect. */
function unified({
  controllers = "cpu memory pids",
  processes = `${process.pid}\n`,
  group = "/system.slice/tessera.service",
}: {
  readonly controllers?: string;
  readonly processes?: string;
  readonly group?: string;
} = {}): { readonly proc: string; readonly own: string } {
  const root = join(folder, "cgroup");
  const own = join(root, group);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "cgroup.controllers"), `${controllers}\n`);
  writeFileSync(join(own, "cgroup.procs"), processes);
  const proc = machine({
    own: `0::${group}`,
    mount: `30 22 0:27 / ${root} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate`,
  });
  return { proc, own };
}

describe.skipIf(process.platform !== "linux")("a machine", () => {
  it("with version 2 has them beside the group that this process moves into", () => {
    const { proc, own } = unified();
    expect(MemoryGroups.find(proc)).toBeInstanceOf(MemoryGroups);
    expect(readFileSync(join(own, "node/cgroup.procs"), "utf8")).toBe(`${process.pid}`);
    expect(readFileSync(join(own, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids");
  });

  it("with version 2 has limits of memory and no swap, and is killed as a whole", () => {
    const { proc, own } = unified();
    const found = MemoryGroups.find(proc);
    if (typeof found === "string") {
      throw new Error(found);
    }
    const before = readdirSync(own);
    const group = found.make({ memoryBytes: 100 * MEBIBYTE });
    const [name = ""] = readdirSync(own).filter((each) => !before.includes(each));
    const files = ["memory.max", "memory.swap.max", "memory.oom.group"];
    expect(files.map((file) => readFileSync(join(own, name, file), "utf8"))).toEqual([
      `${125 * MEBIBYTE}`,
      "0",
      "1",
    ]);
    writeFileSync(join(own, name, "memory.events"), "max 12\noom 1\noom_kill 0\n");
    expect(group.exceeded()).toBeUndefined();
    writeFileSync(join(own, name, "memory.events"), "max 12\noom 1\noom_kill 2\n");
    writeFileSync(join(own, name, "memory.peak"), `${120 * MEBIBYTE}\n`);
    expect(group.exceeded()).toBe(120 * MEBIBYTE);
  });

  it("with version 2 finds them again from the group that it has moved into", () => {
    const { own } = unified();
    const proc = unified({ group: "/system.slice/tessera.service/node" }).proc;
    rmSync(join(own, "cgroup.subtree_control"), { force: true });
    expect(MemoryGroups.find(proc)).toBeInstanceOf(MemoryGroups);
    expect(existsSync(join(own, "node/node"))).toBe(false);
    expect(readFileSync(join(own, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids");
  });

  it("removes what nodes have left that were killed, and nothing else", () => {
    const { proc, own } = unified();
    const kept = [
      `tessera-${process.pid}-${startTimeTicks(process.pid)}-7`,
      "tessera-1-2",
      "session",
    ];
    const left = [`tessera-${process.pid}-1-1`, "tessera-4194305-12-1"];
    for (const name of [...kept, ...left]) {
      mkdirSync(join(own, name));
    }
    MemoryGroups.find(proc);
    expect(readdirSync(own)).toEqual(expect.arrayContaining(kept));
    expect(readdirSync(own).filter((name) => left.includes(name))).toEqual([]);
  });

  it("where others are in its group has none", () => {
    const { proc, own } = unified({ processes: `1\n${process.pid}\n` });
    expect(MemoryGroups.find(proc)).toBe("other processes are in the node's group");
    expect(readdirSync(own).sort()).toEqual(["cgroup.controllers", "cgroup.procs"]);
  });

  it("whose service manager delegates no memory has none", () => {
    const { proc } = unified({ controllers: "cpu pids" });
    expect(MemoryGroups.find(proc)).toBe(
      "the service manager gives its group no controller of memory",
    );
  });

  it("without the file system of groups has none", () => {
    const proc = machine({ own: "0::/", mount: "31 22 0:28 / /dev/shm rw - tmpfs tmpfs rw" });
    expect(MemoryGroups.find(proc)).toBe("no controller of memory is mounted");
  });

  it("that mounts another part of the groups has none", () => {
    const proc = machine({
      own: "4:memory:/elsewhere",
      mount: `31 22 0:28 /docker/1 ${folder} rw - cgroup cgroup rw,memory`,
    });
    expect(MemoryGroups.find(proc)).toBe("the group of this process is not mounted");
  });

  it("with version 1 has them in the group of this process, of which a part may be mounted", () => {
    const proc = machine({
      own: "9:pids:/\n4:memory,hugetlb:/docker/1/init\n0::/",
      mount: `31 22 0:28 /docker/1 ${folder}/memory rw - cgroup cgroup rw,memory,hugetlb`,
    });
    mkdirSync(join(folder, "memory/init"), { recursive: true });
    const found = MemoryGroups.find(proc);
    expect(found).toBeInstanceOf(MemoryGroups);
    const [name = ""] = readdirSync(join(folder, "memory/init"));
    const bytes = readFileSync(join(folder, "memory/init", name, "memory.limit_in_bytes"), "utf8");
    expect(bytes).toBe(`${1.25 * 1024 ** 3}`);
  });
});
