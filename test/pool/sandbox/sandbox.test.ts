import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findSandbox } from "../../../src/pool/sandbox/sandbox.ts";
import {
  exitInside,
  type SandboxedProcess,
  spawnSandboxed,
} from "../../../src/pool/sandbox/spawn.ts";
import {
  type Architecture,
  CLONE3,
  MAX_SYSTEM_CALL_NUMBER,
  NEW_PROCESS,
  REFUSED_SYSTEM_CALLS,
  type SystemCall,
} from "../../../src/pool/sandbox/system-calls.ts";
import { kernelSandbox, skipped } from "./available.ts";

const FIXTURES = fileURLToPath(new URL("../../fixtures/sandbox/", import.meta.url));
const NODE = realpathSync(process.execPath);
const PATH = process.env.PATH ?? "";
const SECRET = "a secret of the node";
const [EPERM, ENODEV, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT] = [1, 19, 38, 93, 97];

let folder: string;
let scratch: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-sandbox-test-"));
  scratch = mkdtempSync(join(tmpdir(), "tessera-sandbox-scratch-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(scratch, { recursive: true });
});

interface Program {
  readonly program?: string;
  readonly args: readonly string[];
  readonly read: readonly string[];
  /** Whether it may start processes. Default: false. */
  readonly processes?: boolean;
  /** Default: none. */
  readonly devices?: readonly string[];
}

function start(options: Program): SandboxedProcess {
  const { program = NODE, args, read, processes = false, devices = [] } = options;
  const env = { TMPDIR: scratch };
  const files = [...read, NODE];
  const { bubblewrap, filter } = kernelSandbox();
  return spawnSandboxed({
    bubblewrap: [bubblewrap],
    filter: filter({ processes }),
    ...(processes && { sharedMemoryBytes: 1024 ** 2 }),
    devices,
    read: files,
    writable: [scratch],
    program,
    args,
    env,
  });
}

async function outputOf(program: Program): Promise<string> {
  const { child } = start(program);
  const [stdout, stderr] = [child.stdout, child.stderr];
  if (stdout === null || stderr === null) {
    throw new Error("it has no output");
  }
  const [output, complaint] = await Promise.all([text(stdout), text(stderr)]);
  expect(complaint).toBe("");
  return output;
}

test.skipIf(skipped).each<[string, Partial<Program>, readonly string[]]>([
  ["", {}, []],
  // Process 1 has the same filter and no right that it has not; its files are written by drivers.
  [" by what has a device", { devices: ["/dev/full"] }, ["write the memory of process 1"]],
  [
    " by what may start processes",
    { processes: true },
    // All of these are in its sandbox, and stay there.
    [
      "write to shared memory",
      "run the interpreter",
      "run a program without a shell",
      "run the loader",
    ],
  ],
])(
  `nothing of the machine is reached from inside%s, even without Node's permission model${skipped}`,
  async (_, more, answered) => {
    const secret = join(folder, "secret.txt");
    writeFileSync(secret, SECRET);
    const server = net.createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
    const unix = net.createServer((socket) => socket.destroy()).listen(join(folder, "socket"));
    const abstract = net.createServer().listen(`\0tessera-test-${process.pid}`);
    await Promise.all([server, unix, abstract].map((each) => once(each, "listening")));
    const { port } = server.address() as AddressInfo;
    const program = join(FIXTURES, "escapes.cjs");
    const args = [program, String(process.pid), String(port), secret, folder];
    try {
      const output = await outputOf({ args, read: [program], ...more });
      const got = Object.entries(JSON.parse(output) as object);
      expect(got.length).toBeGreaterThan(63);
      const others = got.filter(([what]) => !answered.includes(what));
      expect(others.filter(([, answer]) => answer !== null)).toEqual([]);
      expect(readFileSync(secret, "utf8")).toBe(SECRET);
    } finally {
      for (const each of [server, unix, abstract]) {
        each.close();
      }
    }
  },
);

const numbersOf = (calls: readonly SystemCall[]): number[] =>
  calls.flatMap((call) => call[process.arch as Architecture] ?? []);

/** What a program in Python says of system calls. */
async function saidOf(numbers: readonly number[], processes: boolean): Promise<unknown> {
  const facts = "import sys; print(sys.executable, sys.base_prefix)";
  const [program = "", prefix = ""] = execFileSync("python3", ["-c", facts], { encoding: "utf8" })
    .trim()
    .split(" ");
  const script = join(FIXTURES, "system-calls.py");
  const args = [script, ...numbers.map(String)];
  const read = [prefix === "/usr" ? "/usr/lib" : prefix, program, script];
  return JSON.parse(await outputOf({ program, args, read, processes }));
}

