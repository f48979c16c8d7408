/**
 * The GPUs of NVIDIA, as `nvidia-smi` lists them. It is asked when the machine starts, and every
 * ten seconds from then on, for as little as is needed: a program of the driver hangs where the
 * driver does. So nothing waits for it beyond the start, one that has not ended is never joined by
 * another, one that writes without end is ended, and while none answers, what was seen last holds.
 *
 * It does not tell the number of a device file. That stands below `/proc/driver/nvidia/gpus`, by
 * the address on the bus; where there is no such folder, files have the numbers of the list.
 *
 * Of a GPU that is cut (MIG), its slices are listed in its place (`mig.ts`).
 *
 * The ids of programs on GPUs are those of the machine. A node in a container has other ones, and
 * then nothing is known of what its workers use.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";
import type { Log } from "../../log/log.ts";
import { LogThrottle } from "../../time/log-throttle.ts";
import { within } from "../../time/race.ts";
import { Timer } from "../../time/timer.ts";
import type { Gpu, GpuProcess, Gpus } from "./gpus.ts";
import { readSlices } from "./mig.ts";

/** Interval at which the GPUs of a machine are looked at. */
const GPU_LOOK_INTERVAL_MS = 10_000;
/** How long `nvidia-smi` may take: with eight GPUs, some 0.2 s, and seconds where the driver wakes. */
const NVIDIA_SMI_TIMEOUT_MS = 10_000;

/** What `nvidia-smi` may write: far more than all that it knows of 64 GPUs. */
const MAX_NVIDIA_SMI_BYTES = 8 * 1024 ** 2;

const MEBIBYTE = 1024 ** 2;
const FIELDS = "index,uuid,name,memory.total,memory.used,mig.mode.current,pci.bus_id";
const CSV = "--format=csv,noheader,nounits";
const DRIVER_FOLDER = "/proc/driver";
/** The kernel's name for the namespace of the machine's own process ids (`PROC_PID_INIT_INO`). */
const MACHINE_PIDS = "pid:[4026531836]";

interface NvidiaSmiOptions {
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  readonly log: Log;
  /** What drivers tell. Default: that of the machine. */
  readonly driverFolder?: string;
  /** Whether process ids here are those of the machine. Default: it is looked at. */
  readonly hasMachinePids?: boolean;
  readonly intervalMs?: number;
  readonly timeoutMs?: number;
}

export class NvidiaSmi implements Gpus, AsyncDisposable {
  readonly #options: NvidiaSmiOptions;
  readonly #program: string;
  readonly #faults: LogThrottle;
  #list: readonly Gpu[] = [];
  #processes: readonly GpuProcess[] | undefined;
  /** Resolves when the program that was started last has ended; undefined afterwards. */
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #changed: () => void = () => {};
  #looked: () => void = () => {};

