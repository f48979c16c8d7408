/**
 * Runs a program of the machine on what somebody brings: in the kernel's sandbox, with one folder,
 * and with no network but an egress proxy of its own, or none.
 */
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { EgressPolicy } from "../../pool/egress/policy.ts";
import { EgressProxy } from "../../pool/egress/proxy.ts";
import type { FindUpstream } from "../../pool/egress/upstream.ts";
import { withMemoryGroup } from "../../pool/launch/launch.ts";
import { DEFAULT_LIMITS } from "../../pool/limits.ts";
import type { KernelSandbox } from "../../pool/sandbox/sandbox.ts";
import { exitInside, spawnSandboxed } from "../../pool/sandbox/spawn.ts";
import { SYSTEM_FILES } from "../../pool/sandbox/system-files.ts";
import { egressEnvironment } from "../../protocol/egress.ts";

/** Memory of such a program, where the machine has control groups. */
const MAX_TOOL_MEMORY_BYTES = 1024 ** 3;
/** Processes and threads of such a program, where the machine has control groups. */
const MAX_TOOL_TASKS = 1_024;
/** What is kept of its output: a manifest of an image has at most 4 MiB. */
const MAX_TOOL_OUTPUT_BYTES = 8 * 1024 ** 2;

const RELAYED = fileURLToPath(
  new URL(`../../worker/relayed${extname(import.meta.url)}`, import.meta.url),
);
const EGRESS_SOCKET_INSIDE = "/run/tessera/egress.sock";

interface IsolatedRun {
  readonly sandbox: KernelSandbox;
  /** The absolute path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  /** The folder that it may write, where it works. */
  readonly folder: string;
  /** A folder around that one, all of which it may write. Default: none. */
  readonly around?: string;
  /** What it reads besides, by absolute paths; what is not there is left out. Default: nothing. */
  readonly read?: readonly string[];
  readonly env?: { readonly [name: string]: string };
  readonly timeoutMs: number;
  /** What it complains of when it is ended, because waiting longer is of no use. Default: nothing. */
  readonly endAt?: RegExp;
  readonly signal?: AbortSignal | undefined;
  /** Default: it has no network. */
  readonly network?: IsolatedNetwork;
}

interface IsolatedNetwork {
  /** Host rules of the operator: what it reaches although it is not public. */
  readonly allowed: readonly string[];
  /** The loopback of the machine that it is to reach as its own, as host and port. Default: none. */
  readonly loopback: string | undefined;
  /** The proxies of the operator. Default: none. */
  readonly upstream: FindUpstream | undefined;
  /** Silence on a connection after which it is closed. */
  readonly idleMs: number;
}

/** How a program ended. */
interface IsolatedEnd {
  /** 0: it did what it was asked. */
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
  /** Why a connection of it was refused; undefined: none was. */
  readonly refusal: string | undefined;
  readonly isLate: boolean;
}

/** Runs it to its end. Rejects when the signal aborts. */
export async function runIsolated(options: IsolatedRun): Promise<IsolatedEnd> {
  const { network, signal } = options;
  signal?.throwIfAborted();
  if (network === undefined) {
    return { ...(await run(options, {})), refusal: undefined };
  }
  // The path of a socket is short.
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-image-"));
  let refusal: string | undefined;
  try {
    await using proxy = new EgressProxy({
      path: join(folder, "egress.sock"),
      policy: new EgressPolicy({
        network: { access: "open", hosts: [] },
        allowed: network.allowed,
      }),
      onDecision() {},
      onLine(line) {
        refusal = line.replace(/^a connection was refused: /, "");
      },
      idleMs: network.idleMs,
      upstream: network.upstream,
    });
    await proxy.start();
    const ended = await run(options, { socketPath: proxy.path, loopback: network.loopback ?? "" });
    return { ...ended, refusal };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Relay {
  /** The socket of the egress proxy; undefined: the program has no network. */
  readonly socketPath?: string;
  readonly loopback?: string;
}

async function run(
  {
    sandbox,
    program,
    args,
    folder,
    around,
    read = [],
    env = {},
    timeoutMs,
    endAt,
    signal,
  }: IsolatedRun,
  { socketPath, loopback = "" }: Relay,
): Promise<Omit<IsolatedEnd, "refusal">> {
  const relay = socketPath !== undefined;
  const [first = program, ...rest] = relay
    ? [
        process.execPath,
        "--disable-warning=ExperimentalWarning",
        RELAYED,
        EGRESS_SOCKET_INSIDE,
        loopback,
        program,
        ...args,
      ]
    : [program, ...args];
  const limits = {
    ...DEFAULT_LIMITS,
    memoryBytes: MAX_TOOL_MEMORY_BYTES,
    processes: MAX_TOOL_TASKS,
  };
  const { child, memory, kill } = withMemoryGroup(sandbox.memoryGroups, limits, (group) => ({
    ...spawnSandboxed({
      bubblewrap: [sandbox.bubblewrap],
      memory: group,
      filter: sandbox.filter({ processes: true }),
      read: [
        ...new Set([program, realpathSync(program), ...read, ...(relay ? relayFiles() : [])]),
      ].filter((path) => existsSync(path)),
      // Mounted last: files are renamed within one mount only.
      writable: around === undefined ? [folder] : [folder, around],
      mounted: socketPath === undefined ? [] : [{ path: socketPath, inside: EGRESS_SOCKET_INSIDE }],
      program: first,
      args: rest,
      env: {
        ...env,
        HOME: folder,
        TMPDIR: folder,
        LC_ALL: "C.UTF-8",
        ...(relay && egressEnvironment({ socketPath: EGRESS_SOCKET_INSIDE })),
      },
    }),
    memory: group,
    endOf: exitInside,
  }));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    kill();
  }, timeoutMs);
  signal?.addEventListener("abort", kill);
  try {
    const exited = new Promise<number | null>((settle, reject) => {
      child.once("error", reject);
      child.once("close", (code, by) => settle(exitInside(code, by).code));
    });
    const [code, stdout, stderr] = await Promise.all([
      exited,
      startOf(child.stdout),
      startOf(child.stderr, (text) => {
        if (endAt?.test(text) === true) {
          kill();
        }
      }),
    ]);
    signal?.throwIfAborted();
    return { code: isLate ? null : code, stdout, stderr: stderr.toString(), isLate };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", kill);
    memory?.[Symbol.dispose]();
  }
}

/** The program that runs another one beside the relay. */
function relayFiles(): string[] {
  const worker = dirname(RELAYED);
  return [
    process.execPath,
    realpathSync(process.execPath),
    worker,
    join(worker, "../protocol"),
    // It says that its files are ES modules.
    join(worker, "../../package.json"),
    ...SYSTEM_FILES,
    "/etc/hosts",
  ];
}

/** The start of what it writes; `look` sees each piece of it. */
async function startOf(
  stream: Readable | null,
  look: (text: string) => void = () => {},
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of (stream ?? []) as AsyncIterable<Buffer>) {
    look(chunk.toString());
    if (length < MAX_TOOL_OUTPUT_BYTES) {
      chunks.push(chunk);
      length += chunk.length;
    }
  }
  return Buffer.concat(chunks);
}