test.skipIf(skipped)(
  `processes are started where they may be, and in no namespace of their own${skipped}`,
  async () => {
    const numbers = numbersOf(REFUSED_SYSTEM_CALLS);
    const said = (await saidOf([...numbers, ...numbersOf([CLONE3])], true)) as {
      readonly calls: { readonly [number: string]: number };
      readonly fork: number;
      readonly thread: number;
      readonly namespaces: readonly number[];
    };
    expect([said.thread, said.fork]).toEqual([0, 0]);
    expect(said.namespaces).toEqual(Array.from({ length: 7 }, () => EPERM));
    const refused = Object.entries(said.calls).filter(([, error]) => error === EPERM);
    expect(refused.map(([number]) => Number(number))).toEqual(numbers.toSorted((a, b) => a - b));
    expect(numbersOf([CLONE3]).map((number) => said.calls[number])).toEqual([ENOSYS]);
  },
);

describe.skipIf(skipped)(`the seccomp filter${skipped}`, () => {
  let said: {
    readonly calls: { readonly [number: string]: number };
    readonly families: { readonly [family: string]: number };
    readonly protocols: object;
    readonly pairs: object;
    readonly buffers: unknown;
    readonly filter: number;
    readonly maps: object;
    readonly zeros: number[];
    readonly fork: number;
    readonly thread: number;
    readonly user: number[];
    readonly host: string;
  };
  const numbers = numbersOf([...REFUSED_SYSTEM_CALLS, ...NEW_PROCESS]);
  const unknown = MAX_SYSTEM_CALL_NUMBER + 1;
  beforeAll(async () => {
    said = (await saidOf([...numbers, unknown], false)) as typeof said;
  });

  test("refuses each call that leads out, and knows no call that is newer than itself", () => {
    const refused = Object.entries(said.calls).filter(([, error]) => error === EPERM);
    expect(refused.map(([number]) => Number(number))).toEqual(numbers.toSorted((a, b) => a - b));
    expect(said.calls[unknown]).toBe(ENOSYS);
  });

  test("lets a program start threads, and no processes", () => {
    expect([said.thread, said.fork]).toEqual([0, EPERM]);
  });

  test("gives sockets of Unix, IPv4, IPv6 and netlink only", () => {
    expect(said.families).toEqual({
      1: 0,
      2: 0,
      10: 0,
      16: 0,
      17: EAFNOSUPPORT,
      38: EAFNOSUPPORT,
      40: EAFNOSUPPORT,
    });
  });

  test("gives of these families the protocols that Node uses, and pairs of Unix", () => {
    expect(said.protocols).toEqual({
      "2/6": 0,
      "10/17": 0,
      "2/262": EPROTONOSUPPORT,
      "10/132": EPROTONOSUPPORT,
      "2/33": EPROTONOSUPPORT,
      "16/0": 0,
      "16/12": EPROTONOSUPPORT,
      "16/15": EPROTONOSUPPORT,
    });
    expect(said.pairs).toEqual({ 1: 0, 30: EAFNOSUPPORT, 16: EAFNOSUPPORT });
  });

  test("leaves the buffers of sockets as they are, and lets none have a filter", () => {
    expect(said.buffers).toEqual([
      [0, true],
      [0, true],
    ]);
    expect(said.filter).toBe(EPERM);
  });

  test("lets no memory be shared without a file, not by /dev/zero either, which has zeros", () => {
    expect(said.maps).toEqual({
      private: 0,
      shared: EPERM,
      validated: EPERM,
      zeros: ENODEV,
      file: 0,
    });
    expect(said.zeros).toEqual([0, 0, 0]);
  });

  test("leaves a program that is nobody, on a host without a name of its own", () => {
    expect([said.user, said.host]).toEqual([[65534, 65534], "worker"]);
  });
});

test.skipIf(skipped)(
  `the first process inside has the filter of the program${skipped}`,
  async () => {
    const { child, kill } = start({ args: ["-e", "setInterval(() => {}, 1000)"], read: [] });
    const children = () =>
      readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
    await expect.poll(children).toMatch(/^\d+$/);
    const status = () => readFileSync(`/proc/${children()}/status`, "utf8");
    await expect.poll(status).toMatch(/^NSpid:\t\d+\t1$/m);
    await expect.poll(status).toMatch(/^Seccomp:\t2$/m);
    expect(status()).toMatch(/^CapEff:\t0+$/m);
    kill();
    await once(child, "exit");
  },
);