  /** Looks at the GPUs for the first time. Without `nvidia-smi` there are none, and it is not asked again. */
  static async open(options: NvidiaSmiOptions): Promise<Gpus & AsyncDisposable> {
    const program = options.searchPath
      .split(delimiter)
      .map((folder) => join(folder, "nvidia-smi"))
      .find((path) => existsSync(path));
    if (program === undefined) {
      if (existsSync("/dev/nvidiactl")) {
        const message =
          "this machine has a driver of NVIDIA and no nvidia-smi, so that its GPUs are not known: install it (package nvidia-utils), or let the container have it (NVIDIA_DRIVER_CAPABILITIES=utility,compute)";
        options.log.warn({}, message);
      }
      return { list: [], [Symbol.asyncDispose]: async () => {} };
    }
    const found = new NvidiaSmi(program, options);
    await found.#look();
    found.#timer = new Timer(
      options.intervalMs ?? GPU_LOOK_INTERVAL_MS,
      () => found.#look(),
      (err) => options.log.error({ err }, "the GPUs of this machine could not be looked at"),
    );
    return found;
  }

  private constructor(program: string, options: NvidiaSmiOptions) {
    this.#program = program;
    this.#options = options;
    this.#faults = new LogThrottle((fields, message) => options.log.warn(fields, message));
  }

  get list(): readonly Gpu[] {
    return this.#list;
  }

  get processes(): readonly GpuProcess[] | undefined {
    return this.#processes;
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  onLook(listener: () => void): void {
    this.#looked = listener;
  }

  lock({ uuid }: Gpu): Disposable | undefined {
    return lockGpu(uuid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
  }

  /** Never rejects; what cannot be seen stays as it was. */
  async #look(): Promise<void> {
    const before = uuidsOf(this.#list);
    try {
      const list = await this.#listed();
      this.#processes = list.length === 0 ? [] : await this.#seen();
      this.#list = list;
    } catch (err) {
      this.#say(err, "nvidia-smi failed: the GPUs are as they were last seen");
      return;
    }
    if (uuidsOf(this.#list) !== before) {
      this.#changed();
    }
    this.#looked();
  }

  async #listed(): Promise<readonly Gpu[]> {
    const { driverFolder = DRIVER_FOLDER } = this.#options;
    const found = readGpus(await this.#ask(`--query-gpu=${FIELDS}`, CSV), driverFolder);
    if (!found.some(({ isCut }) => isCut)) {
      return found.map(({ gpu }) => gpu);
    }
    const slices = await this.#slices(found);
    return found.flatMap(({ gpu, isCut }) => {
      const own = slices.filter(({ slice }) => slice?.gpu === gpu.uuid);
      if (isCut && own.length === 0) {
        const about = { gpu: gpu.index, uuid: gpu.uuid };
        this.#faults.say(
          about,
          "a GPU is to be cut into slices (MIG) and has none: no worker gets it",
        );
      }
      return isCut ? own : [gpu];
    });
  }

  /** The slices of these; as they were last seen where that cannot be told. */
  async #slices(found: readonly ListedGpu[]): Promise<readonly Gpu[]> {
    const { driverFolder = DRIVER_FOLDER } = this.#options;
    try {
      const [names, facts] = [await this.#ask("-L"), await this.#ask("-q", "-x")];
      return readSlices({ names, facts, driverFolder }, found);
    } catch (err) {
      this.#say(err, "nvidia-smi failed: the slices of GPUs are as they were last seen");
      return this.#list.filter(({ slice }) => slice !== undefined);
    }
  }

  /** Undefined where they cannot be told. */
  async #seen(): Promise<readonly GpuProcess[] | undefined> {
    const { hasMachinePids = readMachinePids() } = this.#options;
    if (!hasMachinePids) {
      return undefined;
    }
    try {
      return readProcesses(await this.#ask("--query-compute-apps=gpu_uuid,pid,used_memory", CSV));
    } catch (err) {
      this.#say(err, "nvidia-smi failed: what programs use of the GPUs is not known");
      return undefined;
    }
  }

  async #ask(...args: readonly string[]): Promise<string> {
    const { timeoutMs = NVIDIA_SMI_TIMEOUT_MS } = this.#options;
    if (this.#running !== undefined) {
      throw new Error("the one that was started before hangs");
    }
    const asked = ask(this.#program, args);
    this.#running = asked.ended.then(() => {
      this.#running = undefined;
    });
    const answer = await within(asked.answer, timeoutMs, () => {
      asked.kill();
      throw new Error(`it did not answer within ${timeoutMs / 1_000} s`);
    });
    await this.#running;
    return answer;
  }

  #say(err: unknown, message: string): void {
    const reason = err instanceof Error ? err.message : String(err);
    this.#faults.say({ reason }, message);
  }
}

function uuidsOf(gpus: readonly Gpu[]): string {
  return gpus.map(({ uuid }) => uuid).join();
}

interface Asked {
  /** What it writes; rejects with why it failed. */
  readonly answer: Promise<string>;
  /** Resolves when it has ended, which it may not do although it was killed. */
  readonly ended: Promise<unknown>;
  kill(): void;
}

function ask(program: string, args: readonly string[]): Asked {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.unref();
  const kill = (): void => {
    child.kill("SIGKILL");
    // A child of it may hold them open.
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const ended = new Promise<number | string>((resolve) => {
    child.once("error", ({ message }) => resolve(message));
    child.once("exit", (code, signal) => resolve(code ?? signal ?? ""));
  });
  const outputs = [child.stdout, child.stderr].map((stream) => textOf(stream, kill));
  const answer = Promise.all([ended, ...outputs]).then(([code, out = "", err = ""]) => {
    if (code !== 0) {
      throw new Error(`it ended with ${code}: ${(err || out).trim().slice(0, 500)}`);
    }
    return out;
  });
  return { answer, ended, kill };
}

/** All that is written there; calls back and rejects where that is too much. */
async function textOf(stream: Readable, tooMuch: () => void): Promise<string> {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MAX_NVIDIA_SMI_BYTES) {
      tooMuch();
      throw new Error(`it wrote more than ${MAX_NVIDIA_SMI_BYTES / MEBIBYTE} MiB`);
    }
  }
  return text;
}

