/**
 * The GPUs of NVIDIA, as `nvidia-smi` lists them. It is asked when the machine starts, and every
 * ten seconds from then on, for as little as is needed: a program of the driver hangs where the
 * driver does. So nothing waits for it beyond the start, one that has not ended is never joined by
 * another, and while none answers, what was seen last holds.
 *
 * It does not tell the number of a device file. That stands below `/proc/driver/nvidia/gpus`, by
 * the address on the bus; where there is no such folder, files have the numbers of the list.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import type { Log } from "../../log/log.ts";
import { LogThrottle } from "../../time/log-throttle.ts";
import { within } from "../../time/race.ts";
import { Timer } from "../../time/timer.ts";
import type { Gpu, Gpus } from "./gpus.ts";

/** Interval at which the GPUs of a machine are looked at. */
const GPU_LOOK_INTERVAL_MS = 10_000;
/** How long `nvidia-smi` may take: with eight GPUs, some 0.2 s, and seconds where the driver wakes. */
const NVIDIA_SMI_TIMEOUT_MS = 10_000;

const MEBIBYTE = 1024 ** 2;
const FIELDS = "index,uuid,name,memory.total,memory.used,mig.mode.current,pci.bus_id";

interface NvidiaSmiOptions {
  /** Folders of programs, as `PATH` has them. */
  readonly searchPath: string;
  readonly log: Log;
  /** What the driver tells of each GPU, by its address. Default: that of the machine. */
  readonly driverFolder?: string;
  readonly intervalMs?: number;
  readonly timeoutMs?: number;
}

export class NvidiaSmi implements Gpus, AsyncDisposable {
  readonly #options: NvidiaSmiOptions;
  readonly #program: string;
  readonly #faults: LogThrottle;
  #list: readonly Gpu[] = [];
  /** Resolves when the program that was started last has ended. */
  #running: Promise<unknown> | undefined;
  #timer: Timer | undefined;
  #changed: () => void = () => {};

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

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
  }

  /** Never rejects; what cannot be seen stays as it was. */
  async #look(): Promise<void> {
    const { timeoutMs = NVIDIA_SMI_TIMEOUT_MS, driverFolder } = this.#options;
    if (this.#running !== undefined) {
      this.#faults.say({}, "nvidia-smi hangs: the GPUs of this machine are as they were last seen");
      return;
    }
    const asked = ask(this.#program);
    this.#running = asked.answer
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
    try {
      const answer = await within(asked.answer, timeoutMs, () => {
        asked.kill();
        throw new Error(`it did not answer within ${timeoutMs / 1_000} s`);
      });
      const before = uuidsOf(this.#list);
      this.#list = readGpus(answer, driverFolder);
      if (uuidsOf(this.#list) !== before) {
        this.#changed();
      }
    } catch (err) {
      const reason = err instanceof Error ? err.message : String(err);
      this.#faults.say({ reason }, "nvidia-smi failed: the GPUs are as they were last seen");
    }
  }
}

function uuidsOf(gpus: readonly Gpu[]): string {
  return gpus.map(({ uuid }) => uuid).join();
}

/** Runs the program; `answer` is what it writes, and rejects with why it failed. */
function ask(program: string): { readonly answer: Promise<string>; kill(): void } {
  const child = spawn(program, [`--query-gpu=${FIELDS}`, "--format=csv,noheader,nounits"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.unref();
  const ended = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? signal));
  });
  const answer = Promise.all([ended, text(child.stdout), text(child.stderr)]).then(
    ([code, out, err]) => {
      if (code !== 0) {
        throw new Error(`it ended with ${code}: ${(err || out).trim().slice(0, 500)}`);
      }
      return out;
    },
  );
  return {
    answer,
    kill: () => {
      child.kill("SIGKILL");
      // A child of it may hold them open.
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
}

/** Reads the answer, one GPU a line. Throws for what is none. */
export function readGpus(answer: string, driverFolder = "/proc/driver/nvidia/gpus"): Gpu[] {
  const minors = deviceNumbers(driverFolder);
  const lines = answer.split("\n").filter((line) => line.trim() !== "");
  return lines
    .map((line): Gpu => {
      const [index, uuid = "", name = "", total, used, mig, bus = ""] = line
        .split(",")
        .map((field) => field.trim());
      const [number, memoryMib] = [Number(index), Number(total)];
      if (!Number.isInteger(number) || !uuid.startsWith("GPU-") || !(memoryMib > 0)) {
        throw new Error(`it wrote ${JSON.stringify(line.slice(0, 200))}`);
      }
      return {
        index: number,
        uuid,
        name,
        minor: minors.get(shortBus(bus)) ?? number,
        memoryBytes: memoryMib * MEBIBYTE,
        usedBytes: (Number(used) || 0) * MEBIBYTE,
        isSliced: mig === "Enabled",
      };
    })
    .toSorted((a, b) => a.index - b.index);
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