test.skipIf(skipped)(
  `a sandboxed program is found from outside, and ends with bubblewrap${skipped}`,
  async () => {
    const process_ = start({ args: ["-e", "setInterval(() => {}, 1000)"], read: [] });
    const { child } = process_;
    await expect.poll(() => process_.pid()).toBeGreaterThan(child.pid ?? 0);
    const pid = process_.pid() ?? 0;
    // It has no command line while it becomes the program.
    await expect.poll(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")).toMatch(/^\S*node\0-e/);
    child.kill("SIGKILL");
    await once(child, "exit");
    await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
  },
);

test.skipIf(skipped)(
  `nothing is left of programs that are ended while they start${skipped}`,
  async () => {
    const marks = Array.from({ length: 40 }, (_, index) => `--title=${process.pid}-ended-${index}`);
    await Promise.all(
      marks.map(async (mark, index) => {
        const { child, kill } = start({ args: [mark, "-e", "0"], read: [] });
        const exited = once(child, "exit");
        // Within the 30 ms that a start takes, at another moment each time.
        for (let turn = 0; turn < index * 5; turn += 1) {
          await new Promise((resolve) => setImmediate(resolve));
        }
        kill();
        await exited;
      }),
    );
    const left = readdirSync("/proc").filter((pid) => {
      const path = `/proc/${pid}/cmdline`;
      return (
        /^\d+$/.test(pid) &&
        existsSync(path) &&
        readFileSync(path, "utf8").includes(`${process.pid}-ended-`)
      );
    });
    expect(left).toEqual([]);
  },
);

test.skipIf(skipped)(`a signal that ended the program is known by its name${skipped}`, async () => {
  const { child } = start({ args: ["-e", "process.kill(process.pid, 'SIGTERM')"], read: [] });
  const [code, signal] = await once(child, "exit");
  expect(exitInside(code, signal)).toEqual({ code: null, signal: "SIGTERM" });
  expect(exitInside(3, null)).toEqual({ code: 3, signal: null });
});

describe("a machine without bubblewrap", () => {
  test("has Node's permission model, and is told what to install", async () => {
    expect(await findSandbox("auto", "")).toMatchObject({
      level: "permission",
      setpriv: undefined,
      prlimit: undefined,
      shortfall: expect.stringContaining("install the package bubblewrap"),
    });
    await expect(findSandbox("kernel", "")).rejects.toThrow(
      /--sandbox kernel: bubblewrap is not installed: .*--sandbox permission/,
    );
  });

  test("is not complained of where the operator asked for the permission model", async () => {
    const { level, ...rest } = await findSandbox("permission", PATH);
    expect([level, rest]).toEqual([
      "permission",
      expect.objectContaining({ shortfall: undefined }),
    ]);
  });
});

test.each([
  ["bwrap: Unknown option --disable-userns", "version 0.8 or later is needed"],
  [
    "bwrap: No permissions to create a new namespace, likely because the kernel …",
    /user namespaces|sysctl|container/,
  ],
  [
    "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
    /user namespaces|sysctl|container/,
  ],
])("a bubblewrap that says “%s” is told with the remedy", async (complaint, remedy) => {
  const bwrap = join(folder, "bwrap");
  writeFileSync(bwrap, `#!/bin/sh\necho "${complaint}" >&2\nexit 1\n`);
  chmodSync(bwrap, 0o755);
  const { level, ...rest } = await findSandbox("auto", folder);
  expect(level).toBe("permission");
  expect(rest).toHaveProperty("shortfall", expect.stringContaining(complaint));
  expect(rest).toHaveProperty("shortfall", expect.stringMatching(remedy));
});

test.skipIf(process.platform !== "linux")(
  "a bubblewrap that hangs is none",
  async () => {
    const holder = join(folder, "hangs");
    mkdirSync(holder);
    // Its child holds the output open.
    writeFileSync(join(holder, "bwrap"), "#!/bin/sh\n/bin/sleep 20 &\nwait\n");
    chmodSync(join(holder, "bwrap"), 0o755);
    await expect(findSandbox("kernel", holder)).rejects.toThrow(
      "bubblewrap is installed but does not work here (it started no program within 10 s)",
    );
  },
  30_000,
);
