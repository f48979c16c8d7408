/**
 * Two Postgres servers of one's own: a primary and a standby that it waits for with each commit.
 * The primary can be killed, the standby promoted, and the killed one brought back as the standby.
 */
import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { copyData } from "./copy-data.ts";
import { ask } from "./postgres.ts";
import { KillablePostgres } from "./server.ts";
import { within } from "./within.ts";

const SYNC_TIMEOUT_MS = 60_000;
const SETTINGS = { synchronous_standby_names: "*", wal_keep_size: "256MB" };

export class PostgresPair implements AsyncDisposable {
  #primary: KillablePostgres;
  #standby: KillablePostgres;

  static async start(): Promise<PostgresPair> {
    const pair = new PostgresPair(
      await KillablePostgres.create(SETTINGS),
      await KillablePostgres.create(SETTINGS),
    );
    try {
      await pair.#primary.initialise();
      await pair.#primary.start();
      await pair.rejoin();
      return pair;
    } catch (err) {
      await pair[Symbol.asyncDispose]();
      throw err;
    }
  }

  private constructor(primary: KillablePostgres, standby: KillablePostgres) {
    this.#primary = primary;
    this.#standby = standby;
  }

  /** The address of both, always in the same order. */
  get url(): string {
    const ports = [this.#primary.port, this.#standby.port].sort((a, b) => a - b);
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
    return `postgres://${this.#primary.user}@${hosts}/postgres?target_session_attrs=read-write`;
  }

  /** The address of the primary alone. */
  get primaryUrl(): string {
    return this.#primary.url;
  }

  /** Kills every process of the primary at once, as a power cut does. */
  async killPrimary(): Promise<void> {
    await this.#primary.kill();
  }

  /** Makes the standby the primary. From then on nothing is acknowledged before `rejoin`. */
  async promote(): Promise<void> {
    await ask(this.#standby.url, "SELECT pg_promote()");
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
  }

  /** Brings the killed server back as a copy of the primary, and waits until commits wait for it. */
  async rejoin(): Promise<void> {
    const [primary, standby] = [this.#primary, this.#standby];
    const { account, folder, user } = standby;
    await rm(folder, { recursive: true, force: true });
    await copyData(primary.url, { from: primary.folder, to: folder, ...account });
    await appendFile(
      join(folder, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=${user}'\n`,
    );
    await writeFile(join(folder, "standby.signal"), "");
    await standby.start();
    await within(SYNC_TIMEOUT_MS, "the standby to be synchronous", waitForSync(primary.url));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#primary, this.#standby].map((one) => one[Symbol.asyncDispose]()));
  }
}

async function waitForSync(url: string): Promise<void> {
  const asked = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
  while ((await ask(url, asked)).length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