/** A GPU of the list, which may be cut into slices. */
interface ListedGpu {
  readonly gpu: Gpu;
  readonly isCut: boolean;
}

/** Reads the answer, one GPU a line. Throws for other text. */
export function readGpus(answer: string, driverFolder: string): ListedGpu[] {
  const minors = deviceNumbers(join(driverFolder, "nvidia", "gpus"));
  return linesOf(answer)
    .map((line): ListedGpu => {
      const [index, uuid = "", name = "", total, used, mig, bus] = fieldsOf(line);
      const [number, memoryMib] = [Number(index), Number(total)];
      const isWhole = Number.isInteger(number) && uuid.startsWith("GPU-") && memoryMib > 0;
      if (!isWhole || bus === undefined) {
        throw new Error(`it wrote ${JSON.stringify(line.slice(0, 200))}`);
      }
      const gpu = {
        ...{ index: number, uuid, name, minor: minors.get(shortBus(bus)) ?? number },
        memoryBytes: memoryMib * MEBIBYTE,
        usedBytes: (Number(used) || 0) * MEBIBYTE,
      };
      return { gpu, isCut: mig === "Enabled" };
    })
    .toSorted((a, b) => a.gpu.index - b.gpu.index);
}

/** Reads the programs on GPUs, one a line. What one uses is not told by every driver (`[N/A]`). */
export function readProcesses(answer: string): GpuProcess[] {
  return linesOf(answer).map((line) => {
    const [gpu = "", pid, used] = fieldsOf(line);
    if (!/^(?:GPU|MIG)-/.test(gpu) || !Number.isInteger(Number(pid)) || used === undefined) {
      throw new Error(`it wrote ${JSON.stringify(line.slice(0, 200))}`);
    }
    const bytes = /^\d+$/.test(used) ? Number(used) * MEBIBYTE : undefined;
    return { gpu, pid: Number(pid), bytes };
  });
}

function linesOf(answer: string): string[] {
  return answer.split("\n").filter((line) => line.trim() !== "");
}

function fieldsOf(line: string): string[] {
  return line.split(",").map((field) => field.trim());
}

function readMachinePids(): boolean {
  try {
    return readlinkSync("/proc/self/ns/pid") === MACHINE_PIDS;
  } catch {
    return false;
  }
}

/** The numbers of the device files, by the addresses of their GPUs. */
function deviceNumbers(folder: string): ReadonlyMap<string, number> {
  const addresses = existsSync(folder) ? readdirSync(folder) : [];
  return new Map(
    addresses.flatMap((address) => {
      const facts = readFileSync(join(folder, address, "information"), "utf8");
      const [, minor] = /^Device Minor:\s*(\d+)\s*$/m.exec(facts) ?? [];
      return minor === undefined ? [] : [[shortBus(address), Number(minor)] as const];
    }),
  );
}

/** `nvidia-smi` writes the domain of an address with eight digits, and the driver with four. */
function shortBus(address: string): string {
  return address.toLowerCase().replace(/^0{4}(?=[0-9a-f]{4}:)/, "");
}

// Who deals a GPU out, among the nodes and the programs of workers on one machine: a socket in the
// abstract namespace of Linux with the GPU's name, which one of them can have. It needs no folder
// that several users may write to, and the kernel takes it from a process that has died, so that
// nothing is ever stale. It is of one network namespace: containers that have their own do not see
// each other's.

/** Locks a GPU until this is disposed of or the process ends; undefined while another process has it. */
export function lockGpu(uuid: string): Disposable | undefined {
  if (process.platform !== "linux") {
    return { [Symbol.dispose]: () => {} };
  }
  const server = createServer((socket) => socket.destroy());
  server.on("error", () => {
    // Another has the name, as `listening` says at once: a name is bound in the call.
  });
  server.listen({ path: `\0tessera-gpu/${uuid}`, exclusive: true });
  server.unref();
  return server.listening ? { [Symbol.dispose]: () => void server.close() } : undefined;
}
