/** The SQLite connection of the storage thread. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import type { Migrated } from "../migration.ts";
import { QueueCounts } from "./counts.ts";
import { LiveTasks } from "./live-tasks.ts";
import { migrate, type SqliteMigrationOptions } from "./migration/migrate.ts";
import type { SqliteRow, Statements } from "./rows.ts";
import { UsageSums } from "./usage.ts";
import { WebhookOwners } from "./webhooks.ts";

/**
 * SQLite's page cache: the pages that are worked on, and no more. After a page of a B-tree was
 * split, a commit looks through the whole table of cached ones (`pcache1Truncate`), which with
 * 64 MiB took a twentieth of the thread's time. Older pages are in the system's cache.
 */
const SQLITE_CACHE_KIB = 4_096;

/**
 * The SQLite connection with its prepared statements. The operations of this
 * folder use it inside a transaction that `transaction` opened.
 */
export class SqliteDatabase implements Statements {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly counts: QueueCounts;
  readonly usage = new UsageSums(this);
  readonly live = new LiveTasks();
  readonly webhookOwners = new WebhookOwners(this);
  /** Those of a deployment that was deleted stay, and nobody asks for them. */
  readonly pausedEndpoints = new EndpointSet(this, "paused_endpoints");
  /** Those whose keys take turns by seconds, or have done so of late. */
  readonly timedEndpoints = new EndpointSet(this, "key_turns WHERE time_ms IS NOT NULL");
  /** A cache of which leases are open, for one transaction. */
  readonly openLeases = new Map<string, boolean>();
  /** `PRAGMA data_version`; it changes when another connection has changed the file. */
  #version: unknown;

  /** What was migrated when it was opened; undefined: its schema was up to date. */
  readonly migrated: Migrated | undefined;

  constructor(path: string, migration: SqliteMigrationOptions = { mode: "auto" }) {
    this.#db = new DatabaseSync(path, { timeout: 5_000 });
    try {
      // FULL: an acknowledged commit survives the loss of power. FAST: what is freed is overwritten
      // in the pages that are written anyway, so that rows which moved leave nothing in them.
      this.#db.exec(`
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA temp_store = MEMORY;
        PRAGMA secure_delete = FAST;
        PRAGMA cache_size = -${SQLITE_CACHE_KIB};
        PRAGMA wal_autocheckpoint = 4000;
      `);
      this.migrated = migrate(this.#db, migration);
    } catch (err) {
      this.#db.close();
      throw err;
    }
    this.counts = new QueueCounts(this);
  }

  /** Runs `work` as one transaction; rolls back and rethrows when it throws. */
  transaction<Result>(work: () => Result): Result {
    this.openLeases.clear();
    this.run("BEGIN IMMEDIATE");
    try {
      this.#noticeOthers();
      const result = work();
      this.counts.flush();
      this.usage.flush();
      this.run("COMMIT");
      return result;
    } catch (err) {
      this.#forget();
      if (this.#db.isTransaction) {
        this.run("ROLLBACK");
      }
      throw err;
    }
  }

  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  get(sql: string, ...values: SQLInputValue[]): SqliteRow | undefined {
    return this.#prepare(sql).get(...values);
  }

  all(sql: string, ...values: SQLInputValue[]): SqliteRow[] {
    return this.#prepare(sql).all(...values);
  }

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  /** Drops caches when another program has written since the last transaction. */
  #noticeOthers(): void {
    const version = this.get("PRAGMA data_version")?.data_version;
    if (version !== this.#version) {
      this.#version = version;
      this.#forget();
    }
  }

  #forget(): void {
    this.counts.forget();
    this.usage.forget();
    this.live.forgetAll();
    this.webhookOwners.forget();
    this.pausedEndpoints.forget();
    this.timedEndpoints.forget();
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * A cache of endpoints of which something is so, so that submits, claims and ends ask nothing. It is
 * forgotten when that changes, and with the other caches of the database.
 */
class EndpointSet {
  readonly #db: Statements;
  readonly #source: string;
  /** By deployment. */
  #known: Map<string, Set<string>> | undefined;

  constructor(db: Statements, source: string) {
    this.#db = db;
    this.#source = source;
  }

  has(deploymentId: string, endpoint: string): boolean {
    this.#known ??= this.#read();
    return this.#known.get(deploymentId)?.has(endpoint) === true;
  }

  forget(): void {
    this.#known = undefined;
  }

  #read(): Map<string, Set<string>> {
    const known = new Map<string, Set<string>>();
    for (const row of this.#db.all(`SELECT deployment_id, endpoint FROM ${this.#source}`)) {
      const deploymentId = String(row.deployment_id);
      const endpoints = known.get(deploymentId) ?? new Set();
      known.set(deploymentId, endpoints.add(String(row.endpoint)));
    }
    return known;
  }
}
