/**
 * The databases of the contenders. Each is started once per run, on a free
 * loopback port with its own folder, and removed afterwards. Their durability
 * is what their documentation recommends for a queue: Redis with an append-only
 * file synced each second, Postgres with its defaults (fsync and
 * synchronous_commit on).
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import { freePort } from "../test/free-port.ts";
import { startPostgres } from "../test/postgres.ts";
import { Program } from "./program.ts";

export interface Redis {
  readonly url: string;
  readonly version: string;
  readonly pid: number;
}

export interface Postgres {
  readonly version: string;
  readonly pid: number;
  /** Creates a database and returns its URL. */
  createDatabase(name: string): Promise<string>;
  /** A client that is connected to another database. */
  readonly client: pg.Client;
}

export class Backends implements AsyncDisposable {
  readonly folder: string;
  readonly #stack = new AsyncDisposableStack();
  #redis: Promise<Redis> | undefined;
  #postgres: Promise<Postgres> | undefined;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "tessera-bench-"));
    const remove = (): void => rmSync(this.folder, { recursive: true, force: true });
    this.#stack.defer(remove);
    // For a signal, when nothing is disposed.
    process.once("exit", remove);
  }

  redis(): Promise<Redis> {
    this.#redis ??= this.#startRedis();
    return this.#redis;
  }

  postgres(): Promise<Postgres> {
    this.#postgres ??= this.startPostgres();
    return this.#postgres;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #startRedis(): Promise<Redis> {
    const version = redisVersion();
    const port = await freePort();
    const settings = {
      port: String(port),
      bind: "127.0.0.1",
      dir: this.folder,
      appendonly: "yes",
      appendfsync: "everysec",
      save: "",
      "maxmemory-policy": "noeviction",
    };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const { program } = await Program.start("redis-server", args, /Ready to accept connections/);
    this.#stack.use(program);
    return { url: `redis://127.0.0.1:${port}`, version, pid: program.pid };
  }

  /** A further server, beside the one that contenders share. */
  async startPostgres(): Promise<Postgres> {
    const server = this.#stack.use(await startPostgres({ durable: true }));
    const url = (database: string): string => {
      const address = new URL(server.url);
      address.pathname = `/${database}`;
      return address.href;
    };
    const client = this.#stack.adopt(new pg.Client(server.url), (each) => each.end());
    await client.connect();
    const { rows } = await client.query(
      `SELECT current_setting('server_version') AS version,
         current_setting('data_directory') AS folder,
         split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid`,
    );
    const folder = dirname(String(rows[0]?.folder));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    return {
      version: String(rows[0]?.version),
      pid: Number(rows[0]?.pid),
      client,
      async createDatabase(name) {
        await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
        return url(name);
      },
    };
  }
}

function redisVersion(): string {
  try {
    const text = execFileSync("redis-server", ["--version"], { encoding: "utf8" });
    return /v=(\S+)/.exec(text)?.[1] ?? "of an unknown version";
  } catch {
    throw new Error(
      "redis-server is not installed: apt-get install redis-server (Debian, Ubuntu), brew install redis (macOS), or leave BullMQ out with --peers",
    );
  }
}
