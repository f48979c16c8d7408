/** What an operator should know of a Postgres before nodes work with it. Nothing is changed. */
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseAway } from "../unavailable.ts";
import { refusal } from "./connect.ts";
import { DEFAULT_STATEMENT_TIMEOUT_MS } from "./connection.ts";
import { PostgresDatabase } from "./database.ts";
import { readSchema } from "./migration/migrate.ts";
import { type NotifierState, PostgresNotifier } from "./notifier.ts";
import { MIGRATIONS } from "./schema.ts";
import { statement } from "./session.ts";
import { type SessionFacts, sessionFault, sessionWarning } from "./session-check.ts";

/** The schema of a platform. */
const SCHEMA = "tessera";

/** Connections of `tessera admin check` to a Postgres. */
const MAX_EXAMINE_CONNECTIONS = 2;

/** Longer than a heartbeat of the notifier may take, with the time to connect. */
const NOTIFICATION_TIMEOUT_MS = 5_000;

interface Replica {
  readonly name: string;
  /** As `pg_stat_replication` says: `sync`, `quorum`, `potential` or `async`. */
  readonly sync: string;
  /** How much of the log it has not written to its disk yet; undefined where this user may not see it. */
  readonly lagBytes: number | undefined;
}

interface PostgresFacts {
  readonly session: SessionFacts;
  /** Why no node may work with such sessions; judged only where there is a schema. */
  readonly fault: string | undefined;
  readonly warning: string | undefined;
  /** Applied migrations; 0 where the platform has not started yet. */
  readonly schemaVersion: number;
  /** Migrations that this program knows. */
  readonly latestSchemaVersion: number;
  /** How long a notification to oneself takes, in milliseconds; undefined: it does not arrive. */
  readonly roundTripMs: number | undefined;
  /** How far this machine's clock is ahead of the database's, in milliseconds. */
  readonly clockAheadMs: number;
  readonly fsync: boolean;
  readonly synchronousCommit: string;
  /** Standbys that commits wait for, as configured; empty for none. */
  readonly synchronousStandbys: string;
  readonly replicas: readonly Replica[];
}

const SERVER = statement(`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
  current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') AS synchronous_standbys`);

const REPLICAS =
  statement(`SELECT application_name AS name, coalesce(sync_state, 'unknown') AS sync,
  pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)::bigint AS lag_bytes FROM pg_stat_replication`);

/** Rejects with one message when the database does not answer, or lets nobody in. */
export async function examinePostgres(
  url: string,
  directUrl: string | undefined,
): Promise<PostgresFacts> {
  const db = open(url);
  try {
    const session = await db.examine();
    const { version: schemaVersion } = await readSchema(db, SCHEMA);
    const beganMs = Date.now();
    const [server = {}] = await db.query(SERVER);
    const middleMs = (beganMs + Date.now()) / 2;
    const replicas = await db.query(REPLICAS);
    return {
      session,
      fault: schemaVersion === 0 ? undefined : sessionFault(session, SCHEMA),
      warning: sessionWarning(session),
      schemaVersion,
      latestSchemaVersion: MIGRATIONS.length,
      roundTripMs: await roundTrip(directUrl ?? url, db),
      clockAheadMs: Math.round(middleMs - Number(server.now_ms)),
      fsync: server.fsync === "on",
      synchronousCommit: String(server.synchronous_commit),
      synchronousStandbys: String(server.synchronous_standbys ?? ""),
      replicas: replicas.map(({ name, sync, lag_bytes: lag }) => ({
        name: String(name),
        sync: String(sync),
        lagBytes: lag === null ? undefined : Number(lag),
      })),
    };
  } catch (err) {
    throw err instanceof DatabaseAway ? err : refusal(url, err);
  } finally {
    await db[Symbol.asyncDispose]();
  }
}

function open(url: string): PostgresDatabase {
  try {
    const timeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS;
    return new PostgresDatabase({
      url,
      schema: SCHEMA,
      connections: MAX_EXAMINE_CONNECTIONS,
      timeoutMs,
    });
  } catch (err) {
    throw refusal(url, err);
  }
}

async function roundTrip(url: string, db: PostgresDatabase): Promise<number | undefined> {
  const told = Promise.withResolvers<NotifierState>();
  let sentMs = 0;
  const notify = async (channel: string): Promise<void> => {
    sentMs = performance.now();
    await db.query(statement("SELECT pg_notify($1, '')"), channel);
  };
  let tookMs = 0;
  const onState = (state: NotifierState): void => {
    tookMs = performance.now() - sentMs;
    told.resolve(state);
  };
  await using notifier = new PostgresNotifier(url, { schema: SCHEMA, notify, onState });
  notifier.start();
  const over = sleep(NOTIFICATION_TIMEOUT_MS, "deaf" as const, { ref: false });
  return (await Promise.race([told.promise, over])) === "up" ? Math.round(tookMs) : undefined;
}
