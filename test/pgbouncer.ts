/**
 * A pgbouncer before a Postgres: the one in `PATH`, or the one that the variable `PGBOUNCER` names.
 * As root, which it refuses to run as, it runs as the user `postgres`.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "./free-port.ts";
import { leftOut } from "./needed.ts";

const PROGRAM = process.env.PGBOUNCER || "pgbouncer";

const [, major = "0", minor = "0"] =
  /PgBouncer (\d+)\.(\d+)/.exec(spawnSync(PROGRAM, ["--version"], { encoding: "utf8" }).stdout) ??
  [];

/** Appended to the name of tests that are left out where there is no pgbouncer. */
export const WITHOUT_PGBOUNCER = leftOut(
  major === "0" ? "pgbouncer is not installed (Debian: apt-get install pgbouncer)" : undefined,
);

/** Whether this version can follow prepared statements: 1.21 or newer. */
export const FOLLOWS_PREPARED = Number(major) > 1 || Number(minor) >= 21;

export interface Pooler extends AsyncDisposable {
  /** The address by which the pooler leads to the same database. */
  readonly url: string;
  /** Has it open new sessions. */
  reconnect(): Promise<void>;
}

/** Starts one in transaction mode, with further settings. */
export async function startPooler(
  target: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pooler> {
  const folder = await mkdtemp(join(tmpdir(), "tessera-pgbouncer-"));
  await chmod(folder, 0o755);
  const { hostname, port, username, password, pathname } = new URL(target);
  const listenPort = await freePort();
  const lines = {
    listen_addr: "127.0.0.1",
    listen_port: String(listenPort),
    unix_socket_dir: "",
    auth_type: "trust",
    auth_file: join(folder, "users.txt"),
    admin_users: username,
    pool_mode: "transaction",
    ...settings,
  };
  const ini = Object.entries(lines).map(([name, value]) => `${name} = ${value}\n`);
  const database = `* = host=${hostname} port=${port} user=${username} password=${password}\n`;
  const path = join(folder, "pgbouncer.ini");
  await writeFile(path, `[databases]\n${database}[pgbouncer]\n${ini.join("")}`);
  await writeFile(join(folder, "users.txt"), `"${username}" ""\n`);
  const flags = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  const child = spawn(PROGRAM, [...flags, path], { stdio: ["ignore", "ignore", "pipe"] });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const ended = once(child, "exit");
  await listening(child);
  const url = new URL(`postgres://${username}@127.0.0.1:${listenPort}${pathname}`);
  return {
    url: url.href,
    async reconnect() {
      const admin = new pg.Client(new URL("/pgbouncer", url).href);
      await admin.connect();
      await admin.query("RECONNECT");
      await admin.end();
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
      process.off("exit", kill);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves when it takes connections; rejects with what it wrote when it ends instead. */
async function listening(child: ChildProcess): Promise<void> {
  let written = "";
  const ready = Promise.withResolvers<void>();
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    written += text;
    if (written.includes("process up")) {
      ready.resolve();
    }
  });
  child.once("error", ready.reject);
  child.once("exit", () => ready.reject(new Error(`pgbouncer ended: ${written}`)));
  await ready.promise;
}
