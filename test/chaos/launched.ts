/**
 * A platform whose workers run on machines that a launcher starts (`--on exec`): the node, the
 * launcher, machines and their workers are processes of their own, and all of them are killed.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { OtherFaults } from "./kill.ts";
import type { Ledger } from "./ledger.ts";
import { ChaosNode } from "./node.ts";
import { createToken, DEPLOYMENT, deploy, HEADERS, setUp } from "./platform.ts";
import type { Random } from "./random.ts";

const MACHINES = 2;
/** Of all strikes. */
const SHARE = 0.5;
/** A worker that was heard of so recently is taken for alive. */
const LATELY_MS = 3_000;
/** The longest that nobody launches. */
const MAX_ABSENCE_MS = 3_000;
/** As long as the shell waits that starts a machine. */
const MAX_START_MS = 10_000;
/** Workers of machines start sooner so, and end with them. */
const ENV = { TESSERA_SANDBOX: "permission" };

interface LaunchedOptions {
  readonly random: Random;
  readonly ledger: Ledger;
}

/** A platform, set up, with the service of this folder deployed for machines that join. */
export class LaunchedPlatform implements AsyncDisposable {
  readonly node: ChaosNode;
  /** What calls name the deployment by. */
  readonly headers = HEADERS;
  /** Faults of the launcher and its machines. */
  readonly other: OtherFaults;
  readonly #killed = { launchers: 0, machines: 0 };
  readonly #folder: string;
  readonly #random: Random;
  readonly #ledger: Ledger;
  #launcher: ChaosNode | undefined;

  static async start(database: string, options: LaunchedOptions): Promise<LaunchedPlatform> {
    const folder = mkdtempSync(join(tmpdir(), "tessera-chaos-launched-"));
    const place = ["--data", folder, "--database", database];
    const args = (port: string) => ["start", "--port", port, ...place];
    const node = await ChaosNode.create(args, { env: ENV });
    const platform = new LaunchedPlatform(node, { ...options, folder });
    try {
      await platform.#begin(await setUp({ flags: place }));
      return platform;
    } catch (err) {
      await platform[Symbol.asyncDispose]();
      throw err;
    }
  }

  private constructor(
    node: ChaosNode,
    { folder, random, ledger }: LaunchedOptions & { readonly folder: string },
  ) {
    this.node = node;
    this.#folder = folder;
    this.#random = random;
    this.#ledger = ledger;
    this.other = { share: SHARE, cause: () => this.#strike(), killed: this.#killed };
    process.once("exit", this.#killMachines);
  }

  /** However this process ends: they outlive their launcher. */
  readonly #killMachines = (): void => {
    for (const pid of this.#machines()) {
      killGroup(pid);
    }
  };

  async #begin(password: string): Promise<void> {
    this.node.spawn();
    await this.node.ready();
    await deploy(this.node, password, ["--place", "remote", "--workers", String(MACHINES)]);
    const access = ["launcher", "--access", "launch", "--deployment", DEPLOYMENT];
    const launches = await createToken(this.node, password, access);
    const place = ["--join", this.node.origin, "--on", "exec", "--data", this.#folder];
    const bounds = ["--max", String(MACHINES), "--join-within", "60s"];
    this.#launcher = await ChaosNode.create(() => ["launcher", ...place, ...bounds], {
      env: { ...ENV, TESSERA_LAUNCH_TOKEN: launches },
    });
    this.#launcher.spawn();
    // Whoever runs rounds starts it.
    await this.node.kill();
  }

  /** What the launcher wrote each time it ended by itself since the last question. */
  takeCrashes(): readonly string[] {
    return this.#launcher?.takeCrashes() ?? [];
  }

  /** Kills the launcher, machines, or both: also a launcher that has just begun. */
  async #strike(): Promise<void> {
    const random = this.#random;
    const kind = random.next();
    if (kind < 0.6) {
      this.#killMachine();
    }
    if (kind >= 0.4) {
      do {
        await this.#launcher?.kill();
        this.#killed.launchers += 1;
        await sleep(random.chance(0.5) ? 0 : random.between(0, MAX_ABSENCE_MS));
        this.#launcher?.spawn();
        await sleep(random.between(0, 1_000));
      } while (random.chance(0.3));
    }
  }

  /**
   * As if its power went: its worker goes with it. Mostly one that works: of those that never
   * join, the launcher tries one at a time, with pauses of minutes.
   */
  #killMachine(): void {
    const working = this.#ledger.pidsSince(Date.now() - LATELY_MS).flatMap(parentOf);
    const all = this.#machines();
    const pid = this.#random.pick(
      this.#random.chance(0.1) ? all : all.filter((each) => working.includes(each)),
    );
    if (pid !== undefined && killGroup(pid)) {
      this.#killed.machines += 1;
    }
  }

  /** The process of each machine; undefined of one that is being started or removed at this moment. */
  #pids(): readonly (number | undefined)[] {
    const folder = join(this.#folder, "machines");
    return readIfThere(() => readdirSync(folder), []).map((machine) => {
      const pid = readIfThere(() => readFileSync(join(folder, machine, "pid"), "utf8"), "");
      return Number.parseInt(pid, 10) || undefined;
    });
  }

  #machines(): readonly number[] {
    return this.#pids().filter((pid) => pid !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#launcher?.kill();
    // A machine starts also where its launcher was killed, and nobody would end it.
    const untilMs = performance.now() + MAX_START_MS;
    while (this.#pids().includes(undefined) && performance.now() < untilMs) {
      await sleep(50);
    }
    this.#killMachines();
    process.off("exit", this.#killMachines);
    await this.node.kill();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function readIfThere<Content>(read: () => Content, missing: Content): Content {
  try {
    return read();
  } catch {
    return missing;
  }
}

/** The parent of a process, where the system tells (Linux). */
function parentOf(pid: number): number[] {
  try {
    // After its name, which may have spaces: state, parent.
    const [, parent] =
      readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return [Number(parent)];
  } catch {
    // It has just ended.
    return [];
  }
}

/** False where it has ended. */
function killGroup(pid: number): boolean {
  try {
    process.kill(-pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
