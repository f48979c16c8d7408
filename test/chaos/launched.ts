/**
 * A platform whose workers run on machines that a launcher starts (`--on exec`): the node, the
 * launcher, machines and their workers are processes of their own, and all of them are killed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Ledger } from "./ledger.ts";
import { ChaosNode, ENTRY, ENVIRONMENT, SERVICE } from "./node.ts";
import type { Random } from "./random.ts";
import { within } from "./within.ts";

const PERSON = ["--email", "ada@example.com"];
const DEPLOYMENT = "chaos";
const MACHINES = 2;
/** Of all strikes. */
const SHARE = 0.5;
/** A worker that was heard of so recently is taken for alive. */
const LATELY_MS = 3_000;
/** The longest that nobody launches. */
const MAX_ABSENCE_MS = 3_000;
const COMMAND_TIMEOUT_MS = 120_000;
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
  readonly headers = { "tessera-deployment": `acme/${DEPLOYMENT}` };
  /** Faults of the launcher and its machines. */
  readonly other: { readonly share: number; cause(): Promise<void> };
  readonly counts = { launchers: 0, machines: 0 };
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
      const setUp = ["admin", "setup", "--organization", "acme", ...PERSON, ...place];
      await platform.#begin(await tessera(setUp));
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
    this.other = { share: SHARE, cause: () => this.#strike() };
  }

  async #begin(password: string): Promise<void> {
    this.node.spawn();
    await this.node.ready();
    const token = async (...access: readonly string[]): Promise<string> => {
      const at = ["--endpoint", this.node.origin, ...PERSON, "--password-stdin", "-o", "json"];
      const args = ["token", "create", ...access, "--kind", "organization", ...at];
      return (JSON.parse(await tessera(args, { input: `${password}\n` })) as { value: string })
        .value;
    };
    const deployer = await token("deployer", "--developer-operations");
    const env = { SERVICE_CLOUD_API_KEY: deployer, SERVICE_CLOUD_API_ENDPOINT: this.node.origin };
    const settings = ["--place", "remote", "--workers", String(MACHINES), "--no-authorization"];
    await tessera(["deploy", SERVICE, "--name", DEPLOYMENT, ...settings], { env });
    const launches = await token("launcher", "--access", "launch", "--deployment", DEPLOYMENT);
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
        this.counts.launchers += 1;
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
      this.counts.machines += 1;
    }
  }

  #machines(): readonly number[] {
    const folder = join(this.#folder, "machines");
    try {
      return readdirSync(folder).flatMap((machine) => {
        const pid = Number.parseInt(readFileSync(join(folder, machine, "pid"), "utf8"), 10);
        return Number.isNaN(pid) ? [] : [pid];
      });
    } catch {
      // None was started yet, or one is being started or removed at this moment.
      return [];
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#launcher?.kill();
    for (const pid of this.#machines()) {
      killGroup(pid);
    }
    await this.node.kill();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
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

/** Runs a command; resolves with what it wrote. */
async function tessera(
  args: readonly string[],
  { input = "", env = {} }: { readonly input?: string; readonly env?: object } = {},
): Promise<string> {
  const child = spawn(process.execPath, [ENTRY, ...args], { env: { ...ENVIRONMENT, ...env } });
  child.stdin.end(input);
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const [written, said, [code]] = await within(COMMAND_TIMEOUT_MS, `tessera ${args[0]}`, ended);
  if (code !== 0) {
    throw new Error(`tessera ${args.join(" ")} ended with ${code}: ${said}`);
  }
  return written.trim();
}
